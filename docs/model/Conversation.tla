----------------------------- MODULE Conversation -----------------------------
\* Processes that share one lock of any kind (protocol version 3): what each knows, sends and believes. Redis.tla is the
\* other side. A Mutex has one unit; a Semaphore has as many as its capacity, and so has an RWMutex, of which a writer
\* needs all.
\*
\* A client sends a command at any time; if the one before has no answer yet, it is given up (Silence). A command lands at
\* any time, in any order, or never; its answer is heard at any time, or never. A call is heard at any time, again, or
\* never. A client that takes no step while time goes on is one that was stopped.
EXTENDS Redis, TLC

CONSTANTS
  First,           \* this client may send Most commands; everybody else, or all if it is no client, Others
  Most, Others,
  NR,              \* renewals of each client
  NE,              \* events of Env in a behaviour
  M,               \* the margin
  Capacity,        \* that others count with. Caps: what First may count with
  Caps, Wants,     \* how many units somebody may want
  MinHold,         \* 0, or how long the key stays taken after an owner has entered
  Replicas,        \* nobody enters before a renewal has reached the replica
  Can, OthersCan,  \* what First and others do: see Name, and "renewal" "watchdog" "forget" "handoff" "heeds"
  Twice,           \* commands that the network may deliver twice
  Env              \* what else happens: see Else, Land

VARIABLES
  srv, rep,        \* Redis and its replica
  net,             \* commands and renewals under way, and answers that were not heard yet
  calls,           \* all messages "called" that were ever sent
  C,               \* C[c]: what client c knows
  events,          \* of Env, so far
  cut,             \* cut[c]: nothing is promised of c's grants up to this number, which were deleted, or lost with a server
  newest,          \* the newest token with which anybody has entered
  wrong            \* "", or the promise that a step has broken

vars == <<srv, rep, net, calls, C, events, cut, newest, wrong>>

Margin     == IF Mutant = "NoMargin" THEN 0 ELSE M
N(c)       == IF c = First THEN Most ELSE Others
Does(c, k) == k \in IF c = First THEN Can ELSE OthersCan
CapsOf(c)  == IF c = First THEN Caps ELSE {Capacity}

Command == [k |-> "command", c |-> "", n |-> 0, have |-> 0, keep |-> 0, want |-> 0, since |-> 0,
      place |-> FALSE, again |-> FALSE, try |-> FALSE,
  cap |-> 0, of |-> 0, mark |-> 0, tok |-> Past, age |-> 0, twice |-> FALSE, mute |-> FALSE, done |-> FALSE,
  o |-> "", u |-> 0, rec |-> 0, ttl |-> 0, safe |-> FALSE, broken |-> FALSE]

NewClient == [
  state  |-> "idle",   \* idle, unsure, waiting, fresh, holding, leaving
  place  |-> FALSE,    \* it has one, says the last answer
  u      |-> 0,        \* units that it has
  rec    |-> 0,        \* the grant: the number under which its first units came,
  lease  |-> 0,        \*   how much is left of the confirmed lease,
  of     |-> 0,        \*   the capacity that they count with, or may: nobody comes in who counts with less. 0: none
  last   |-> Command,  \* the last command,
  before |-> "idle",   \*   the state before it,
  open   |-> FALSE,    \*   its answer counts: none has come, nor a call
  back   |-> 0,        \* a record that was given back, without an answer that shows it
  left   |-> FALSE,    \* something else may be there
  empty  |-> 0,        \* the last command that kept nothing
  floor  |-> 0,        \* calls of a smaller number give nothing,
  most   |-> 0,        \*   and others at most that
  reacts |-> 0,        \* for so long owners of `lost` units that were notified may still work
  lost   |-> 0,
  lostOf |-> 0,        \*   of this grant
  safe   |-> FALSE,    \* Replicas: a renewal has reached the replica
  min    |-> 0,        \* what is left of MinHold,
  minOf  |-> 0,        \*   of this grant
  tok    |-> Past,     \* the token of the owner, and how many hand-offs there
  hops   |-> 0,        \*   were since it was heard of,
  heard  |-> 0,        \*   so long ago
  freed  |-> 0,        \* the truth: the last grant of which a command has given units back
  broken |-> FALSE,    \* the truth: its units were deleted
  renews |-> 0,        \* renewals that were sent
  shown  |-> 0, age |-> 0] \* for mutants: the number of which it has heard last; the time since the last command

Init ==
  /\ srv = Empty /\ rep = Empty /\ net = {} /\ calls = {}
  /\ C = [c \in Clients |-> NewClient] /\ cut = [c \in Clients |-> 0]
  /\ events = 0 /\ newest = Past - 1 /\ wrong = ""

\* Owners may be at work and rely on the units. Whether there are any makes no difference here.
Relies(a) == a.state = "holding" /\ a.lease > Margin /\ (Replicas /\ Mutant # "EntersBeforeWait" => a.safe)

Set(c, a) == C' = [C EXCEPT ![c] = a]
Same == UNCHANGED <<srv, rep, calls, events, cut, newest, wrong>>

\* Nothing is left to it but perhaps a place.
WithoutUnits(a, left) == [a EXCEPT !.u = 0, !.rec = 0, !.of = IF a.place \/ a.open THEN @ ELSE 0, !.lease = 0,
      !.safe = FALSE, !.broken = FALSE,
  !.state = IF a.place THEN "waiting" ELSE IF left THEN "unsure" ELSE "idle"]

\* M8. The grant ends, of whose loss its owners are notified. They may work on for as long as the confirmed lease lasts.
End(a, left) == [WithoutUnits([a EXCEPT !.place = FALSE], TRUE) EXCEPT !.back = 0, !.min = 0,
  !.floor = IF Mutant = "LossKeepsFloor" THEN @ ELSE a.last.n + 1, !.reacts = left, !.lost = IF left > 0 THEN a.u ELSE 0,
        !.lostOf = IF left > 0 THEN a.rec ELSE 0]

-----------------------------------------------------------------------------
\* Clients send

\* The command in state a, where k units are in use and somebody wants w in all.
Make(c, a, k, w, again, try, cap, of) ==
  LET keep0 == CASE a.state = "holding" -> Min(a.u, k) [] a.state = "fresh" -> Min(a.u, Max(k, w)) [] OTHER -> 0
      more  == w > Max(k, keep0)
      want  == IF more THEN w ELSE keep0
      \* a call on its way may give it; but Redis may still have what a command without effect gave back
      keep  == IF more /\ keep0 = a.u /\ (a.u > 0 \/ a.place) /\ ~(a.open /\ a.last.keep = a.u) THEN want ELSE keep0
      names == CASE a.u > 0 -> IF Mutant = "SinceMoves" THEN a.shown ELSE a.rec
                 [] keep > 0 -> IF Mutant = "SinceBelowFloor" THEN 0 ELSE a.empty
                 [] OTHER -> IF Mutant = "NamesNoRecord" THEN 0 ELSE a.back
  IN [Command EXCEPT !.c = c, !.n = a.last.n + 1, !.have = IF a.u = 0 /\ a.back > 0 /\ Mutant = "AgainIsLost" THEN 1 ELSE a.u,
       !.keep = keep, !.want = want, !.since = names, !.place = a.state = "waiting", !.again = again /\ ~more /\ keep > 0,
             !.try = try /\ more,
       !.cap = cap, !.of = of,
       !.mark = IF keep = 0 /\ names > 0 /\ names = a.minOf /\ Mutant # "MarkDropped" THEN a.min ELSE 0,
       !.tok = IF keep = 0 /\ names > 0 THEN a.tok ELSE Past]

Name(a, x) ==
  CASE a.u = 0 /\ x.want = 0 -> "cancel"
    [] x.try -> "try"
    [] a.u = 0 -> IF a.place /\ x.keep > 0 THEN "confirm" ELSE "acquire"
    [] x.again -> "requeue"
    [] x.keep >= a.u -> IF x.want > a.u THEN "grow" ELSE IF a.state = "fresh" THEN "raise" ELSE "renew"
    [] x.want > x.keep -> "yield"
    [] OTHER -> IF x.keep = 0 THEN "release" ELSE "shrink"

\* M8: nothing while owners that were notified may react. After a release that left a mark of MinHold nothing is wanted
\* before an answer shows it, and with MinHold no turn is given up.
May(a, x) ==
  /\ \/ a.reacts = 0
     \/ Mutant = "AskInMargin" /\ x.want > 0
     \/ Mutant = "CleanInMargin" /\ x.want = 0
  /\ a.state = "idle" => x.want > 0
  /\ a.min > 0 /\ a.minOf \in {a.back, a.rec} => x.want <= x.keep

\* M2. From before a command is sent its client relies on at most what that keeps, and calls that may give more give nothing.
Sending(a, x) ==
  LET less == (x.keep = 0 \/ x.keep < a.most) /\ Mutant # "FloorStays"
      b == [a EXCEPT !.empty = IF x.keep = 0 THEN x.n ELSE @, !.floor = IF less THEN x.n ELSE @, !.most = Max(IF less THEN 0 ELSE @, x.want),
              !.back = IF a.u > 0 THEN x.since ELSE @, !.before = a.state, !.left = FALSE, !.open = TRUE, !.last = x,
                    !.age = 0, !.of = x.of,
              !.u = Min(@, x.keep), !.place = @ /\ ~x.try /\ (x.want > Min(a.u, x.keep) \/ x.again)]
      d == IF Mutant = "GivenAnswered" THEN [b EXCEPT !.u = a.u] ELSE b
  IN IF d.u = 0 THEN WithoutUnits(d, TRUE) ELSE d

DoCommand(c) == LET a == C[c] IN
  /\ a.last.n < N(c)
  /\ \E k \in 0..a.u : \E w \in {k} \cup {v \in Wants : v > k} : \E again, try \in BOOLEAN : \E cap, of \in CapsOf(c) :
     LET x == Make(c, a, k, w, again, try, cap, of) IN
     /\ again => x.again
     /\ try => x.try
     /\ x.want <= cap /\ cap <= of /\ (of >= a.of \/ Mutant = "KeptForLess")
     /\ Does(c, Name(a, x)) /\ May(a, x)
     /\ net' = net \cup {[x EXCEPT !.twice = Name(a, x) \in Twice]}
     /\ Set(c, Sending(a, x))
     /\ Same

\* M7. Renewals travel apart. They name the grant.
DoRenewal(c) == LET a == C[c] IN
  /\ Does(c, "renewal") /\ a.state = "holding" /\ a.renews < NR
  /\ net' = net \cup {[Command EXCEPT !.k = "renewal", !.c = c, !.n = a.last.n, !.have = a.u, !.since = a.rec]}
  /\ Set(c, [a EXCEPT !.renews = @ + 1])
  /\ Same

-----------------------------------------------------------------------------
\* Clients learn

\* M3. A lease counts from before the command that is answered, or that the call names.
Left(a, ttl, x) == (IF Mutant = "LForK" THEN L ELSE Min(ttl, L)) -
  CASE Mutant = "FromAnswer" -> 0 [] Mutant = "LastCommand" -> a.age [] OTHER -> x.age

\* Redis has u units for it, under the number rec: what a can become. If too little is left for anybody to enter, they are
\* renewed first.
WithUnits(c, a, rec, u, left, tok) ==
  LET had == a.u > 0
      b == [a EXCEPT !.u = u, !.rec = IF had THEN @ ELSE rec, !.lease = IF had THEN Max(@, left) ELSE Max(left, 0),
              !.tok = IF had THEN @ ELSE tok, !.hops = IF had THEN @ ELSE 0, !.heard = IF had THEN @ ELSE 0]
  IN IF a.state = "holding" THEN {b}
     ELSE (IF b.lease > Margin THEN {[b EXCEPT !.state = "holding"]} ELSE {})
           \cup (IF Does(c, "raise") \/ b.lease <= Margin THEN {[b EXCEPT !.state = "fresh"]} ELSE {})

\* M4. The command never was: the state before. By what owners gave back nobody enters.
Failed(a, x) == IF a.u > 0 THEN [a EXCEPT !.open = TRUE]
  ELSE [a EXCEPT !.u = x.have, !.place = x.place, !.rec = IF x.have > 0 THEN x.since ELSE 0, 
          !.state = IF a.before = "holding" THEN "leaving" ELSE a.before]

\* The answer to the last command: what a can become.
Answered(c, a, x) ==
  LET b == [a EXCEPT !.back = 0, !.floor = x.n, !.most = x.want, !.place = x.o = "waits",
              !.of = IF x.o = "has" \/ x.u = 0 THEN x.cap ELSE x.of] IN
  CASE x.o # "lost" /\ x.u = 0 /\ a.u = 0 -> {WithoutUnits(b, a.left)}
    [] x.o # "lost" /\ x.u >= a.u -> WithUnits(c, b, x.rec, x.u, Left(a, x.ttl, x), x.tok)
    [] a.state = "holding" -> {End(b, 0)}
    [] OTHER -> {WithoutUnits(b, TRUE)}

\* Something was reported that gives nothing. What it has left is to be removed.
Unbelieved(c, a) == IF a.state \in {"idle", "unsure"} THEN [a EXCEPT !.state = "unsure", !.left = TRUE] ELSE a

\* M1. Only the answer to the last command counts.
Heard(c, a, x) ==
  LET b == [a EXCEPT !.open = FALSE, !.shown = IF Mutant = "SinceMoves" THEN x.n ELSE 0] IN
  CASE a.open /\ x.n = a.last.n ->
         IF x.n < a.floor /\ Mutant # "AnswerAfterLoss" THEN {b} ELSE IF x.o = "failed" THEN {Failed(b, x)} ELSE Answered(c, b, x)
    [] Mutant = "OlderAnswers" /\ x.o # "failed" /\ x.n < a.last.n /\ x.n >= a.floor -> Answered(c, b, x)
    [] x.n = a.last.n /\ a.state = "holding" /\ x.o \in {"has", "gone", "lost"} /\ x.u = 0 -> {End(b, 0)} \* its call came first
    [] x.u > 0 \/ x.o = "waits" -> {Unbelieved(c, a)}
    [] OTHER -> {a}

\* The answer to a renewal. That units are gone is a loss only if nothing was sent since.
Renewed(a, x) ==
  LET left == L - x.age IN
  CASE a.state # "holding" \/ a.rec # x.since -> a
    [] x.o = "has" -> [a EXCEPT !.lease = IF left > Margin THEN Max(@, left) ELSE @, !.safe = x.safe,
                          !.left = @ \/ (x.u > x.have /\ a.last.n = x.n /\ ~a.open)]
    [] a.last.n = x.n \/ Mutant = "RenewalIsNews" -> End(a, 0)
    [] OTHER -> a

\* Client c knows b now. told: what is notified wrongly, or "sent": that a give-back was in vain. If an owner may
\* enter, MinHold begins, and the token must be new.
Learn(c, b, told) ==
  LET a == C[c]
      enters == Relies(b) /\ ~(Relies(a) /\ a.rec = b.rec)
      lost   == Relies(a) /\ b.state # "holding" /\ b.reacts = 0 /\ a.rec > cut[c]
  IN /\ Set(c, IF enters /\ MinHold > 0 THEN [b EXCEPT !.min = MinHold, !.minOf = b.rec] ELSE b)
     /\ newest' = IF enters THEN Max(newest, b.tok) ELSE newest
     /\ wrong' = CASE told # "" -> told
                   [] lost -> "a loss was told, and there was none"
                   [] Fencing /\ enters /\ b.tok <= newest /\ b.rec > cut[c] -> "a token went back"
                   [] OTHER -> wrong

\* M5. Who gave back learns that nothing was there. A repetition that names no units finds none if the one before has taken effect.
Missing(a, x) ==
  IF a.open /\ x.n = a.last.n /\ x.n >= a.floor /\ x.o = "lost" /\ x.keep = 0 /\ a.before # "fresh"
        /\ (x.have > 0 \/ a.min > 0) /\ a.freed = x.since
  THEN "a loss was told, and it was released" ELSE ""

Hear(c) == \E x \in net :
  /\ x.c = c /\ x.done
  /\ (x.k = "renewal" /\ x.o = "has" /\ Replicas) => (x.safe \/ Mutant = "EntersBeforeWait") \* WAIT
  /\ net' = net \ {x}
  /\ LET a == C[c] IN
     \E b \in IF x.k = "renewal" THEN {Renewed(a, x)} ELSE Heard(c, a, x) :
       /\ Does(c, "heeds") \/ ~(b.left /\ ~a.left) \/ x.k = "renewal"
       /\ Learn(c, b, IF x.k = "command" /\ Missing(a, x) # "" THEN Missing(a, x)
                      ELSE IF x.broken /\ a.broken /\ x.u > 0 /\ (IF x.k = "renewal" THEN x.since = a.rec ELSE a.open
                            /\ x.n = a.last.n) /\ b.u > 0 /\ b.rec = a.rec
                      THEN "a grant had a gap" ELSE "")
  /\ UNCHANGED <<srv, rep, calls, events, cut>>

\* A call counts from the command that it names, and answers the last one.
HearCall(c) == \E m \in calls :
  LET a == C[c]  left == Left(a, K, m)
      b == [a EXCEPT !.place = FALSE, !.open = FALSE, !.back = 0, !.of = IF m.n = a.last.n THEN a.last.cap ELSE @,
            !.shown = IF Mutant = "SinceMoves" THEN m.n ELSE 0]
  IN
  /\ m.c = c
  /\ IF m.n >= a.floor
     THEN /\ left > Margin \/ Does(c, "raise")
          /\ \E d \in WithUnits(c, b, m.n, Max(m.u, a.u), left, m.tok) : Learn(c, d, "")
     ELSE /\ Does(c, "heeds") /\ Set(c, Unbelieved(c, a)) /\ UNCHANGED <<newest, wrong>>
  /\ UNCHANGED <<srv, rep, net, calls, events, cut>>

-----------------------------------------------------------------------------
\* What else clients do

Change(c, a) == Set(c, a) /\ UNCHANGED net /\ Same

Inside(c) == LET a == C[c] IN
  \/ Does(c, "watchdog") /\ Relies(a) /\ Change(c, End(a, a.lease)) \* or a hint that it was forced
  \/ a.reacts > 0 /\ Change(c, [a EXCEPT !.reacts = 0, !.lost = 0, !.lostOf = 0]) \* the owners that were notified exit
  \/ Mutant = "SilenceIsFailed" /\ a.open /\ Change(c, [Failed(a, a.last) EXCEPT !.open = FALSE])
  \/ Does(c, "forget") /\ a.state = "unsure" /\ a.reacts = 0
     \* all may be over by now
     /\ Change(c, [WithoutUnits(a, FALSE) EXCEPT !.floor = a.last.n + 1, !.back = 0, !.open = FALSE, !.left = FALSE])
  \/ /\ Does(c, "handoff") /\ Relies(a)
     /\ 2 * (a.hops + 1) < W * a.heard \/ (Mutant = "HandoffsFree" /\ a.hops < W)
     /\ Set(c, [a EXCEPT !.tok = @ + 1, !.hops = @ + 1])
     /\ newest' = Max(newest, a.tok + 1)
     /\ UNCHANGED <<srv, rep, net, calls, events, cut, wrong>>

-----------------------------------------------------------------------------
\* Commands land

Spend(n) == events + n <= NE /\ events' = events + n

Land == \E x \in net :
  \E deaf \in {{}} \cup (IF "deaf" \in Env THEN {{c} : c \in Clients} ELSE {}) :
  \E open \in IF "open" \in Env /\ x.keep = 0 /\ (x.have > 0 \/ x.want = 0) /\ Has(srv, x.c) > 0 THEN BOOLEAN ELSE {FALSE} :
  \E fails \in IF "fails" \in Env /\ x.k = "command" THEN BOOLEAN ELSE {FALSE} :
  \E moves \in IF "moves" \in Env /\ x.k = "command" THEN BOOLEAN ELSE {FALSE} :
  LET c == x.c
      a == C[c]
      renews == x.k = "renewal" \/ (Document /\ x.have > 0 /\ x.keep > 0)
      y == CASE fails -> Say(srv, {}, "failed", c, 0) [] renews -> Renew(srv, x) [] moves -> WithoutLine(srv, x) [] OTHER -> State(srv, x, deaf, open)
      z == [x EXCEPT !.done = TRUE, !.o = y.o, !.u = y.u, !.rec = y.rec, !.ttl = y.ttl, !.tok = y.tok, !.mark = 0, !.twice = FALSE,
              !.broken = a.broken /\ x.have > 0]
      frees == x.k = "command" /\ x.since > 0 /\ x.keep = 0 /\ Has(srv, c) > 0 /\ srv.rec[c].n >= x.since /\ Has(y.s, c) = 0
  IN /\ ~x.done
     /\ open => y.s.open > 0
     /\ Cardinality({b \in {1, 2, 3} : (b = 1 /\ open) \/ (b = 2 /\ fails) \/ (b = 3 /\ moves)}) <= 1
     /\ Spend(IF open \/ fails \/ moves THEN 1 ELSE 0)
     /\ srv' = y.s
     /\ calls' = calls \cup y.calls
     /\ net' = (net \ {x}) \cup (IF x.mute THEN {} ELSE {z}) \cup (IF x.twice THEN {[x EXCEPT !.twice = FALSE,
           !.mute = TRUE]} ELSE {})
     /\ C' = IF frees THEN [C EXCEPT ![c].freed = x.since] ELSE C
     /\ wrong' = CASE (\E d \in Clients : Has(y.s, d) > Has(srv, d)) /\ (\E d \in Clients : C[d].min > 0
           /\ C[d].minOf > cut[d] /\ C[d].minOf # y.s.rec[d].n)
                        -> "MinHold was cut short"
                   [] ~Document /\ ~renews /\ y.o \in {"has", "waits"} /\ y.s.held > 0 /\ y.s.next = 0 -> "what is over still counts"
                   [] ~Document /\ x.k = "command" /\ ~fails /\ ~moves /\ y.o \in {"has", "waits"} /\ deaf = {}
                         /\ y.s.held = 0 /\ Live(y.s) # {} -> "all is free, and somebody waits"
                   [] y.o = "lost" /\ a.state = "holding" /\ x.have > 0 /\ x.n = a.last.n /\ Has(srv, c) >= x.have
                         /\ srv.rec[c].n >= a.rec
                        -> "what the grant has is called lost"
                   [] OTHER -> wrong
     /\ UNCHANGED <<rep, cut, newest>>

-----------------------------------------------------------------------------
\* Time, and what else happens

Older(c) ==
  LET a    == C[c]
      ends == a.state = "holding" /\ a.lease - 1 <= Margin \* the deadline
      b    == IF ends THEN End(a, IF Relies(a) THEN Less(a.lease) ELSE 0) ELSE [a EXCEPT !.lease = Less(@), !.reacts = Less(@)]
  IN [b EXCEPT !.lost = IF b.reacts = 0 THEN 0 ELSE @, !.lostOf = IF b.reacts = 0 THEN 0 ELSE @,
               !.min = IF Document /\ srv.rec[c].ttl = 1 THEN 0 ELSE Less(@),
               !.tok = IF Fencing THEN Max(@ - W, Past) ELSE @, !.heard = IF Does(c, "handoff") THEN Min(@ + 1, L) ELSE 0,
               !.age = IF Mutant = "LastCommand" THEN Min(@ + 1, L) ELSE 0]

\* What is older gives nothing.
Oldest(x) == IF x.done /\ x.u = 0 THEN 0 ELSE IF x.have > 0 \/ x.place \/ x.k = "renewal" THEN L ELSE IF x.want > 0 THEN K ELSE 0

Tick ==
  /\ srv' = Aged(srv) /\ rep' = Aged(rep)
  /\ C' = [c \in Clients |-> Older(c)]
  /\ net' = {[x EXCEPT !.age = Min(@ + 1, Oldest(x)), !.tok = IF Fencing THEN Max(@ - W, Past) ELSE @] : x \in net}
  /\ calls' = {[m EXCEPT !.age = Min(@ + 1, K), !.tok = IF Fencing THEN Max(@ - W, Past) ELSE @] : m \in calls}
  /\ newest' = IF Fencing THEN Max(newest - W, Past - 1) ELSE newest
  /\ UNCHANGED <<events, cut, wrong>>

Else ==
  /\ UNCHANGED <<calls, newest, wrong>>
  /\ \/ /\ ~Document /\ srv.held > 0 /\ \A c \in Clients : srv.rec[c].ttl = 0 \* the key ends
        /\ srv' = Deleted(srv) /\ UNCHANGED <<rep, net, C, events, cut>>
     \/ /\ "strike" \in Env /\ Spend(1) \* a place ends, or is lost
        /\ \E i \in DOMAIN srv.line : srv' = Strike(srv, {i})
        /\ UNCHANGED <<rep, net, C, cut>>
     \/ /\ "delete" \in Env /\ srv.held > 0 /\ Spend(1) \* by a forced release, too
        /\ srv' = Deleted(srv)
        /\ cut' = [c \in Clients |-> IF Has(srv, c) > 0 THEN Max(cut[c], Max(srv.rec[c].n, C[c].rec)) ELSE cut[c]]
        /\ C' = [c \in Clients |-> [C[c] EXCEPT !.broken = @ \/ (C[c].u > 0 /\ Has(srv, c) > 0)]]
        /\ UNCHANGED <<rep, net>>
     \/ /\ "stranger" \in Env /\ srv.held = 0 /\ srv.other = Nobody /\ Spend(1)
        /\ srv' = [srv EXCEPT !.other = [by |-> "stranger", ttl |-> L]] /\ UNCHANGED <<rep, net, C, cut>>
     \/ /\ srv.other.by = "stranger"
        /\ srv' = [srv EXCEPT !.other = Nobody] /\ UNCHANGED <<rep, net, C, events, cut>>
     \/ /\ "failover" \in Env /\ rep # srv \* the replica has caught up
        /\ rep' = srv /\ net' = {[x EXCEPT !.safe = x.k = "renewal" /\ x.done] : x \in net}
        /\ UNCHANGED <<srv, C, events, cut>>
     \/ /\ "failover" \in Env /\ rep # srv /\ Spend(1) \* Redis has lost its last writes
        /\ srv' = rep /\ net' = {x \in net : Replicas /\ x.k = "renewal" /\ x.done => x.safe}
        /\ cut' = IF Replicas THEN cut ELSE [c \in Clients |-> Max(cut[c], Max(srv.rec[c].n, Max(C[c].lostOf, C[c].rec)))]
        /\ UNCHANGED <<rep, C>>
     \/ /\ "forward" \in Env /\ Spend(1) \* Redis' clock is set
        /\ srv' = Aged(srv) /\ UNCHANGED <<rep, net, C, cut>>
     \/ /\ "back" \in Env /\ srv.held > 0 /\ Spend(1)
        /\ srv' = [srv EXCEPT !.next = @ + 1,
              !.rec = [c \in Clients |-> IF Has(srv, c) > 0 THEN [@[c] EXCEPT !.ttl = @ + 1] ELSE @[c]]]
        /\ UNCHANGED <<rep, net, C, cut>>

Client(c) == DoCommand(c) \/ DoRenewal(c) \/ Hear(c) \/ HearCall(c) \/ Inside(c)
Next == (\E c \in Clients : Client(c)) \/ Land \/ Tick \/ Else
Spec == Init /\ [][Next]_vars

\* States that differ only in what cannot matter any more are one.
Matters(x) == LET a == C[x.c] IN
  \/ ~x.done
  \/ IF x.k = "renewal" THEN a.state = "holding" /\ a.rec = x.since
     ELSE (x.n = a.last.n /\ (a.open \/ a.state = "holding")) \/ (Does(x.c, "heeds")
           /\ (x.u > 0 \/ x.o = "waits")) \/ Mutant = "OlderAnswers"
Counts(m) == Does(m.c, "heeds") \/ (m.n >= C[m.c].floor
      /\ (K > m.age + Margin \/ Does(m.c, "raise") \/ Mutant \in {"LastCommand", "FromAnswer", "LForK"}))
Known(c) == LET a == C[c] IN
  [a EXCEPT !.last = IF a.open THEN [@ EXCEPT !.age = 0, !.tok = Past, !.mark = 0] ELSE [Command EXCEPT !.n = a.last.n,
        !.cap = a.last.cap],
            !.before = IF a.open THEN @ ELSE "idle", !.freed = IF @ = a.back THEN @ ELSE 0,
            !.minOf = IF a.min > 0 THEN @ ELSE 0, !.of = IF Cardinality(CapsOf(c)) > 1 THEN @ ELSE 0]
View == <<srv, rep, {x \in net : Matters(x)}, {m \in calls : Counts(m)}, [c \in Clients |-> Known(c)], events, cut, newest, wrong>>

-----------------------------------------------------------------------------
\* What must hold

Whole(c)   == C[c].rec > cut[c]
Told(c)    == C[c].lostOf > cut[c]
Relied(c)    == IF Relies(C[c]) /\ Whole(c) THEN C[c].u ELSE 0
InUse(c) == Relied(c) + (IF Told(c) THEN C[c].lost ELSE 0)
CountsWith(c) == IF C[c].of > 0 THEN C[c].of ELSE Least(CapsOf(c))

\* The units on which owners rely are never more than any of these counts with. One that was notified of its loss and may
\* still react counts as an owner, and so does a foreign client.
Exclusion == LET all == Sum([c \in Clients |-> InUse(c)], Clients) + (IF srv.other.by = "stranger" THEN 1 ELSE 0)
             IN \A c \in Clients : InUse(c) > 0 => all <= CountsWith(c)

\* Where Redis' clock is set, the margin is used up, and an owner that was told has none.
ExclusionRelied == LET all == Sum([c \in Clients |-> Relied(c)], Clients) IN \A c \in Clients : Relied(c) > 0 => all <= CountsWith(c)

\* The reason: Redis keeps the units for whoever is at work, and for at least as long.
RedisKeeps == \A c \in Clients :
  /\ Relied(c) > 0 => Has(srv, c) >= C[c].u /\ srv.rec[c].ttl >= C[c].lease /\ srv.rec[c].n >= C[c].rec
  /\ Told(c) => Has(srv, c) >= C[c].lost /\ srv.rec[c].ttl >= C[c].reacts

\* And its sum is never too small.
NoDrift == srv.held > 0 /\ srv.next > 0 => srv.held = Sum([c \in Clients |-> Has(srv, c)], Clients)

\* What was deleted does not come back under the grant.
NoGap == \A c \in Clients : C[c].broken /\ Has(srv, c) >= C[c].u => srv.rec[c].n < C[c].rec

\* A client has one place. Where one of a Mutex also has the unit, that is an older one, on which it does not rely.
OnePlace == \A c \in Clients :
  /\ Cardinality(Places(srv, c)) <= 1
  /\ Document /\ Has(srv, c) > 0 => \A i \in Places(srv, c) : srv.line[i].n > srv.rec[c].n /\ Relied(c) = 0

\* Of a client that knows of nothing, Redis has only what late commands have left: that is below the floor, and units end within K.
NothingLeft == \A c \in Clients : C[c].state = "idle" =>
  /\ \A i \in Places(srv, c) : srv.line[i].n < C[c].floor
  /\ Has(srv, c) > 0 => srv.rec[c].n < C[c].floor /\ srv.rec[c].ttl <= K

NothingWrong == wrong = ""

\* The first place waits only while what it wants does not fit. (Where all is free, see Land.)
FirstFits == srv.held > 0 /\ srv.next > 0 /\ srv.line # <<>> /\ events = 0 => ~Fits(srv, Head(srv.line), Head(srv.line).c).ok

\* Nobody of ours takes the key while it is left to foreign clients.
OpenIsOpen == [][ srv.open > 0 => \A c \in Clients : Has(srv', c) <= Has(srv, c) ]_vars

\* Nobody gets units while another one waits who came before, and the places before one that stays only become fewer.
Before(s, c) == LET mine == Places(s, c) IN {s.line[i].c : i \in {j \in DOMAIN s.line : \A k \in mine : j < k}} \ {c}
NoOvertaking == [][ \A c \in Clients :
  /\ Has(srv', c) > Has(srv, c) => \A d \in Before(srv, c) : Places(srv', d) = {}
  /\ Places(srv, c) # {} /\ Places(srv', c) # {} => Before(srv', c) \subseteq Before(srv, c) ]_vars

\* A live place goes only by a call to it, by a command of its own client, or where an event takes it.
KeepsPlaces == [][ \A i \in Live(srv) : LET c == srv.line[i].c IN
                     \/ Places(srv', c) # {} \/ Has(srv', c) > 0 \/ events' # events
                     \/ \E x \in net \ net' : x.c = c /\ ~x.done ]_vars
==============================================================================
