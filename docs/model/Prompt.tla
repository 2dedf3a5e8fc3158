-------------------------------- MODULE Prompt --------------------------------
\* How long anybody waits if all messages are lost. Everybody alive acts in every tick: whoever
\* waits asks or confirms once, an owner renews, works for a tick at most, and then releases or ends
\* its turn. A statement lands and is answered at once, except for the events of Env.
\* Nothing bounds the number of statements here: numbers are ranks (see Put).
EXTENDS Scripts, TLC

CONSTANTS
  Clients,
  NE,       \* events of Env in a behaviour
  Env,      \* what else happens: see States, Else
  Numsub,   \* Redis knows which clients are there; FALSE: it is a Cluster
  Patience  \* nobody waits longer

VARIABLES
  srv,      \* Redis: see Scripts
  old,      \* Redis before its last write
  P,        \* P[c]: what client c knows
  late,     \* statements that land later
  events,
  idle      \* for how long the key has been free beside a live place of somebody alive

vars == <<srv, old, P, late, events, idle>>

NewClient == [have |-> "nothing", unit |-> 0, last |-> 0, floor |-> 0, since |-> 0,
  wants  |-> FALSE,  \* somebody waits or works
  state  |-> "well", \* or dead; mute: it hears no answers any more
  acted  |-> FALSE,  \* in this tick
  worked |-> FALSE,  \* the owner has been in for a tick
  wait   |-> 0]      \* for so many ticks it has wanted the key

Init ==
  /\ srv = Empty /\ old = Empty /\ late = {} /\ events = 0 /\ idle = 0
  /\ P = [c \in Clients |-> NewClient]

Field(h) == h[1] \in Clients
Alive(c) == P[c].state # "dead"

\* Numbers of a client are only compared, so each is replaced by its rank.
Put(s, o, p, l) ==
  LET in(t, c) == (IF t.h[1] = c THEN {t.h[2]} ELSE {})
                    \cup {t.line[i].n : i \in Places(t, c)}
      used(c) == (in(s, c) \cup in(o, c) \cup {p[c].unit, p[c].floor, p[c].since, p[c].last}
                  \cup UNION {{x.n, x.since} : x \in {y \in l : y.c = c}}) \ {0}
      r(c, n) == Cardinality({m \in used(c) : m <= n})
      f(h) == IF Field(h) THEN <<h[1], r(h[1], h[2])>> ELSE h
      of(t) == [t EXCEPT !.h = f(@), !.line = [i \in DOMAIN @ |-> [@[i] EXCEPT !.n = r(t.line[i].c, @)]]]
  IN /\ srv' = of(s) /\ old' = IF "failover" \in Env THEN of(o) ELSE Empty
     /\ P' = [c \in Clients |-> [p[c] EXCEPT !.unit = r(c, @), !.floor = r(c, @), !.since = r(c, @), !.last = r(c, @)]]
     /\ late' = {[x EXCEPT !.n = r(x.c, @), !.since = r(x.c, @)] : x \in l}

Spend(n) == events + n <= NE /\ events' = events + n
Dead == IF Numsub THEN {c \in Clients : ~Alive(c)} ELSE {}

\* What the client knows after the answer y to x. a: what it knew when it had sent it.
Heard(a, x, y) ==
  CASE a.state = "mute" \/ y.o \in {"void", "again"} -> a
    [] y.o = "has"    -> [a EXCEPT !.have = "unit", !.unit = y.unit, !.wait = 0, !.acted = FALSE]
    [] y.o = "waits"  -> [a EXCEPT !.have = "place"]
    [] OTHER          -> [a EXCEPT !.have = "nothing", !.since = 0, !.acted = y.o = "nothing"] \* P7: gone, it asks at once

\* Client c states k. It lands and is answered, or it meets one of the events.
States(c, k) ==
  LET a == P[c]
      n == a.last + 1
      w == What[k]
      left == IF a.since = 0 THEN n ELSE a.since
      x == [k |-> k, c |-> c, n |-> n, mark |-> 0, tok |-> Past, age |-> 0,
            since |-> CASE w.have = "nothing" -> left [] w.have = "place" -> a.floor [] OTHER -> a.unit]
      b == [a EXCEPT !.last = n, !.acted = TRUE, !.worked = FALSE, !.since = left,
              !.have = IF w.keep = 1 THEN @ ELSE "nothing", !.floor = IF w.keep = 1 THEN @ ELSE n]
      silent == [b EXCEPT !.acted = FALSE] \* P8: the next statement follows at once
      y == State(srv, x, Dead, FALSE)
      z == State(srv, x, Dead, TRUE)
  IN \/ /\ Put(y.s, srv, [P EXCEPT ![c] = Heard(b, x, y)], late) /\ UNCHANGED events
     \/ /\ "lost" \in Env /\ Spend(1) \* the statement, or its answer
        /\ \/ Put(srv, old, [P EXCEPT ![c] = silent], late)
           \/ Put(y.s, srv, [P EXCEPT ![c] = silent], late)
     \/ /\ "late" \in Env /\ Spend(1)
        /\ Put(srv, old, [P EXCEPT ![c] = silent], late \cup {x})
     \/ /\ "open" \in Env /\ w.have = "unit" /\ z.s.open > 0 /\ Spend(1)
        /\ Put(z.s, srv, [P EXCEPT ![c] = Heard(b, x, z)], late)
     \/ /\ "tryagain" \in Env /\ Spend(1)
        /\ LET u == IF w.keep = 0 /\ w.want = 0 THEN WithoutLine(srv, x) ELSE Say(srv, {}, "again") IN
           Put(u.s, srv, [P EXCEPT ![c] = Heard(b, x, u)], late)

Act(c) == LET a == P[c] IN
  /\ Alive(c)
  /\ \/ a.have = "nothing" /\ a.wants  /\ ~a.acted /\ States(c, "ask")
     \/ a.have = "nothing" /\ ~a.wants /\ ~a.acted /\ a.since > 0 /\ States(c, "leave")
     \/ a.have = "place" /\ ~a.acted /\ States(c, "confirm")
     \/ a.have = "unit" /\ States(c, "turn")
     \/ a.have = "unit" /\ States(c, "release")
     \/ a.have = "unit" /\ ~a.acted /\ ~a.worked \* a renewal
        /\ LET y == Renew(srv, [c |-> c, unit |-> a.unit]) IN
           Put(y.s, srv, [P EXCEPT ![c] = [a EXCEPT !.acted = TRUE, !.have = IF y.o = "has" THEN @ ELSE "nothing"]], late)
        /\ UNCHANGED events
     \/ a.have = "nothing" /\ ~a.acted /\ a.state = "well" \* somebody comes, or nobody waits any more
        /\ Put(srv, old, [P EXCEPT ![c].wants = ~@, ![c].wait = 0], late) /\ UNCHANGED events

Land == \E x \in late :
  Put(State(srv, x, Dead, FALSE).s, srv, P, late \ {x}) /\ UNCHANGED events

Event(s, p) == Spend(1) /\ Put(s, srv, p, late)

Else ==
  \/ \E c \in Clients : P[c].state = "well" /\ (P[c].wants \/ P[c].have # "nothing") /\
       \/ /\ "crash" \in Env \/ ("dies" \in Env /\ P[c].have # "unit")
          /\ Event(srv, [P EXCEPT ![c].state = "dead", ![c].wait = 0])
       \/ "mute" \in Env  /\ Event(srv, [P EXCEPT ![c].state = "mute", ![c].wait = 0])
  \/ "delete" \in Env /\ Field(srv.h) /\ Event([srv EXCEPT !.h = Nobody, !.ttl = 0], P)
  \/ "stranger" \in Env /\ srv.h = Nobody /\ Event([srv EXCEPT !.h = Stranger, !.ttl = L], P)
  \/ "failover" \in Env /\ Event(old, P)

\* A client that must still act.
Due(c) == LET a == P[c] IN
  Alive(c) /\ (a.wants \/ a.have # "nothing" \/ a.since > 0) /\ (~a.acted \/ (a.have = "unit" /\ a.worked))

Beside(s) == s.open = 0 /\ \E i \in Live(s) : P[s.line[i].c].state = "well"
Tick ==
  /\ \A c \in Clients : ~Due(c)
  /\ srv' = Aged(srv) /\ old' = Aged(old)
  /\ P' = [c \in Clients |-> [P[c] EXCEPT !.acted = FALSE, !.worked = @ \/ P[c].have = "unit",
             !.wait = IF P[c].state = "well" /\ P[c].wants /\ P[c].have # "unit" THEN Min(@ + 1, Patience + 1) ELSE 0]]
  /\ idle' = IF srv'.h = Nobody /\ Beside(srv') THEN Min(idle + 1, 3) ELSE 0
  /\ UNCHANGED <<late, events>>

Next == Tick \/ ((Land \/ Else \/ \E c \in Clients : Act(c)) /\ idle' = IF srv'.h # Nobody THEN 0 ELSE idle)
Spec == Init /\ [][Next]_vars
Symmetry == Permutations(Clients)

-----------------------------------------------------------------------------

\* A free key beside a live place is called within one confirmation.
Prompt == idle <= 1
Served == \A c \in Clients : P[c].wait <= Patience
==============================================================================
