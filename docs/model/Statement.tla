------------------------------ MODULE Statement ------------------------------
\* Processes that state what they have of one lock, and what they want (protocol version 3). The
\* rules are P1 to P16 of README.md, and Scripts.tla is Redis' side.
\*
\* A client states at any time, whatever of its earlier statements is under way. A statement lands at
\* any time, in any order, or never; its answer is heard at any time, or never. A call is heard at any
\* time, again, or never. While a client takes no step and time goes on (Tick), it is stopped.
EXTENDS Scripts, TLC

CONSTANTS
  Clients, First,  \* First may state Most times; everybody else, or all if First is no client, Others times
  Most, Others,
  NR,              \* renewals of each client
  NE,              \* events of Env in a behaviour
  M,               \* the margin
  MinHold,         \* 0, or how long the key stays taken after an owner has entered
  Replicas,        \* nobody enters before a renewal has reached the replica (P12)
  Can, OthersCan,  \* what First and others do: the names in What, and "renew" "cancel" "forget" "handoff" "cleancall"
  Twice,           \* statements that the network may deliver twice
  Env              \* what else happens: see Else, Land

VARIABLES
  srv, rep,        \* Redis and its replica: see Scripts
  net,             \* statements and renewals under way, and answers that were not heard yet
  calls,           \* all messages "called" that were ever sent
  C,               \* C[c]: what client c knows
  events,          \* of Env, so far
  cut,             \* units that were deleted by hand, or lost with a server: nothing is promised to their owners
  newest,          \* the newest token with which anybody has entered
  wrong            \* "", or the promise that a step has broken

vars == <<srv, rep, net, calls, C, events, cut, newest, wrong>>

Margin     == IF Mutant = "NoMargin" THEN 0 ELSE M
N(c)       == IF c = First THEN Most ELSE Others
Does(c, k) == k \in IF c = First THEN Can ELSE OthersCan

NewClient == [
  have   |-> "nothing", \* nothing, place, unit: as it was told
  unit   |-> 0,         \* the number of the unit
  last   |-> 0,         \* the number of the last statement
  floor  |-> 0,         \* news of a smaller number give nothing (P5)
  since  |-> 0,         \* the smallest number that may have left something; 0: none
  news   |-> 0,         \* the greatest number of which it has heard
  lease  |-> 0,         \* how much is left of the confirmed lease: s + TTL - now (P6)
  safe   |-> FALSE,     \* Replicas: a renewal of the unit has reached the replica
  reacts |-> 0,         \* for how long an owner that was told of its loss may still work
  rel    |-> 0,         \* the unit whose release has no answer
  freed  |-> 0,         \* the truth: the last unit that a release of this client has given back
  min    |-> 0,         \* what is left of MinHold
  tok    |-> Past,        \* the token of the owner, and how many hand-offs
  hops   |-> 0,         \*   there were since it was heard of,
  heard  |-> 0,         \*   so long ago
  renews |-> 0,         \* renewals that were sent
  age    |-> 0]         \* the time since the last statement (for a mutant)

Init ==
  /\ srv = Empty /\ rep = Empty /\ net = {} /\ calls = {}
  /\ C = [c \in Clients |-> NewClient]
  /\ events = 0 /\ cut = {} /\ newest = Past - 1 /\ wrong = ""

\* An owner may be at work and rely on the unit. Whether there is one makes no difference here.
Relies(a) == a.have = "unit" /\ a.lease > Margin /\ (Replicas /\ Mutant # "EntersBeforeWait" => a.safe)

Frees == {"release", "again", "turn"}

Set(c, a) == C' = [C EXCEPT ![c] = a]
Same == UNCHANGED <<srv, rep, calls, events, cut, newest, wrong>>

\* P5. What is sent is given, and nothing of a smaller number counts any more.
Given(a, floor) == [a EXCEPT !.have = "nothing", !.lease = 0, !.safe = FALSE, !.floor = floor]

\* An owner is told of its loss, and may be at work until the confirmed lease is over.
Told(a, left) == [Given(a, IF Mutant = "LossKeepsFloor" THEN a.floor ELSE a.last + 1) EXCEPT !.reacts = left, !.min = 0]

-----------------------------------------------------------------------------
\* Clients send

\* May a client that knows a state k now? P9: nothing while a notified owner may react, and a release that left a
\* mark of MinHold is followed by releases with the rest of it only.
May(a, k) ==
  /\ \/ a.reacts = 0
     \/ Mutant = "AskInMargin" /\ k = "ask"
     \/ Mutant = "CleanInMargin" /\ k = "leave"
  /\ a.rel > 0 /\ a.min > 0 /\ Mutant # "MarkDropped" => k = "again"
  /\ CASE k \in {"ask", "try"}     -> a.have = "nothing"
       [] k = "leave"              -> a.have = "place" \/ (a.have = "nothing" /\ a.since > 0)
       [] k = "confirm"            -> a.have = "place"
       [] k \in {"raise", "release"} -> a.have = "unit"
       [] k = "turn"               -> a.have = "unit" /\ a.min = 0
       [] k = "again"              -> a.have = "nothing" /\ a.rel > 0

Command(k, c, n) == [k |-> k, c |-> c, n |-> n, since |-> 0, unit |-> 0, mark |-> 0, tok |-> Past, age |-> 0,
  twice |-> k \in Twice, mute |-> FALSE, done |-> FALSE, o |-> "", ttl |-> 0, safe |-> FALSE]

DoState(c) == \E k \in DOMAIN What :
  LET a == C[c]
      n == a.last + 1
      left == IF a.since = 0 THEN n ELSE a.since
      x == [Command(k, c, n) EXCEPT
             !.since = CASE What[k].have = "nothing" \/ Mutant = "SinceBelowFloor" -> left
                         [] What[k].have = "place" -> a.floor
                         [] OTHER -> a.unit,
             !.mark = IF k \in {"release", "again"} THEN a.min ELSE 0,
             !.tok  = IF k \in Frees THEN a.tok ELSE Past]
      b == [a EXCEPT !.last = n, !.age = 0, !.since = IF k \in {"ask", "try"} THEN left ELSE @,
              !.rel = IF ~Does(c, "again") THEN 0 ELSE IF k \in Frees THEN a.unit ELSE IF What[k].keep = 0 THEN 0 ELSE @]
  IN /\ Does(c, k) /\ May(a, k) /\ a.last < N(c)
     /\ net' = net \cup {IF k = "raise" THEN [x EXCEPT !.unit = a.unit] ELSE x}
     /\ Set(c, IF What[k].keep = 1 \/ (Mutant = "GivenAnswered" /\ k \in Frees) THEN b ELSE Given(b, n))
     /\ Same

\* Renewals of an owner's unit travel apart (P2).
DoRenew(c) == LET a == C[c] IN
  /\ Does(c, "renew") /\ a.have = "unit" /\ a.renews < NR
  /\ net' = net \cup {[Command("renew", c, a.renews + 1) EXCEPT !.unit = a.unit]}
  /\ Set(c, [a EXCEPT !.renews = @ + 1])
  /\ Same

-----------------------------------------------------------------------------
\* Clients learn

\* No place and no other unit replaces one that is relied on: after a failover an answer may be of what Redis
\* has lost. The renewal knows better.
Keeps(a) == Relies(a) /\ Mutant # "ReplacesRelied"

\* P6: a unit is valid from the moment before the statement was sent that it was given for.
Gives(a, n, unit, left, tok) ==
  LET new == a.have # "unit" \/ a.unit # unit
      v   == IF left > Margin THEN left ELSE 0
  IN IF n < a.news \/ (new /\ Keeps(a)) THEN a
     ELSE [a EXCEPT !.have = "unit", !.unit = unit, !.news = n,
             !.lease = IF new THEN v ELSE Max(@, v), !.safe = @ /\ ~new,
             !.tok = IF new THEN tok ELSE @, !.hops = IF new THEN 0 ELSE @, !.heard = IF new THEN 0 ELSE @]

\* x: an answer, or a call.
Left(a, ttl, x) ==
  (IF Mutant = "LForK" THEN L ELSE ttl) -
  CASE Mutant = "FromAnswer" -> 0 [] Mutant = "LastStatement" -> a.age [] OTHER -> x.age

\* The answer to a statement.
Stated(a, x) ==
  LET newer == x.n > a.news \/ (x.n = a.news /\ a.have # "unit") IN
  CASE x.n < a.floor /\ Mutant # "GivenAnswered" -> a
    [] x.o = "has" -> Gives(a, x.n, x.unit, Left(a, x.ttl, x), x.tok)
    [] x.o = "waits"  -> IF newer /\ ~Keeps(a) THEN [a EXCEPT !.have = "place", !.news = x.n] ELSE a
    [] x.o \in {"void", "again"} -> a
    [] OTHER -> \* nothing, refused, lost, gone
         LET b == [a EXCEPT !.since = IF x.n = a.last THEN 0 ELSE @] IN
         IF ~newer THEN a
         ELSE [Given(b, IF Relies(a) THEN a.last + 1 ELSE a.floor) EXCEPT !.news = x.n]

Newest(x) == x.n = C[x.c].renews

\* The answer to a renewal, if no other was sent since: nobody hears an older one any more.
Renewed(a, x) ==
  LET left == x.ttl - x.age IN
  CASE a.have # "unit" \/ a.unit # x.unit \/ ~Newest(x) -> a
    [] x.o = "has" -> [a EXCEPT !.lease = IF left > Margin THEN Max(@, left) ELSE @, !.safe = x.safe]
    [] OTHER -> Given(a, a.last + 1) \* Redis says lost: there is nothing to wait for

\* Client c knows b now. w: what else it was told, see Verdict. If an owner may enter, MinHold begins, and
\* the token must be new.
Learn(c, b, w) ==
  LET a == C[c]
      enters == Relies(b) /\ ~(Relies(a) /\ a.unit = b.unit)
      lost   == Relies(a) /\ b.have # "unit" /\ b.reacts = 0 /\ w # "sent" /\ <<c, a.unit>> \notin cut
  IN /\ Set(c, IF enters THEN [b EXCEPT !.min = MinHold] ELSE b)
     /\ newest' = IF enters THEN Max(newest, b.tok) ELSE newest
     /\ wrong' = CASE w \notin {"", "sent"} -> w
                   [] lost -> "told of a loss, and there was none"
                   [] Fencing /\ enters /\ b.tok <= newest /\ <<c, b.unit>> \notin cut -> "a token went back"
                   [] OTHER -> wrong

\* P8: what the caller of Unlock is told. "sent": that it was released, or lost if it was.
Verdict(a, x) ==
  IF x.n < a.floor \/ x.k \notin Frees THEN ""
  ELSE IF x.o = "lost" /\ (x.k # "again" \/ Mutant = "AgainIsLost") /\ a.freed = x.since
       THEN "told of a loss, and it was released" ELSE "sent"

Hear(c) == \E x \in net :
  /\ x.c = c /\ x.done
  /\ (x.k = "renew" /\ x.o = "has" /\ Replicas) => (x.safe \/ Mutant = "EntersBeforeWait") \* WAIT
  /\ net' = net \ {x}
  /\ LET a == C[c]
         b == IF x.k = "renew" THEN Renewed(a, x) ELSE Stated(a, x)
         d == IF x.n >= a.floor /\ x.k # "renew" /\ x.o # "again" /\ What[x.k].have = "unit" /\ What[x.k].keep = 0
              THEN [b EXCEPT !.rel = 0] ELSE b
     IN Learn(c, IF Mutant = "GivenAnswered" /\ x.k \in {"release", "turn"} /\ x.o # "has"
                 THEN [Given(d, Max(d.floor, x.n)) EXCEPT !.have = d.have] ELSE d,
              IF x.k = "renew" THEN "" ELSE Verdict(a, x))
  /\ UNCHANGED <<srv, rep, calls, events, cut>>

\* A call counts from the statement that it names. One below the floor names what to clean up.
HearCall(c) == \E m \in calls :
  LET a == C[c]  left == Left(a, K, m) IN
  /\ m.c = c
  /\ IF m.n >= a.floor
     THEN (left > Margin \/ Does(c, "raise")) /\ Learn(c, Gives(a, m.n, m.n, left, m.tok), "")
     ELSE /\ Does(c, "cleancall") /\ a.have = "nothing" /\ (a.since = 0 \/ m.n < a.since)
          /\ Set(c, [a EXCEPT !.since = m.n]) /\ UNCHANGED <<newest, wrong>>
  /\ UNCHANGED <<srv, rep, net, calls, events, cut>>

-----------------------------------------------------------------------------
\* What else clients do

Change(c, a) == Set(c, a) /\ UNCHANGED net /\ Same

Inside(c) == LET a == C[c] IN
  \/ Does(c, "cancel") /\ Relies(a) /\ Change(c, Told(a, a.lease)) \* the watchdog, or a hint that it was forced
  \/ a.reacts > 0 /\ Change(c, [a EXCEPT !.reacts = 0])           \* the owner that was told exits
  \/ Does(c, "forget") /\ a.have = "nothing" /\ a.since > 0 /\ a.reacts = 0
     /\ Change(c, [a EXCEPT !.since = 0])                         \* P8: all may be over by now
  \/ /\ Does(c, "handoff") /\ Relies(a)                            \* P16
     /\ 2 * (a.hops + 1) < W * a.heard \/ (Mutant = "HandoffsFree" /\ a.hops < W)
     /\ Set(c, [a EXCEPT !.tok = @ + 1, !.hops = @ + 1])
     /\ newest' = Max(newest, a.tok + 1)
     /\ UNCHANGED <<srv, rep, net, calls, events, cut, wrong>>

-----------------------------------------------------------------------------
\* Statements land

Spend(n) == events + n <= NE /\ events' = events + n
Field(h) == h[1] \in Clients

\* What a step of Redis does to the truth: s is the new state.
Truth(s, x) ==
  LET granted == s.h # srv.h /\ Field(s.h) IN
  wrong' = CASE granted /\ (\E c \in Clients : C[c].min > 0 /\ <<c, C[c].unit>> \notin cut) -> "MinHold was cut short"
             [] OTHER -> wrong

Land == \E x \in net :
  \E deaf \in {{}} \cup (IF "deaf" \in Env THEN {{c} : c \in Clients} ELSE {}) :
  \E open \in IF "open" \in Env /\ x.k \in Frees /\ srv.h[1] = x.c THEN BOOLEAN ELSE {FALSE} :
  \E moves \in IF "tryagain" \in Env /\ x.k \in {"leave", "release", "again"} THEN BOOLEAN ELSE {FALSE} :
  LET y == IF x.k \in {"renew", "raise"} THEN Renew(srv, x) ELSE IF moves THEN WithoutLine(srv, x) ELSE State(srv, x, deaf, open)
      z == [x EXCEPT !.done = TRUE, !.o = y.o, !.ttl = y.ttl, !.unit = IF x.k = "renew" THEN @ ELSE y.unit,
                     !.tok = y.tok, !.since = IF x.k \in Frees THEN @ ELSE 0, !.mark = 0, !.twice = FALSE]
      frees == x.k \in Frees /\ srv.h = <<x.c, x.since>> /\ y.o \notin {"void", "lost"}
  IN /\ ~x.done
     /\ open => ~moves /\ y.s.open > 0
     /\ Spend((IF open THEN 1 ELSE 0) + (IF moves THEN 1 ELSE 0))
     /\ srv' = y.s
     /\ calls' = calls \cup y.calls
     /\ net' = (net \ {x}) \cup (IF x.mute THEN {} ELSE {z})
                  \cup (IF x.twice THEN {[x EXCEPT !.twice = FALSE, !.mute = TRUE]} ELSE {})
     /\ C' = IF frees THEN [C EXCEPT ![x.c].freed = x.since] ELSE C
     /\ Truth(y.s, x)
     /\ UNCHANGED <<rep, cut, newest>>

-----------------------------------------------------------------------------
\* Time, and what else happens

Older(c) ==
  LET a    == C[c]
      ends == a.lease > 0 /\ a.lease - 1 <= Margin \* the deadline
      b    == IF ~ends THEN [a EXCEPT !.lease = Less(@)]
              ELSE IF Relies(a) THEN Told(a, Less(a.lease)) ELSE [a EXCEPT !.lease = 0]
  IN [b EXCEPT !.reacts = IF ends /\ Relies(a) THEN @ ELSE Less(@),
               !.min = IF srv.h[1] = c /\ srv.ttl = 1 THEN 0 ELSE Less(@),
               !.tok = IF Fencing THEN Max(@ - W, Past) ELSE @, !.heard = IF Does(c, "handoff") THEN Min(@ + 1, L) ELSE 0,
               !.age = IF Mutant = "LastStatement" THEN Min(@ + 1, L) ELSE 0]

\* What is older gives nothing.
Cap(k) == IF k \in {"leave", "release", "again"} THEN 0 ELSE IF k \in {"confirm", "raise", "renew"} THEN L ELSE K

Tick ==
  /\ srv' = Aged(srv) /\ rep' = Aged(rep)
  /\ C' = [c \in Clients |-> Older(c)]
  /\ net' = {[x EXCEPT !.age = Min(@ + 1, Cap(x.k)),
                       !.tok = IF Fencing THEN Max(@ - W, Past) ELSE @] : x \in net}
  /\ calls' = {[m EXCEPT !.age = Min(@ + 1, K), !.tok = IF Fencing THEN Max(@ - W, Past) ELSE @] : m \in calls}
  /\ newest' = IF Fencing THEN Max(newest - W, Past - 1) ELSE newest
  /\ UNCHANGED <<events, cut, wrong>>

Else ==
  /\ UNCHANGED <<calls, newest, wrong>>
  /\ \/ /\ "strike" \in Env /\ Spend(1) \* a place ends, or is lost
        /\ \E i \in DOMAIN srv.line : srv' = Strike(srv, {i})
        /\ UNCHANGED <<rep, net, C, cut>>
     \/ /\ "delete" \in Env /\ Field(srv.h) /\ Spend(1) \* by a forced release, too
        /\ srv' = [srv EXCEPT !.h = Nobody, !.ttl = 0] /\ cut' = cut \cup {srv.h}
        /\ UNCHANGED <<rep, net, C>>
     \/ /\ "stranger" \in Env /\ srv.h = Nobody /\ Spend(1)
        /\ srv' = [srv EXCEPT !.h = Stranger, !.ttl = L] /\ UNCHANGED <<rep, net, C, cut>>
     \/ /\ "stranger" \in Env /\ srv.h = Stranger
        /\ srv' = [srv EXCEPT !.h = Nobody, !.ttl = 0] /\ UNCHANGED <<rep, net, C, events, cut>>
     \/ /\ "failover" \in Env /\ rep # srv \* the replica has caught up
        /\ rep' = srv /\ net' = {[x EXCEPT !.safe = x.k = "renew" /\ x.done] : x \in net}
        /\ UNCHANGED <<srv, C, events, cut>>
     \/ /\ "failover" \in Env /\ rep # srv /\ Spend(1) \* Redis has lost its last writes
        /\ srv' = rep /\ net' = {x \in net : Replicas /\ x.k = "renew" /\ x.done => x.safe}
        /\ UNCHANGED <<rep, C>>
        /\ cut' = IF Replicas THEN cut ELSE cut \cup {srv.h} \cup {<<c, C[c].unit>> : c \in Clients}
     \/ /\ "forward" \in Env /\ Spend(1) \* Redis' clock is set
        /\ srv' = Aged(srv) /\ UNCHANGED <<rep, net, C, cut>>
     \/ /\ "back" \in Env /\ srv.h # Nobody /\ Spend(1)
        /\ srv' = [srv EXCEPT !.ttl = @ + 1] /\ UNCHANGED <<rep, net, C, cut>>

Client(c) == DoState(c) \/ DoRenew(c) \/ Hear(c) \/ HearCall(c) \/ Inside(c)
Next == (\E c \in Clients : Client(c)) \/ Land \/ Tick \/ Else
Spec == Init /\ [][Next]_vars
Symmetry == Permutations(Clients)

\* States that differ only in what cannot matter any more are one.
Matters(x) == LET a == C[x.c] IN
  ~x.done \/ IF x.k = "renew" THEN a.have = "unit" /\ a.unit = x.unit /\ Newest(x)
             ELSE x.n >= a.floor /\ (x.n < a.news => x.o = "has" \/ x.k \in Frees) /\ x.o \notin {"void", "again"}
Plain(x) == IF x.o # "has" /\ (x.done \/ (x.k # "renew" /\ x.n < C[x.c].floor))
            THEN [x EXCEPT !.age = 0] ELSE x
Counts(m) == IF m.n >= C[m.c].floor THEN K > m.age + Margin \/ Does(m.c, "raise") \/ Mutant \in {"LastStatement", "FromAnswer", "LForK"}
             ELSE Does(m.c, "cleancall")
Known(c) == LET a == C[c] IN
  [a EXCEPT !.unit = IF a.have = "unit" \/ a.reacts > 0 \/ a.rel > 0 \/ a.min > 0 THEN @ ELSE 0,
            !.freed = IF @ = a.rel THEN @ ELSE 0,
            !.news = IF \E x \in net : x.c = c /\ x.n <= @ /\ x.k # "renew" THEN @ ELSE 0]
View == <<srv, rep, {Plain(x) : x \in {y \in net : Matters(y)}}, {m \in calls : Counts(m)}, [c \in Clients |-> Known(c)],
          events, cut, newest, wrong>>

-----------------------------------------------------------------------------
\* What must hold

Whole(c) == <<c, C[c].unit>> \notin cut
Relying  == {c \in Clients : Relies(C[c]) /\ Whole(c)}
Working  == {c \in Clients : C[c].reacts > 0 /\ Whole(c)}

\* Never two owners, be they of one client.
Exclusion == Cardinality(Relying) + Cardinality(Working) + (IF srv.h = Stranger THEN 1 ELSE 0) <= 1
\* Where Redis' clock is set, the margin is used up, and an owner that was told has none.
ExclusionRelied == Cardinality(Relying) <= 1

\* The reason: Redis keeps the unit for whoever is at work, and for at least as long.
HolderHasKey == \A c \in Clients :
  /\ c \in Relying => srv.h = <<c, C[c].unit>> /\ srv.ttl >= C[c].lease
  /\ c \in Working => srv.h = <<c, C[c].unit>> /\ srv.ttl >= C[c].reacts

\* A client has one place. Where it also has a unit, that is an older one, on which it does not rely.
OneRecord == \A c \in Clients :
  /\ Cardinality(Places(srv, c)) <= 1
  /\ srv.h[1] = c => \A i \in Places(srv, c) : srv.line[i].n > srv.h[2] /\ ~(c \in Relying)

\* Of a client that knows of nothing, Redis has nothing, but what late statements have left: it is
\* below the floor, and a unit ends within K.
NothingLeft == \A c \in Clients : C[c].have = "nothing" /\ C[c].since = 0 =>
  /\ \A i \in Places(srv, c) : srv.line[i].n < C[c].floor
  /\ srv.h[1] = c => srv.h[2] < C[c].floor /\ srv.ttl <= K

NothingWrong == wrong = ""

\* Nobody of ours takes the key while it is left to foreign clients.
OpenIsOpen == [][ srv.open > 0 /\ srv'.h # srv.h => ~Field(srv'.h) ]_vars

\* Who stands and stays is never passed: the places before it only become fewer.
Before(s, c) == {s.line[i].c : i \in {j \in DOMAIN s.line : \E k \in Places(s, c) : j < k}}
NoOvertaking == [][ \A c \in Clients : Places(srv, c) # {} /\ Places(srv', c) # {}
                      => Before(srv', c) \subseteq Before(srv, c) ]_vars

\* A live place goes only by a call to it, by a statement of its own client, or where an event takes it.
KeepsPlaces == [][ \A i \in Live(srv) : LET c == srv.line[i].c IN
                     \/ Places(srv', c) # {} \/ srv'.h[1] = c \/ events' # events
                     \/ \E x \in net \ net' : x.c = c /\ ~x.done ]_vars
==============================================================================
