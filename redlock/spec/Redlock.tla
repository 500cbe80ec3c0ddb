------------------------------- MODULE Redlock -------------------------------
(***************************************************************************)
(* The rules by which two clients never hold one lock: those of the page    *)
(* about Redlock, and those that its masters need because they restart, are *)
(* flushed, change their clocks and are replaced.  One lock, N masters.     *)
(*                                                                         *)
(* Each rule is a boolean constant.  With all rules TRUE, TLC finds no      *)
(* history in which Mutex, Tokens or Progress is false.  With one rule      *)
(* FALSE it finds one.  histories/ has the shortest, README.md the table.   *)
(*                                                                         *)
(* Time.  Nothing holds a point in time.  A TTL, a validity and a           *)
(* quarantine are what is left of them, and Tick takes one from each.  So   *)
(* there are finitely many states, although histories are endless, and      *)
(* neither requests nor faults are counted.                                 *)
(*                                                                         *)
(* Faults need few actions.  A master that is down or cut off does not      *)
(* move.  A process that crashed never moves again; its successor is        *)
(* another element of Procs.  What a process sent may be executed at any    *)
(* later time.                                                              *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets, Sequences, TLC

CONSTANTS
  \* The world.
  Procs,      \* processes; each has one client, which uses one value again and again
  First,      \* the masters at first
  Change1,    \* what the operator changes: {old, new} replaces, {new} adds, {old} removes; {}: nothing
  Change2,    \* and the change after it
  Down,       \* masters that died for good
  None,
  TTLs,       \* the TTLs that clients ask for, in ticks
  Delay,      \* restart_delay
  MaxQ,       \* max_quarantine; no TTL is longer
  MaxToken,   \* 0: no fencing tokens
  \* What may happen.
  Locks,      \* clients take locks
  Instant,    \* ballots and releases take no time: Take happens, not Ask, Execute and Win
  Late,       \* a master may execute an acquire after its ballot has ended
  Renewals,   \* clients renew locks, also locks that have ended (with Instant only)
  Causes,     \* why masters forget: a subset of {"flush", "restart", "reload", "jump"}
  AtOnce,     \* so many masters lack their marker at the same time, at most
  Unread,     \* a process that writes a marker may reach any part of the other masters, or none
  LateWrites, \* markers are written some time after they were planned
  \* The page: locks are taken, renewed and released.
  MajorityNeeded, ValidityChecked, UndoOrdered, CompareOnRelease, CompareOnRenewal, RenewalNeverShortens,
  \* Delayed restarts: masters that forget.
  MarkerChecked, CheckedInBatch, RunIdChecked, JumpIsAmnesia, QuarantineCoversTTL, NewSetWaits,
  LongestTTLRecordedFirst, LongestTTLFromEnough, OnlyMarkersTell, CapOnRecord, AskedAfterPatience,
  PlanExpires, CapRatherThanWait,
  \* Who the masters are.
  OperatorTellsAll,   \* all processes have the new list within MaxQ less the longest TTL, or are stopped
  ReplacedIsStopped,  \* a server is stopped before another one takes its place
  OneChangeAtATime, NewServerQuarantined, EarlierListTells,
  EpochOnRecordFirst, OldListStandsDown, BallotEndsWithEpoch,
  \* Fencing tokens.
  TokenOnQuorum, TokenOnlyRaised, TokenLearnedAgain

Max(S) == CHOOSE x \in S : \A y \in S : y <= x
Minus(m, n) == IF m > n THEN m - n ELSE 0
Less(n) == Minus(n, 1)
Flip(S, change) == (S \ change) \cup (change \ S)

\* An epoch is the number of a list of masters.
MaxEpoch  == IF Change1 = {} THEN 0 ELSE IF Change2 = {} THEN 1 ELSE 2
Epochs    == 0..MaxEpoch
List(e)   == CASE e = 0 -> First
               [] e = 1 -> Flip(First, Change1)
               [] e = 2 -> Flip(Flip(First, Change1), Change2)
Servers   == UNION {List(e) : e \in Epochs}
Quorum(e) == Cardinality(List(e)) \div 2 + 1
Longest   == Max(TTLs)
Symmetry  == Permutations(Procs) \cup Permutations(First \ (Change1 \cup Change2 \cup Down))

VARIABLES
  lock,    \* lock[s]: the value that master s holds for the key, and how long yet
  mark,    \* mark[s]: the marker of s
  chan,    \* chan[p][s]: what the stream of p to s still has to execute
  ballot,  \* ballot[p]: the request of p's client
  plan,    \* plan[p]: the marker that p is about to write
  know,    \* know[p]: the epoch of the list by which p counts
  newest,  \* the newest epoch that the operator has told anybody
  settle,  \* how long yet until the operator may change the list again
  tballot, \* tballot[p]: the token ballot of p
  given,   \* the tokens that were given
  step     \* what happened last, in words: a line of a history

state   == <<lock, mark, chan, ballot, plan, know, newest, settle, tballot, given>>  \* TLC's VIEW
vars    == <<state, step>>
members == <<know, newest, settle>>
tokens  == <<tballot, given>>

Free   == [val |-> None, ttl |-> 0]
\* A marker says in how many ticks its master votes, the longest TTL and the largest token that it
\* knows of, and the epoch that it has on record.
NoMark == [there |-> FALSE, from |-> 0, long |-> 0, tok |-> 0, ep |-> 0]
Idle   == [st |-> "idle", left |-> 0, ttl |-> 0, votes |-> {}, trust |-> {}]
NoPlan == [at |-> None, mark |-> NoMark]
NoAsk  == [n |-> 0, base |-> 0, raised |-> {}]

Init ==
  /\ lock    = [s \in Servers |-> Free]
  /\ mark    = [s \in Servers |-> [NoMark EXCEPT !.there = s \in First, !.long = IF s \in First THEN Delay ELSE 0]]
  /\ chan    = [p \in Procs |-> [s \in Servers |-> <<>>]]
  /\ ballot  = [p \in Procs |-> Idle]
  /\ plan    = [p \in Procs |-> NoPlan]
  /\ know    = [p \in Procs |-> 0]
  /\ newest  = 0
  /\ settle  = 0
  /\ tballot = [p \in Procs |-> NoAsk]
  /\ given   = {}
  /\ step    = <<"all masters vote; nobody holds the lock">>

-----------------------------------------------------------------------------
(* Who may vote.  The batch that asks for a vote also reads the marker. *)

MayVote(p, s) ==
  /\ s \notin Down
  /\ ReplacedIsStopped => s \in List(newest)
  /\ MarkerChecked => (mark[s].there /\ mark[s].from = 0)
  /\ OldListStandsDown => mark[s].ep = know[p]

Counts(p, s) == IF CheckedInBatch THEN MayVote(p, s) ELSE s \in ballot[p].trust

Need(p) == IF MajorityNeeded THEN Quorum(know[p]) ELSE Cardinality(List(know[p])) \div 2

-----------------------------------------------------------------------------
(* Taking and releasing a lock. *)

\* What stays in a stream when its ballot ends.  "acquire" is a vote; "late" is executed and no vote.
Ended(c) == IF Late THEN [i \in DOMAIN c |-> IF c[i] = "acquire" THEN "late" ELSE c[i]]
                    ELSE SelectSeq(c, LAMBDA m : m = "delete")

\* A deletion goes where it may find something.  Undo and release are the same message, and two of
\* them in a row do what one does.
Deleted(p, s) ==
  LET c == Ended(chan[p][s]) IN
  IF lock[s].val # p /\ \A i \in DOMAIN c : c[i] = "delete" THEN c
  ELSE IF c # <<>> /\ c[Len(c)] = "delete" THEN c
  ELSE Append(c, "delete")

TakeBack(p) == [s \in Servers |-> Deleted(p, s)]

\* A ballot asks all masters at the same moment, but none that still owes an answer.
Ask(p) ==
  /\ Locks /\ ~Instant
  /\ ballot[p].st = "idle"
  /\ \E t \in TTLs :
       /\ ballot' = [ballot EXCEPT ![p] = [st |-> "asking", left |-> t, ttl |-> t, votes |-> {},
                      trust |-> IF CheckedInBatch THEN {} ELSE {s \in List(know[p]) : MayVote(p, s)}]]
       /\ step' = <<p, "asks", List(know[p]), "for the lock with TTL", t>>
  /\ chan' = [chan EXCEPT ![p] = [s \in Servers |->
       IF s \in List(know[p]) /\ \A i \in DOMAIN chan[p][s] : chan[p][s][i] = "delete"
       THEN Append(chan[p][s], "acquire") ELSE chan[p][s]]]
  /\ UNCHANGED <<lock, mark, plan, members, tokens>>

\* Master s executes the next message of p.  SET NX has the longest TTL put on record first.
Execute(p, s) ==
  \E i \in (IF UndoOrdered THEN {1} ELSE 1..Len(chan[p][s])) \cap DOMAIN chan[p][s] :
    LET m    == chan[p][s][i]
        t    == IF ballot[p].ttl > 0 THEN ballot[p].ttl ELSE Longest
        ok   == m # "delete" /\ lock[s] = Free
        vote == ok /\ m = "acquire" /\ Counts(p, s)
        ends == m = "delete" /\ (CompareOnRelease => lock[s].val = p)
    IN /\ s \notin Down
       /\ chan' = [chan EXCEPT ![p][s] = SubSeq(@, 1, i - 1) \o SubSeq(@, i + 1, Len(@))]
       /\ lock' = CASE ok -> [lock EXCEPT ![s] = [val |-> p, ttl |-> t]]
                    [] ends -> [lock EXCEPT ![s] = Free]
                    [] OTHER -> lock
       /\ mark' = IF ok /\ mark[s].there /\ LongestTTLRecordedFirst
                  THEN [mark EXCEPT ![s].long = Max({@, t})] ELSE mark
       /\ ballot' = IF vote THEN [ballot EXCEPT ![p].votes = @ \cup {s}] ELSE ballot
       /\ step' = <<s, CASE vote -> "votes for" [] ok -> "gives the lock without a vote to"
                         [] m # "delete" -> "refuses the lock to"
                         [] ends /\ lock[s] # Free -> "deletes the lock of " [] OTHER -> "finds nothing to delete for",
                    IF m = "delete" /\ ends /\ lock[s] # Free THEN lock[s].val ELSE p>>
       /\ UNCHANGED <<plan, members, tokens>>

\* The verdict.  The validity began when the masters were asked.
Win(p) ==
  /\ ballot[p].st = "asking"
  /\ Cardinality(ballot[p].votes) >= Need(p)
  /\ ballot' = [ballot EXCEPT ![p] = [Idle EXCEPT !.st = "holding", !.ttl = ballot[p].ttl,
                  !.left = IF ValidityChecked THEN ballot[p].left ELSE ballot[p].ttl]]
  /\ chan' = [chan EXCEPT ![p] = [s \in Servers |-> Ended(chan[p][s])]]
  /\ step' = <<p, "holds the lock with the votes of", ballot[p].votes>>
  /\ UNCHANGED <<lock, mark, plan, members, tokens>>

\* p gives up its ballot, or its client releases the lock.
Close(p) ==
  /\ ballot[p].st # "idle"
  /\ ballot' = [ballot EXCEPT ![p] = Idle]
  /\ IF Instant
     THEN lock' = [s \in Servers |-> IF lock[s].val = p THEN Free ELSE lock[s]] /\ chan' = chan
     ELSE lock' = lock /\ chan' = [chan EXCEPT ![p] = TakeBack(p)]
  /\ step' = <<p, IF ballot[p].st = "holding" THEN "releases the lock" ELSE "gives up and takes back what it may have">>
  /\ UNCHANGED <<mark, plan, members, tokens>>

\* A whole ballot in one step.  More copies than a quorum would only be in the way of others.
Take(p) ==
  /\ Locks /\ Instant /\ ballot[p].st = "idle"
  /\ \E t \in TTLs, A \in SUBSET {s \in List(know[p]) : MayVote(p, s) /\ lock[s] = Free} :
       /\ Cardinality(A) = Need(p)
       /\ lock' = [s \in Servers |-> IF s \in A THEN [val |-> p, ttl |-> t] ELSE lock[s]]
       /\ mark' = [s \in Servers |-> IF s \in A /\ LongestTTLRecordedFirst
                                     THEN [mark[s] EXCEPT !.long = Max({@, t})] ELSE mark[s]]
       /\ ballot' = [ballot EXCEPT ![p] = [Idle EXCEPT !.st = "holding", !.ttl = t, !.left = t]]
       /\ step' = <<p, "takes the lock on", A, "with TTL", t>>
  /\ UNCHANGED <<chan, plan, members, tokens>>

\* p's client renews the lock, perhaps too late.  It is a ballot like Take, for masters that have the
\* value.  If too few have it, the others keep the new TTL all the same.
Renew(p) ==
  /\ Renewals /\ Instant
  /\ \E t \in TTLs, A \in SUBSET {s \in List(know[p]) : MayVote(p, s) /\ lock[s] # Free
                                                       /\ (CompareOnRenewal => lock[s].val = p)} :
       /\ A # {}
       /\ lock' = [s \in Servers |-> IF s \in A THEN [lock[s] EXCEPT !.ttl = IF RenewalNeverShortens THEN Max({@, t}) ELSE t] ELSE lock[s]]
       /\ mark' = [s \in Servers |-> IF s \in A /\ LongestTTLRecordedFirst
                                     THEN [mark[s] EXCEPT !.long = Max({@, t})] ELSE mark[s]]
       /\ ballot' = IF Cardinality(A) >= Need(p)
                    THEN [ballot EXCEPT ![p] = [Idle EXCEPT !.st = "holding", !.ttl = t, !.left = Max({ballot[p].left, t})]]
                    ELSE ballot
       /\ step' = <<p, "renews the lock on", A, "with TTL", t>>
  /\ UNCHANGED <<chan, plan, members, tokens>>

-----------------------------------------------------------------------------
(* Masters that forget. *)

\* A flush, a restart with an older snapshot and a jump of the clock have one thing in common: locks
\* end too early.  The rules make one case of them: the master has no marker of its present memory.
\* Who sees a restart cannot know whether anything was lost.  After a reload nothing is.
\* At most AtOnce masters are without, among those that were counted before the latest change.
Forget(s, cause) ==
  /\ mark[s].there /\ s \notin Down
  /\ Cardinality({x \in List(Less(newest)) \ {s} : ~mark[x].there}) < AtOnce
  /\ lock' = IF cause = "reload" THEN lock ELSE [lock EXCEPT ![s] = Free]
  /\ mark' = [mark EXCEPT ![s] =
       IF (cause \in {"restart", "reload"} /\ ~RunIdChecked) \/ (cause = "jump" /\ ~JumpIsAmnesia)
       THEN [@ EXCEPT !.from = 0] ELSE NoMark]
  /\ step' = <<s, CASE cause = "flush" -> "is flushed" [] cause = "restart" -> "restarts with older data"
                    [] cause = "reload" -> "restarts with its data"
                    [] cause = "jump" -> "has its clock set forward: locks end">>
  /\ UNCHANGED <<chan, ballot, plan, members, tokens>>

\* Another server that became a master by the latest change.
IsNew(s, e) == e > 0 /\ s \notin List(Less(e))

\* Every quorum of list e has a member in T.
Meets(T, e) == Cardinality(List(e) \ T) < Quorum(e)

\* Those of the masters in reach that tell p what s has forgotten.
Tell(p, s, reach) == {x \in (List(know[p]) \cap reach) \ ({s} \cup Down) : mark[x].there \/ ~OnlyMarkersTell}
Reach == IF Unread THEN SUBSET Servers ELSE {Servers}

\* Does p know the longest TTL and the last token that s may have forgotten?
Learnt(p, s, reach) ==
  LET e == know[p]
      T == Tell(p, s, reach)
  IN /\ ~IsNew(s, e)  \* another server may have been the only one that p reads of those that knew
     /\ LongestTTLFromEnough => Meets(T, e)
     \* Locks of the list before may still be held.  A server that is new has the cap on record.
     /\ (EarlierListTells /\ e > 0) => (Meets(T, Less(e)) \/ \E x \in T : IsNew(x, e))
     \* Ballots that counted what s has forgotten may still raise the records of others.
     /\ AskedAfterPatience => \A q \in Procs : s \notin ballot[q].votes \cup tballot[q].raised

\* The marker that p gives to s, which has none.
NewMark(p, s, reach) ==
  LET e    == know[p]
      T    == Tell(p, s, reach)
      ok   == Learnt(p, s, reach)
      long == IF ok THEN Max({mark[x].long : x \in T} \cup {Delay}) ELSE MaxQ
      wait == CASE IsNew(s, e) -> IF NewServerQuarantined THEN MaxQ ELSE 0
                [] ~NewSetWaits /\ \A x \in List(e) : ~mark[x].there -> 0
                [] OTHER -> IF QuarantineCoversTTL THEN long ELSE long - 1
  IN [there |-> TRUE, from |-> wait, ep |-> e,
      long |-> IF ok \/ CapOnRecord THEN long ELSE Delay,
      tok |-> IF ~TokenLearnedAgain THEN 0
              ELSE IF ok THEN Max({mark[x].tok : x \in T} \cup {0}) ELSE MaxToken]

\* May p write a marker of s?
MayMend(p, s, reach) ==
  LET e == know[p] IN
  /\ s \in List(e) \ Down /\ ~mark[s].there
  /\ ReplacedIsStopped => s \in List(newest)
  /\ ~CapRatherThanWait => Learnt(p, s, reach)
  \* Every quorum of the list before has a master with the new epoch on record.
  /\ (EpochOnRecordFirst /\ IsNew(s, e)) => Meets({x \in Tell(p, s, reach) : mark[x].there /\ mark[x].ep = e}, e - 1)

Written(p, s, m) ==
  /\ mark' = [mark EXCEPT ![s] = m]
  /\ step' = <<p, "writes the marker of", s, "with quarantine", m.from, "and longest TTL", m.long, "and token", m.tok>>

Mend(p, s, reach) ==
  /\ ~LateWrites
  /\ MayMend(p, s, reach)
  /\ Written(p, s, NewMark(p, s, reach))
  /\ UNCHANGED <<lock, chan, ballot, plan, members, tokens>>

Plan(p, s, reach) ==
  /\ LateWrites /\ plan[p] = NoPlan
  /\ MayMend(p, s, reach)
  /\ plan' = [plan EXCEPT ![p] = [at |-> s, mark |-> NewMark(p, s, reach)]]
  /\ step' = <<p, "plans a marker of", s>>
  /\ UNCHANGED <<lock, mark, chan, ballot, members, tokens>>

\* A plan is carried out only if what p saw, no marker, is there still or again.
Write(p) ==
  /\ plan[p] # NoPlan /\ ~mark[plan[p].at].there
  /\ Written(p, plan[p].at, plan[p].mark)
  /\ plan' = [plan EXCEPT ![p] = NoPlan]
  /\ UNCHANGED <<lock, chan, ballot, members, tokens>>

-----------------------------------------------------------------------------
(* Who the masters are. *)

Told(p, e) == \* p has the list of epoch e from now on
  /\ know' = [know EXCEPT ![p] = e]
  /\ IF BallotEndsWithEpoch /\ ballot[p].st = "asking"
     THEN /\ ballot' = [ballot EXCEPT ![p] = Idle]
          /\ chan' = [chan EXCEPT ![p] = TakeBack(p)]
     ELSE UNCHANGED <<ballot, chan>>

\* The operator reloads one process with the next list, which differs by one server.
Change(p) ==
  /\ know[p] = newest /\ newest < MaxEpoch
  /\ OneChangeAtATime => /\ settle = 0
                         /\ \A s \in List(newest) : mark[s].there /\ mark[s].from = 0 /\ mark[s].ep = newest
  /\ newest' = newest + 1
  /\ settle' = MaxQ
  /\ Told(p, newest + 1)
  /\ step' = <<"the operator gives", p, "the masters", List(newest + 1)>>
  /\ UNCHANGED <<lock, mark, plan, tokens>>

\* p reads of a later epoch in a marker of one of its masters, or is reloaded, too.
Learn(p) ==
  /\ know[p] < newest
  /\ \/ OperatorTellsAll /\ Told(p, newest)
     \/ \E s \in List(know[p]) \ Down : mark[s].there /\ mark[s].ep > know[p] /\ Told(p, mark[s].ep)
  /\ step' = <<p, "learns of the masters", List(know'[p])>>
  /\ UNCHANGED <<lock, mark, plan, newest, settle, tokens>>

\* p puts its epoch on record.
MayRecord(p, s) == s \in List(know[p]) \ Down /\ mark[s].there /\ mark[s].ep < know[p]
Record(p, s) ==
  /\ MayRecord(p, s)
  /\ mark' = [mark EXCEPT ![s].ep = know[p]]
  /\ step' = <<p, "puts on record in the marker of", s, "that the masters are", List(know[p])>>
  /\ UNCHANGED <<lock, chan, ballot, plan, members, tokens>>

-----------------------------------------------------------------------------
(* Fencing tokens.  Which number p tries is a matter of progress only. *)

AskToken(p, n) ==
  /\ tballot[p] = NoAsk
  /\ tballot' = [tballot EXCEPT ![p] = [n |-> n, base |-> Max(given \cup {0}), raised |-> {}]]
  /\ step' = <<p, "asks for the token", n>>
  /\ UNCHANGED <<lock, mark, chan, ballot, plan, members, given>>

Raise(p, s) ==
  /\ tballot[p].n > 0 /\ s \in List(know[p]) \ tballot[p].raised /\ MayVote(p, s)
  /\ TokenOnlyRaised => mark[s].tok < tballot[p].n
  /\ mark' = [mark EXCEPT ![s].tok = tballot[p].n]
  /\ tballot' = [tballot EXCEPT ![p].raised = @ \cup {s}]
  /\ step' = <<s, "records the token", tballot[p].n, "for", p>>
  /\ UNCHANGED <<lock, chan, ballot, plan, members, given>>

MayGive(p) ==
  Cardinality(tballot[p].raised) >= (IF TokenOnQuorum THEN Quorum(know[p]) ELSE Cardinality(List(know[p])) \div 2)

EndToken(p) ==
  /\ tballot[p].n > 0
  /\ tballot' = [tballot EXCEPT ![p] = NoAsk]
  /\ given' = IF MayGive(p) THEN given \cup {tballot[p].n} ELSE given
  /\ step' = <<p, IF MayGive(p) THEN "gives its client the token" ELSE "gives up the token", tballot[p].n>>
  /\ UNCHANGED <<lock, mark, chan, ballot, plan, members>>

-----------------------------------------------------------------------------
\* n ticks pass, in which nothing else happens.  A ballot whose validity is over is lost.  A process
\* that still has the old list when the operator's time is over is stopped; the one that takes its
\* place has the new list.
Pass(n) ==
  LET old(p)  == OperatorTellsAll /\ settle > Longest /\ settle <= Longest + n /\ know[p] # newest
      over(p) == ballot[p].st = "asking" /\ (old(p) \/ (ValidityChecked /\ ballot[p].left <= n))
  IN /\ lock' = [s \in Servers |-> IF lock[s].ttl <= n THEN Free ELSE [lock[s] EXCEPT !.ttl = @ - n]]
     /\ mark' = [s \in Servers |-> [mark[s] EXCEPT !.from = Minus(@, n)]]
     /\ ballot' = [p \in Procs |->
          IF over(p) \/ (ballot[p].st = "holding" /\ ballot[p].left <= n) THEN Idle
          ELSE [ballot[p] EXCEPT !.left = Minus(@, n)]]
     /\ chan' = [p \in Procs |-> IF over(p) THEN TakeBack(p) ELSE chan[p]]
     /\ plan' = IF PlanExpires THEN [p \in Procs |-> NoPlan] ELSE plan
     /\ know' = [p \in Procs |-> IF old(p) THEN newest ELSE know[p]]
     /\ settle' = Minus(settle, n)
     /\ step' = <<"time passes">>
     /\ UNCHANGED <<newest, tokens>>

Tick == Pass(1)

Next ==
  \/ Tick
  \/ \E s \in Servers, cause \in Causes : Forget(s, cause)
  \/ \E p \in Procs :
       \/ Ask(p) \/ Win(p) \/ Close(p) \/ Take(p) \/ Renew(p)
       \/ Write(p) \/ Change(p) \/ Learn(p) \/ EndToken(p)
       \/ \E n \in 1..MaxToken : AskToken(p, n)
       \/ \E s \in Servers : Execute(p, s) \/ Record(p, s) \/ Raise(p, s)
       \/ \E s \in Servers, reach \in Reach : Mend(p, s, reach) \/ Plan(p, s, reach)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
TypeOK ==
  /\ lock \in [Servers -> [val : Procs \cup {None}, ttl : 0..MaxQ]]
  /\ mark \in [Servers -> [there : BOOLEAN, from : 0..MaxQ, long : 0..MaxQ, tok : 0..MaxToken, ep : Epochs]]
  /\ know \in [Procs -> Epochs]

\* No two clients hold the lock at the same moment.
Mutex == Cardinality({p \in Procs : ballot[p].st = "holding"}) <= 1

\* A token is new, and larger than all that were given before it was asked for.
Tokens == \A p \in Procs : (tballot[p].n > 0 /\ MayGive(p)) =>
            tballot[p].n \notin given /\ tballot[p].n > tballot[p].base

\* While a master that is not Down does not vote, there is a step towards its vote.  Each such step is
\* taken once, unless something is forgotten anew: so all of them vote in the end.
Progress ==
  \/ \A s \in List(newest) \ Down : mark[s].there /\ mark[s].from = 0 /\ mark[s].ep = newest
  \/ \E s \in Servers : mark[s].from > 0
  \/ \E p \in Procs : know[p] = newest /\ \E s \in List(newest) : MayRecord(p, s) \/ MayMend(p, s, IF Unread THEN {} ELSE Servers)
=============================================================================
