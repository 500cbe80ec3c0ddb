-------------------------------- MODULE Trace --------------------------------
(***************************************************************************)
(* Is a run of the program a history of Redlock.tla?  Traces are runs of    *)
(* the simulation (../sim_trace_test.go), written down as the module        *)
(* TraceData.  Each step of a trace allows one action, for one process and  *)
(* one master, and tells its result.  A trace is accepted if TLC gets to    *)
(* its end.  It prints how far it gets: the number of the trace, and the    *)
(* number of the step.                                                      *)
(*                                                                         *)
(* A tick is a millisecond, because masters count TTLs in milliseconds; a   *)
(* key lives to the end of its last one, so a TTL has a tick more.  A       *)
(* process of the module is one client's token here.                        *)
(***************************************************************************)
EXTENDS Redlock, TraceData  \* Traces, TraceProcs, TraceMasters

VARIABLES trace, done  \* done steps of the trace have been taken

NoSymmetry == {}

Next1(p, s) == IF chan[p][s] = <<>> THEN "nothing" ELSE chan[p][s][1]

\* Some of what p sent to S is not executed any more: a connection broke, or there was none.  The module
\* needs no such action: a lost acquire is one that finds the lock taken, or one with its undo right
\* behind it.
Drop(p, S, Kinds(_)) ==
  /\ chan' = [chan EXCEPT ![p] = [s \in Servers |-> IF s \in S THEN SelectSeq(chan[p][s], LAMBDA m : m \notin Kinds(s)) ELSE chan[p][s]]]
  /\ step' = <<p, "does not reach", S>>
  /\ UNCHANGED <<lock, mark, ballot, plan, members, tokens>>

\* Before p asks again: what belongs to earlier ballots, and deletions that find nothing.
Past(p, s) == {"late"} \cup (IF lock[s].val # p THEN {"delete"} ELSE {})

Same == UNCHANGED vars

\* What is forgotten before there is a marker again was no vote.
ForgetAgain(s) ==
  /\ lock' = [lock EXCEPT ![s] = Free]
  /\ step' = <<s, "is flushed again">>
  /\ UNCHANGED <<mark, chan, ballot, plan, members, tokens>>

\* p is a process, s a master, S a set of masters, x a number of ticks.
Allows(kind, p, s, S, x) ==
  CASE kind = "time passes"    -> Pass(x)
    [] kind = "asks"           -> Ask(p) /\ ballot'[p].ttl = x
    [] kind = "wins"           -> Win(p)
    [] kind = "gives up"       -> ballot[p].st # "holding" /\ IF ballot[p].st = "asking" THEN Close(p) ELSE Same
    [] kind = "releases"       -> ballot[p].st = "holding" /\ Close(p)
    [] kind = "does not reach" -> Drop(p, S, LAMBDA m : {"acquire"})
    [] kind = "asks anew"      -> Drop(p, S, LAMBDA m : Past(p, m))
    [] kind = "has lost"       -> IF Next1(p, s) = "late" THEN Drop(p, {s}, LAMBDA m : {"late"}) ELSE Same
    [] kind = "is rejected"    -> Drop(p, {s}, LAMBDA m : {"acquire", "late"})
    [] kind = "is granted"     -> Next1(p, s) # "delete" /\ lock[s] = Free /\ Execute(p, s)
    [] kind = "is refused"     -> Next1(p, s) # "delete" /\ lock[s] # Free /\ Execute(p, s)
    [] kind = "deletes"        -> Next1(p, s) = "delete" /\ lock[s].val = p /\ Execute(p, s)
    [] kind = "finds nothing"  -> lock[s].val # p /\ IF Next1(p, s) = "delete" THEN Execute(p, s) ELSE Same
    [] kind = "spares"         -> lock[s].val = p /\ Same
    [] kind = "is flushed"     -> IF mark[s].there THEN Forget(s, "flush") ELSE ForgetAgain(s)
    [] kind = "restarts"       -> IF mark[s].there THEN Forget(s, "reload") ELSE Same
    [] kind = "is marked"      -> \E q \in Procs, reach \in Reach : Mend(q, s, reach) /\ mark'[s].from = x

TraceInit == Init /\ trace \in DOMAIN Traces /\ done = 0
TraceNext ==
  /\ done < Len(Traces[trace])
  /\ LET e == Traces[trace][done + 1] IN Allows(e[1], e[2], e[3], e[4], e[5])
  /\ done' = done + 1 /\ trace' = trace
  /\ PrintT(<<trace, done'>>)
TraceSpec == TraceInit /\ [][TraceNext]_<<vars, trace, done>>
=============================================================================
