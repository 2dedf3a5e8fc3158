-------------------------------- MODULE Prompt --------------------------------
\* How long anybody waits if all messages are lost. Everybody alive acts in every tick: whoever waits asks or confirms
\* once, an owner renews, works for a tick at most, and then releases or ends its turn. A command lands and is answered
\* at once, except for the events of Env. Nothing bounds the number of commands here: numbers are ranks (see Put).
EXTENDS Redis, TLC

CONSTANTS
  Capacity, \* the units
  Big,      \* clients that need all of them; the others need one
  NE,       \* events of Env in a behaviour
  Env,      \* what else happens: see Sends, Else
  Numsub,   \* Redis knows which clients are there; FALSE: it is a Cluster
  Patience  \* nobody waits longer

VARIABLES
  srv,      \* Redis
  old,      \* Redis before its last write
  P,        \* P[c]: what client c knows
  late,     \* commands that land later
  events,
  idle      \* for so long what the first one in line wants, of those alive, has been free

vars == <<srv, old, P, late, events, idle>>

Need(c) == IF c \in Big THEN Capacity ELSE 1

NewClient == [has |-> "nothing", rec |-> 0, last |-> 0, floor |-> 0, back |-> 0,
  left   |-> FALSE,  \* something may be left
  wants  |-> FALSE,  \* somebody waits or works
  state  |-> "well", \* or dead; mute: it hears no answers any more
  acted  |-> FALSE,  \* in this tick
  worked |-> FALSE,  \* the owner has been in for a tick
  wait   |-> 0]      \* for so many ticks it has wanted the units

Init ==
  /\ srv = Empty /\ old = Empty /\ late = {} /\ events = 0 /\ idle = 0
  /\ P = [c \in Clients |-> NewClient]

Alive(c) == P[c].state # "dead"

\* Numbers of a client are only compared, so each is replaced by its rank.
Put(s, o, p, l) ==
  LET in(t, c) == {t.rec[c].n} \cup {t.line[i].n : i \in Places(t, c)}
      used(c) == (in(s, c) \cup in(o, c) \cup {p[c].rec, p[c].floor, p[c].back, p[c].last}
                  \cup UNION {{x.n, x.since} : x \in {y \in l : y.c = c}}) \ {0}
      r(c, n) == Cardinality({m \in used(c) : m <= n})
      of(t) == [t EXCEPT !.rec = [c \in Clients |-> [@[c] EXCEPT !.n = r(c, @)]],
            !.line = [i \in DOMAIN @ |-> [@[i] EXCEPT !.n = r(t.line[i].c, @)]]]
  IN /\ srv' = of(s) /\ old' = IF "failover" \in Env THEN of(o) ELSE Empty
     /\ P' = [c \in Clients |-> [p[c] EXCEPT !.rec = r(c, @), !.floor = r(c, @), !.back = r(c, @), !.last = r(c, @)]]
     /\ late' = {[x EXCEPT !.n = r(x.c, @), !.since = r(x.c, @)] : x \in l}

Spend(n) == events + n <= NE /\ events' = events + n
Dead == IF Numsub THEN {c \in Clients : ~Alive(c)} ELSE {}

\* What a client knows after the answer y to x. a: what it knew before it was sent; b: after that.
Heard(a, b, x, y) ==
  CASE a.state = "mute"   -> b
    [] y.o = "failed"     -> [a EXCEPT !.last = b.last, !.acted = TRUE]
    [] y.o = "waits"      -> [b EXCEPT !.has = "place", !.back = 0]
    [] y.u > 0            -> [b EXCEPT !.has = "units", !.rec = y.rec, !.back = 0, !.wait = 0, !.acted = FALSE]
    [] OTHER              -> [b EXCEPT !.has = "nothing", !.back = 0, !.left = FALSE, !.acted = y.o = "has"] \* else it asks at once

\* Client c keeps so many units and wants so many. The command lands and is answered, or it meets one of the events.
Sends(c, keep, want) ==
  LET a == P[c]
      n == a.last + 1
      have == IF a.has = "units" THEN Need(c) ELSE 0
      x == [c |-> c, n |-> n, have |-> have, keep |-> keep, want |-> want, place |-> a.has = "place", again |-> FALSE, try |-> FALSE,
            since |-> CASE have > 0 -> a.rec [] keep > 0 -> a.floor [] OTHER -> a.back,
                  cap |-> Capacity, of |-> Capacity, mark |-> 0, tok |-> Past, age |-> 0]
      b == [a EXCEPT !.last = n, !.acted = TRUE, !.worked = FALSE, !.left = TRUE, !.back = IF have > 0 THEN a.rec ELSE @, !.rec = 0,
              !.has = IF @ = "place" /\ want > 0 THEN @ ELSE "nothing", !.floor = IF keep > 0 THEN @ ELSE n]
      silent == [b EXCEPT !.acted = FALSE] \* the next command follows at once
      y == State(srv, x, Dead, FALSE)
      z == State(srv, x, Dead, TRUE)
  IN \/ /\ Put(y.s, srv, [P EXCEPT ![c] = Heard(a, b, x, y)], late) /\ UNCHANGED events
     \/ /\ "lost" \in Env /\ Spend(1) \* the command, or its answer
        /\ \/ Put(srv, old, [P EXCEPT ![c] = silent], late)
           \/ Put(y.s, srv, [P EXCEPT ![c] = silent], late)
     \/ /\ "late" \in Env /\ Spend(1)
        /\ Put(srv, old, [P EXCEPT ![c] = silent], late \cup {x})
     \/ /\ "open" \in Env /\ have > 0 /\ z.s.open > 0 /\ Spend(1)
        /\ Put(z.s, srv, [P EXCEPT ![c] = Heard(a, b, x, z)], late)
     \/ /\ "moves" \in Env /\ Spend(1)
        /\ LET v == WithoutLine(srv, x) IN Put(v.s, srv, [P EXCEPT ![c] = Heard(a, b, x, v)], late)

Act(c) == LET a == P[c] IN
  /\ Alive(c)
  /\ \/ a.has = "nothing" /\ a.wants  /\ ~a.acted /\ Sends(c, 0, Need(c))
     \/ a.has = "nothing" /\ ~a.wants /\ ~a.acted /\ a.left /\ Sends(c, 0, 0)
     \/ a.has = "place" /\ ~a.acted /\ Sends(c, Need(c), Need(c))
     \/ a.has = "units" /\ Sends(c, 0, Need(c))
     \/ a.has = "units" /\ Sends(c, 0, 0)
     \/ a.has = "units" /\ ~a.acted /\ ~a.worked
        /\ LET y == Renew(srv, [c |-> c, have |-> Need(c), since |-> a.rec]) IN
           Put(y.s, srv, [P EXCEPT ![c] = [a EXCEPT !.acted = TRUE, !.has = IF y.o = "has" THEN @ ELSE "nothing",
                 !.rec = IF y.o = "has" THEN @ ELSE 0]], late)
        /\ UNCHANGED events
     \/ a.has = "nothing" /\ ~a.acted /\ a.state = "well" \* somebody comes, or nobody waits any more
        /\ Put(srv, old, [P EXCEPT ![c].wants = ~@, ![c].wait = 0], late) /\ UNCHANGED events

Land == \E x \in late :
  Put(State(srv, x, Dead, FALSE).s, srv, P, late \ {x}) /\ UNCHANGED events

Event(s, p) == Spend(1) /\ Put(s, srv, p, late)

Else ==
  \/ \E c \in Clients : P[c].state = "well" /\ (P[c].wants \/ P[c].has # "nothing") /\
       \/ /\ "crash" \in Env \/ ("dies" \in Env /\ P[c].has # "units")
          /\ Event(srv, [P EXCEPT ![c].state = "dead", ![c].wait = 0])
       \/ "mute" \in Env  /\ Event(srv, [P EXCEPT ![c].state = "mute", ![c].wait = 0])
  \/ "delete" \in Env /\ srv.held > 0 /\ Event(Deleted(srv), P)
  \/ "stranger" \in Env /\ srv.held = 0 /\ srv.other = Nobody /\ Event([srv EXCEPT !.other = [by |-> "stranger", ttl |-> L]], P)
  \/ "failover" \in Env /\ Event(old, P)

\* A client that must still act.
Due(c) == LET a == P[c] IN
  Alive(c) /\ (a.wants \/ a.has # "nothing" \/ a.left) /\ (~a.acted \/ (a.has = "units" /\ a.worked))

\* What the first one in line wants, of those alive, is free.
Free(s) == LET well == {i \in Live(s) : P[s.line[i].c].state = "well"}
               t == IF ~Document /\ s.next = 0 THEN Scan(s, "nobody") ELSE s
           IN well # {} /\ s.open = 0 /\ Fits(t, t.line[Least(well)], "nobody").ok

Tick ==
  /\ \A c \in Clients : ~Due(c)
  /\ srv' = Aged(srv) /\ old' = Aged(old)
  /\ P' = [c \in Clients |-> [P[c] EXCEPT !.acted = FALSE, !.worked = @ \/ P[c].has = "units",
             !.wait = IF P[c].state = "well" /\ P[c].wants /\ P[c].has # "units" THEN Min(@ + 1, Patience + 1) ELSE 0]]
  /\ idle' = IF Free(srv') THEN Min(idle + 1, 3) ELSE 0
  /\ UNCHANGED <<late, events>>

Next == Tick \/ ((Land \/ Else \/ \E c \in Clients : Act(c)) /\ idle' = IF Free(srv') THEN idle ELSE 0)
Spec == Init /\ [][Next]_vars
Symmetry == IF Big \in {{}, Clients} THEN Permutations(Clients) ELSE Permutations(Clients \ Big)

-----------------------------------------------------------------------------

\* Free units beside a live place that wants them are given within one confirmation.
Prompt == idle <= 1
Served == \A c \in Clients : P[c].wait <= Patience
==============================================================================
