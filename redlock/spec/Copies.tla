------------------------------- MODULE Copies --------------------------------
(***************************************************************************)
(* Counters under lock keys: what a client was told never goes back.  The   *)
(* clients of several processes count under one key.  Masters execute that  *)
(* in different orders, miss some of it, and answer late.  So their copies  *)
(* differ until they are united.  package run has the rules in words.       *)
(*                                                                         *)
(* A copy has a number for each field; 0: the field is not there.  A string *)
(* or a key with one member is a copy with one field.  Masters keep their   *)
(* data.  A count that a master misses is one that it never executes.       *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets, Sequences, TLC

CONSTANTS
  Procs, Masters,
  Fields,   \* of the key
  Most,     \* the largest number
  \* What may happen.
  Late,     \* a master may execute a count after its ballot has ended
  Unheard,  \* a connection breaks before the answer: a master has counted, and its process does not know
  Unites,   \* copies are united
  \* The rules of counters.
  CountedByQuorum, UndoExact, UndoneOnce, UnitedWhenQuiet, UnitedFromAll, HighestUnited, FieldsOfQuorum

Max(S) == CHOOSE x \in S : \A y \in S : y <= x
Symmetry == Permutations(Procs) \cup Permutations(Masters) \cup Permutations(Fields)

VARIABLES
  copy,    \* copy[s]: what master s has
  chan,    \* chan[p][s]: what s still has to execute for p, in this order
  ballot,  \* ballot[p]: the count of p's client
  told,    \* told[f]: the numbers that clients were told
  back,    \* a number was told twice, or after a larger one
  step     \* what happened last, in words

state == <<copy, chan, ballot, told, back>>
vars  == <<state, step>>

Nothing == [f \in Fields |-> 0]
Quorum  == Cardinality(Masters) \div 2 + 1
Need    == IF CountedByQuorum THEN Quorum ELSE Quorum - 1
Has(c)  == {f \in Fields : c[f] > 0}
Highest(C) == [f \in Fields |-> Max({c[f] : c \in C})]
Idle    == [field |-> "none", base |-> 0, votes |-> [s \in Masters |-> <<>>]]

Init ==
  /\ copy   = [s \in Masters |-> Nothing]
  /\ chan   = [p \in Procs |-> [s \in Masters |-> <<>>]]
  /\ ballot = [p \in Procs |-> Idle]
  /\ told   = [f \in Fields |-> {}]
  /\ back   = FALSE
  /\ step   = <<"nothing is counted">>

\* A ballot asks the masters that owe nothing about the key.
Ask(p, f) ==
  /\ ballot[p] = Idle
  /\ ballot' = [ballot EXCEPT ![p].field = f, ![p].base = Max({0} \cup told[f])]
  /\ chan' = [chan EXCEPT ![p] = [s \in Masters |-> IF chan[p][s] = <<>> THEN <<[does |-> "count", field |-> f]>> ELSE chan[p][s]]]
  /\ step' = <<p, "counts", f>>
  /\ UNCHANGED <<copy, told, back>>

\* What a copy must become on a master that did not vote as the winners did.  A copy that differs from theirs
\* in numbers only is raised.  No winners: Nothing.
Undo(won, before, after) ==
  LET due == IF won # Nothing /\ Has(won) = Has(after) THEN Highest({won, after}) ELSE before IN
  IF after = won \/ due = after THEN <<>> ELSE <<[does |-> "undo", left |-> after, due |-> due]>>

\* The ballot ends.  Who has voted otherwise is put back, and so is who answers late.
End(p, won) ==
  /\ ballot' = [ballot EXCEPT ![p] = Idle]
  /\ chan' = [chan EXCEPT ![p] = [s \in Masters |->
       LET v == ballot[p].votes[s]
           c == chan[p][s] IN
       IF v # <<>> THEN c \o Undo(won, v[1], v[2])
       ELSE IF c = <<>> \/ c[1].does # "count" THEN c
       ELSE IF Late THEN <<[does |-> "late", field |-> c[1].field, won |-> won]>> ELSE <<>>]]

Tell(p) ==
  /\ ballot[p] # Idle
  /\ \E won \in {ballot[p].votes[s][2] : s \in {s \in Masters : ballot[p].votes[s] # <<>>}} :
       LET f == ballot[p].field IN
       /\ Cardinality({s \in Masters : ballot[p].votes[s] # <<>> /\ ballot[p].votes[s][2] = won}) >= Need
       /\ End(p, won)
       /\ told' = [told EXCEPT ![f] = @ \cup {won[f]}]
       /\ back' = (back \/ won[f] \in told[f] \/ won[f] <= ballot[p].base)
       /\ step' = <<p, "is told", won[f], "of", f>>
  /\ UNCHANGED copy

GiveUp(p) ==
  /\ ballot[p] # Idle
  /\ End(p, Nothing)
  /\ step' = <<p, "gives up and puts back what it knows of">>
  /\ UNCHANGED <<copy, told, back>>

\* A master executes the next message.  What never arrives is never executed.
Execute(p, s) ==
  /\ chan[p][s] # <<>>
  /\ LET m == Head(chan[p][s])
         rest == Tail(chan[p][s])
         after == [copy[s] EXCEPT ![m.field] = @ + 1] IN
     \/ /\ m.does # "undo" /\ copy[s][m.field] < Most
        /\ copy' = [copy EXCEPT ![s] = after]
        /\ \E heard \in IF Unheard THEN BOOLEAN ELSE {TRUE} :
             /\ chan' = [chan EXCEPT ![p][s] = IF m.does = "late" /\ heard THEN rest \o Undo(m.won, copy[s], after) ELSE rest]
             /\ ballot' = IF m.does = "count" /\ heard THEN [ballot EXCEPT ![p].votes[s] = <<copy[s], after>>] ELSE ballot
             /\ step' = <<s, "counts", m.field, "to", after[m.field], "for", p, IF heard THEN "" ELSE "which does not hear that">>
     \/ /\ m.does = "undo"
        /\ copy' = IF UndoExact => copy[s] = m.left THEN [copy EXCEPT ![s] = m.due] ELSE copy
        /\ \E again \in IF UndoneOnce THEN {FALSE} ELSE BOOLEAN :
             /\ chan' = [chan EXCEPT ![p][s] = IF again THEN @ ELSE rest]
             /\ step' = <<s, "puts back", m.left, "to", m.due, "if it is that, for", p, IF again THEN "which does not hear that" ELSE "">>
        /\ UNCHANGED ballot
  /\ UNCHANGED <<told, back>>

\* What the copies of the masters V may become: one of these.
Models(V) ==
  LET C == {copy[s] : s \in V} \ {Nothing}
      With(f) == {s \in V : copy[s][f] > 0}
      common == [f \in Fields |-> IF Cardinality(With(f)) >= Quorum THEN Max({copy[s][f] : s \in With(f)}) ELSE 0]
      equal == {c \in C : Cardinality({s \in V : copy[s] = c}) >= Quorum} IN
  CASE Cardinality(Masters) - Cardinality({s \in V : copy[s] = Nothing}) < Quorum -> {Nothing}
    [] C = {} \/ (UnitedFromAll /\ V # Masters) -> {}
    [] equal # {} -> equal
    [] HighestUnited /\ (\A c, d \in C : Has(c) = Has(d)) -> {Highest(C)}
    [] HighestUnited /\ FieldsOfQuorum /\ common # Nothing -> {common}
    [] OTHER -> C

\* A process has looked twice, and no copy has changed.  Each ballot that was under way at the first look has ended
\* since, with its undos.  So none has a vote.
Quiet == \A p \in Procs, s \in Masters :
           ballot[p].votes[s] = <<>> /\ \A i \in DOMAIN chan[p][s] : chan[p][s][i].does # "undo"

Unite ==
  /\ Unites /\ (UnitedWhenQuiet => Quiet)
  /\ \E V \in SUBSET Masters : \E model \in Models(V), W \in SUBSET {s \in V : copy[s] # Nothing} :
       /\ \E s \in W : copy[s] # model
       /\ copy' = [s \in Masters |-> IF s \in W THEN model ELSE copy[s]]
       /\ step' = <<"the copies of", V, "are united, and", W, "have", model, "now">>
  /\ UNCHANGED <<chan, ballot, told, back>>

Next == \/ Unite
        \/ \E p \in Procs : \/ Tell(p) \/ GiveUp(p)
                            \/ \E f \in Fields : Ask(p, f)
                            \/ \E s \in Masters : Execute(p, s)
Spec == Init /\ [][Next]_vars

Forward == ~back
=============================================================================
