-------------------------------- MODULE Line --------------------------------
\* Clients that wait for one key in the line, what may happen to them and to their commands
\* and messages, and what must hold nevertheless. README.md says what the rules L1 to L14 are.
\*
\* Commands (net) and messages (msgs) travel apart. A command takes effect once or never, at
\* any time after it was sent, in any order; its client may cease to wait for the answer at
\* any time (Lose). A message stays in msgs for ever: it may be read late, twice, in any order,
\* or never. A client that takes no step while time goes on (Tick) is one that was stopped.
EXTENDS Scripts, TLC

CONSTANTS
  Clients,
  NF,      \* fields (grants that a client asks for) per client
  NA,      \* numbered attempts (acquires and confirmations) per field
  NR,      \* releases per field
  NE,      \* events of Env in a behaviour
  M,       \* the margin
  D,       \* 0: a command lands at any time; else within D of being sent
  Urgent,  \* FALSE, or everybody alive acts before time goes on, and messages are all lost
  Every,   \* Urgent: the time between two confirmations
  Can,     \* what clients do beside acquiring: "try" "confirm" "release" "turn" "renew" "giveup" "lose" "message"
  Env      \* what else happens: "open" "delete" "force" "stranger" "crash" "deaf" "forward" "back"

VARIABLES
  srv,     \* Redis: see Scripts
  subs,    \* the clients whose subscription Redis knows of
  net,     \* commands on their way, and answers that are waited for
  msgs,    \* messages "called" that were ever sent
  F,       \* F[c][n]: what client c knows of its field n
  alive,
  events,  \* of Env, so far
  newest,  \* the newest token with which anybody has entered
  wrong,   \* "", or the promise that a step has broken
  idle     \* Urgent: how long the key has been <<free beside a live place, called and not entered>>

vars == <<srv, subs, net, msgs, F, alive, events, newest, wrong, idle>>

Numbers == 1..NF
Lease(a) == IF Mutant = "LeaseChanges" /\ a > 1 THEN 2 * L ELSE L
Cap     == Max(Lease(NA), CL) + 1    \* an attempt that is older gives no grant
End     == D + Max(L, Life(L) + CL)  \* what a field may leave ends so much after its last send (L11)

\* A field as its client sees it, and two words about the truth (cut, other).
NewField == [
  st    |-> "new",   \* new, wanted, held, turning, burnt, over; died: it crashed with a whole lease
  last  |-> 0,       \* the number of the last attempt
  age   |-> [a \in 1..NA |-> 0],
  ans   |-> 0,       \* the highest attempt that was answered with "stands"
  there |-> FALSE,   \* the place or the grant is known, and not known to be gone
  open  |-> 0,       \* acquires without an answer, which nothing has accounted for
  gone  |-> FALSE,   \* a confirmation found nothing while an attempt was under way
  turn  |-> 0,       \* the field whose end of turn has no answer and may stand this one; 0: none
  valid |-> 0,       \* for how long it may be relied on
  tok   |-> 0,
  next  |-> 0,       \* Urgent: until the next confirmation
  end   |-> 0,       \* D: until nothing can be left
  rel   |-> 0,       \* releases that were sent
  owned |-> FALSE,   \* an owner has it, or waits for the answer to its release
  cut   |-> FALSE,   \* deleted by hand, and no answer has come since that could tell
  other |-> FALSE]   \* somebody else has had the key since the grant

Init ==
  /\ srv = Empty /\ subs = Clients /\ net = {} /\ msgs = {}
  /\ F = [c \in Clients |-> [n \in Numbers |-> NewField]]
  /\ alive = [c \in Clients |-> TRUE]
  /\ events = 0 /\ newest = 0 /\ wrong = "" /\ idle = <<0, 0>>

With(st)  == {<<c, n>> \in Clients \X Numbers : F[c][n].st = st}
Busy(c)   == \E n \in Numbers : F[c][n].st \in {"wanted", "held", "turning"}
Unused(c) == {n \in Numbers : F[c][n].st = "new"}
Wants(c)  == {n \in Numbers : F[c][n].st = "wanted"}
Awaits(c, n, k) == \E x \in net : x.c = c /\ x.n = n /\ x.k = k /\ x.wait
Set(c, n, f) == F' = [F EXCEPT ![c][n] = f]

\* What may be left of a field is nothing: its clean-up has ended, or there was none to do.
Over(f) == ~f.there /\ f.open = 0 /\ f.turn = 0
Settled(f) == IF f.st = "burnt" /\ Over(f) THEN [f EXCEPT !.st = "over"] ELSE f
Burn(f) == [f EXCEPT !.st = IF @ = "wanted" /\ Over(f) THEN "over" ELSE "burnt", !.valid = 0, !.end = IF D > 0 THEN End ELSE 0]

Command(c, n, k) == [k |-> k, c |-> c, n |-> n, n2 |-> 0, a |-> 0, l |-> L, age |-> 0,
  stand |-> TRUE, again |-> FALSE, drop |-> {}, keep |-> 0, last |-> 0, res |-> 0,
  inTime |-> FALSE, after |-> TRUE, before |-> FALSE, left |-> D,
  wait |-> TRUE, done |-> FALSE, o |-> "", found |-> FALSE, t |-> 0, cut |-> FALSE]

Same == UNCHANGED <<srv, subs, msgs, alive, events, newest, wrong, idle>>

-----------------------------------------------------------------------------
\* Clients send

Sent(f, a) == [f EXCEPT !.last = a, !.age[a] = 0, !.end = IF D > 0 THEN End ELSE 0, !.next = Every]
\* Urgent: there are attempts without end, and their numbers do not matter.
NextAttempt(f) == IF Urgent /\ f.last = NA THEN NA ELSE f.last + 1

\* Urgent: which confirmations were sent before the attempt, where numbers do not tell.
Overtake(c, n) == IF ~Urgent THEN net
                  ELSE {IF x.c = c /\ x.n = n /\ x.k = "confirm" THEN [x EXCEPT !.before = TRUE] ELSE x : x \in net}
Outdated(y) == IF y.o # "stands" THEN net \ {y}
               ELSE {IF x.c = y.c /\ x.n = y.n /\ x.before THEN [x EXCEPT !.a = 0] ELSE x : x \in net \ {y}}

\* Ask for the key. With a place it is an accept, or a look at a key that may be free (L8, L14).
DoAcquire(c) ==
  /\ alive[c]
  /\ \E n \in IF Busy(c) THEN Wants(c) ELSE IF Unused(c) = {} THEN {} ELSE {Least(Unused(c))} :
     LET f == F[c][n]  a == NextAttempt(f) IN
     /\ a <= NA /\ ~Awaits(c, n, "acquire")
     /\ \E stand \in IF "try" \in Can /\ f.last = 0 THEN BOOLEAN ELSE {TRUE} :
        net' = Overtake(c, n) \cup {[Command(c, n, "acquire") EXCEPT !.a = a, !.l = Lease(a), !.stand = stand,
          !.again = f.open > 0 \/ f.there \/ f.turn > 0,
          !.drop = {d \in Numbers : F[c][d].st = "burnt"}]}
     /\ Set(c, n, [Sent(f, a) EXCEPT !.st = "wanted"])
     /\ Same

DoConfirm(c) ==
  /\ "confirm" \in Can /\ alive[c]
  /\ \E n \in Wants(c) : LET f == F[c][n]  a == NextAttempt(f) IN
     /\ f.there /\ a <= NA /\ ~Awaits(c, n, "confirm")
     /\ Urgent => f.next = 0
     /\ net' = net \cup {[Command(c, n, "confirm") EXCEPT !.a = a]}
     /\ Set(c, n, Sent(f, a))
     /\ Same

Used(f) == [last |-> f.tok, res |-> f.tok]

\* The owner releases, in time or not. A turn that MinHold forbids to end leaves a mark.
DoRelease(c) ==
  /\ "release" \in Can /\ alive[c]
  /\ \E n \in Numbers : LET f == F[c][n] IN
     /\ f.st = "held"
     /\ net' = net \cup {[Command(c, n, "release") EXCEPT !.inTime = f.valid > 0,
          !.keep = MinHold, !.last = f.tok, !.res = f.tok]}
     /\ Set(c, n, [Burn(f) EXCEPT !.rel = 1])
     /\ Same

\* Clean-up of a burnt field: a release until nothing can be left.
DoClean(c) ==
  /\ alive[c]
  /\ \E n \in Numbers : LET f == F[c][n] IN
     /\ f.st = "burnt" /\ f.rel < NR /\ ~Awaits(c, n, "release")
     /\ net' = net \cup {[Command(c, n, "release") EXCEPT
          !.after = f.turn = 0 \/ F[c][f.turn].st = "over" \/ Mutant = "F2First",
          !.last = IF f.tok > 0 THEN f.tok - 1 ELSE 0, !.res = f.tok]}
     /\ Set(c, n, [f EXCEPT !.rel = @ + 1])
     /\ Same

\* L10. The validity ends when it is sent.
DoTurn(c) ==
  /\ "turn" \in Can /\ alive[c] /\ Unused(c) # {}
  /\ \E n \in Numbers : LET f == F[c][n]  n2 == Least(Unused(c)) IN
     /\ f.st = "held" /\ f.valid > 0
     /\ net' = net \cup {[Command(c, n, "turn") EXCEPT !.n2 = n2, !.last = f.tok, !.res = f.tok]}
     /\ F' = [F EXCEPT ![c][n] = [f EXCEPT !.st = "turning", !.valid = 0],
                       ![c][n2] = [Sent(NewField, 1) EXCEPT !.st = "turning"]]
     /\ Same

DoRenew(c) ==
  /\ "renew" \in Can /\ alive[c]
  /\ \E n \in Numbers : LET f == F[c][n] IN
     /\ f.st = "held" /\ f.valid > 0 /\ f.valid < L - M /\ ~Awaits(c, n, "renew")
     /\ net' = net \cup {Command(c, n, "renew")}
     /\ UNCHANGED F /\ Same

\* Nobody waits for the key any more.
GiveUp(c) ==
  /\ "giveup" \in Can /\ alive[c]
  /\ \E n \in Wants(c) :
     /\ ~Awaits(c, n, "acquire")
     /\ Set(c, n, Burn(F[c][n]))
     /\ UNCHANGED net /\ Same

\* The truth about fields after a step of Redis: others have had the key since their grant.
Seen(G, s) == [c \in Clients |-> [n \in Numbers |->
  IF s.h \notin {Nobody, Kept, <<c, n>>} /\ G[c][n].st \in {"held", "turning"}
  THEN [G[c][n] EXCEPT !.other = TRUE] ELSE G[c][n]]]

-----------------------------------------------------------------------------
\* Clients learn

\* L11: an answer accounts for an open acquire only if no news of the field had come before.
\* An end of turn without an answer counts as one.
Account(f) == IF f.there /\ Mutant # "NewsForgotten" THEN f ELSE IF f.turn > 0 THEN [f EXCEPT !.turn = 0]
              ELSE [f EXCEPT !.open = IF @ > 0 THEN @ - 1 ELSE 0]
News(f, found) == [(IF found THEN Account(f) ELSE f) EXCEPT !.there = TRUE]
Told(f, x) == IF x.cut THEN [f EXCEPT !.cut = FALSE] ELSE f

\* Enter with a deadline v from now and the token t.
Enter(c, n, f, v, t) ==
  /\ Set(c, n, [f EXCEPT !.st = "held", !.valid = v, !.tok = t, !.owned = TRUE, !.other = FALSE])
  /\ newest' = Max(newest, t)
  /\ wrong' = IF Fencing /\ t <= newest /\ ~f.cut THEN "a token went back" ELSE wrong

Left(base, lease) == IF lease > base + M THEN lease - base - M ELSE 0

Answered(c, x) ==
  LET f == Told(F[c][x.n], x) IN
  /\ CASE x.o = "granted" /\ f.gone /\ Mutant # "GoneForgotten" ->
            \* Nobody can tell which came first: asking again does (L4).
            Set(c, x.n, [News(f, x.found) EXCEPT !.gone = FALSE]) /\ UNCHANGED <<newest, wrong>>
       [] x.o = "granted" /\ ~(f.gone /\ Mutant # "GoneForgotten") ->
            LET g == News(f, x.found)  v == Left(f.age[x.a], x.l) IN
            IF v > 0 THEN Enter(c, x.n, g, v, x.t)
            ELSE Set(c, x.n, Burn(g)) /\ UNCHANGED <<newest, wrong>>
       [] x.o = "stands" ->
            /\ Set(c, x.n, [News(f, x.found) EXCEPT !.ans = Max(@, x.a), !.gone = FALSE])
            /\ UNCHANGED <<newest, wrong>>
       [] OTHER -> Set(c, x.n, IF x.stand THEN f ELSE Burn(f)) /\ UNCHANGED <<newest, wrong>>

\* A "gone" that is older than an attempt which was answered with "stands" tells nothing.
Confirmed(c, x) ==
  LET f == IF x.a < F[c][x.n].ans THEN F[c][x.n] ELSE Told(F[c][x.n], x) IN
  /\ IF f.st # "wanted" THEN UNCHANGED F
     ELSE Set(c, x.n, CASE x.o = "stands" -> [f EXCEPT !.ans = Max(@, x.a), !.there = TRUE]
                        [] x.o = "called" -> [f EXCEPT !.next = 0] \* an accept is due
                        [] OTHER -> IF x.a < f.ans THEN f
                                    ELSE IF Awaits(c, x.n, "acquire") THEN [f EXCEPT !.gone = TRUE]
                                    ELSE Burn([f EXCEPT !.there = FALSE]))
  /\ UNCHANGED <<newest, wrong>>

\* L11, and how the owner's release ended. G: what is known but for this answer.
Released(c, x, G) ==
  LET f == F[c][x.n]
      g == CASE x.o \in {"removed", "left"} -> [Account(f) EXCEPT !.there = FALSE]
             [] OTHER -> [f EXCEPT !.there = FALSE]
      h == IF x.after THEN [g EXCEPT !.turn = 0] ELSE g
      said == IF x.o = "removed" /\ (x.inTime \/ f.open = 0) THEN "ours"
              ELSE IF x.o = "left" /\ Mutant = "LeftIsReleased" THEN "ours" ELSE "lost"
  IN /\ F' = [G EXCEPT ![c][x.n] = Settled([h EXCEPT !.owned = FALSE, !.other = FALSE])]
     /\ wrong' = IF f.owned /\ said = "ours" /\ f.other /\ ~f.cut
                 THEN "told that the lock was held to the end" ELSE wrong

TurnEnded(c, x) ==
  LET f == F[c][x.n]  g == F[c][x.n2]  v == Left(x.age, L)
      over == Settled([f EXCEPT !.st = "burnt", !.there = FALSE, !.end = IF D > 0 THEN End ELSE 0]) IN
  CASE x.o = "kept" ->
         /\ F' = [F EXCEPT ![c][x.n] = IF v > 0 THEN [f EXCEPT !.st = "held", !.valid = v, !.tok = x.t] ELSE Burn(f),
                           ![c][x.n2] = NewField]
         /\ newest' = Max(newest, x.t)
         /\ wrong' = IF Fencing /\ x.t <= newest /\ ~f.cut THEN "a token went back" ELSE wrong
    [] x.o = "stands" ->
         /\ F' = [F EXCEPT ![c][x.n] = over, ![c][x.n2] = [g EXCEPT !.st = "wanted", !.there = TRUE, !.ans = 1]]
         /\ UNCHANGED <<newest, wrong>>
    [] OTHER ->
         /\ F' = [F EXCEPT ![c][x.n] = over, ![c][x.n2] = NewField]
         /\ UNCHANGED <<newest, wrong>>

Renewed(c, x) ==
  LET f == F[c][x.n]  v == Left(x.age, L) IN
  /\ IF f.st # "held" \/ f.valid = 0 THEN UNCHANGED F
     ELSE Set(c, x.n, IF x.o = "ok" THEN [f EXCEPT !.valid = Max(@, v)]
                      ELSE Settled(Burn([f EXCEPT !.there = FALSE])))
  /\ UNCHANGED <<newest, wrong>>

Receive(c) ==
  /\ alive[c]
  /\ \E x \in net :
     /\ x.c = c /\ x.done
     /\ net' = Outdated(x)
     /\ CASE x.k = "acquire" -> Answered(c, x)
          [] x.k = "confirm" -> Confirmed(c, x)
          [] x.k = "turn"    -> TurnEnded(c, x)
          [] x.k = "renew"   -> Renewed(c, x)
     /\ UNCHANGED <<srv, subs, msgs, alive, events, idle>>

\* The client ceases to wait. What was sent may still land. (To cease after it has landed is
\* no other case: nothing that the client did in between depends on it.)
Lose(c) ==
  /\ "lose" \in Can /\ alive[c]
  /\ \E x \in net : LET f == F[c][x.n] IN
     /\ x.c = c /\ x.wait /\ ~x.done
     /\ net' = (net \ {x}) \cup {[x EXCEPT !.wait = FALSE, !.age = 0, !.inTime = FALSE, !.after = FALSE]}
     /\ CASE x.k = "acquire" -> Set(c, x.n, [f EXCEPT !.open = @ + 1])
          [] x.k = "turn" ->
               F' = [F EXCEPT ![c][x.n] = Burn(f),
                              ![c][x.n2] = [@ EXCEPT !.st = "wanted", !.turn = x.n]]
          [] OTHER -> UNCHANGED F
     /\ Same

\* L8: the message "called". One that cannot be used is only a wake-up, and to wake up
\* anybody may at any time here.
Message(c) ==
  /\ "message" \in Can /\ alive[c] /\ MinHold = 0
  /\ \E m \in msgs : m.c = c /\
     LET f    == F[c][m.n]
         base == IF Mutant = "LastConfirmed" /\ f.ans > 0 THEN f.ans ELSE m.a
         v    == Left(f.age[base], m.l)
     IN /\ f.st = "wanted" /\ ~Awaits(c, m.n, "acquire")
        /\ Mutant # "LastConfirmed" => m.a >= f.ans
        /\ v > 0
        /\ Fencing => m.t > 0
        /\ Enter(c, m.n, News(f, TRUE), v, m.t)
        /\ UNCHANGED <<srv, subs, net, msgs, alive, events, idle>>

\* The time is over within which anything can be left of a burnt field (L11).
TimeOver(c) ==
  /\ D > 0 /\ alive[c]
  /\ \E n \in Numbers : LET f == F[c][n] IN
     /\ f.st = "burnt" /\ f.end = 0 /\ f.rel > 0 /\ ~Awaits(c, n, "release")
     /\ Set(c, n, [f EXCEPT !.st = "over"])
     /\ UNCHANGED net /\ Same

-----------------------------------------------------------------------------
\* Commands take effect

Land ==
  \E x \in net : ~x.done /\
    \E open \in IF "open" \in Env /\ events < NE /\ x.k \in {"release", "turn"} THEN BOOLEAN ELSE {FALSE} :
      LET y == Run(srv, x, subs, open) IN
      /\ open => y.s.open > 0 /\ srv.open = 0
      /\ srv' = y.s
      /\ msgs' = IF Urgent THEN {} ELSE msgs \cup y.m
      /\ events' = IF open THEN events + 1 ELSE events
      /\ UNCHANGED <<subs, alive, newest>>
      /\ idle' = IF y.s.h # srv.h THEN <<0, 0>> ELSE idle
      /\ IF x.k = "release" /\ x.wait THEN
           \* To keep the model small: the answer to a release comes at once or never.
           net' = net \ {x} /\ Released(x.c, [x EXCEPT !.o = y.o], Seen(F, y.s))
         ELSE
           /\ net' = (net \ {x}) \cup IF x.wait
                THEN {[x EXCEPT !.done = TRUE, !.o = y.o, !.found = y.found, !.t = y.t, !.cut = F[x.c][x.n].cut]} ELSE {}
           /\ F' = Seen(F, y.s) /\ UNCHANGED wrong

-----------------------------------------------------------------------------
\* Time

Less(n) == IF n > 0 THEN n - 1 ELSE 0

Aged(s) ==
  LET ttl == Less(s.ttl) IN
  [s EXCEPT !.ttl = ttl, !.h = IF ttl = 0 THEN Nobody ELSE @, !.open = Less(@),
            !.line = [i \in DOMAIN @ |-> [@[i] EXCEPT !.life = Less(@)]]]

Older(f) == [f EXCEPT !.valid = Less(@), !.next = Less(@), !.end = Less(@),
  !.age = [a \in 1..NA |-> IF a > f.last \/ f.st \in {"burnt", "over", "held"} THEN 0
                           ELSE IF a < f.ans /\ Mutant # "LastConfirmed" THEN Cap ELSE Min(@[a] + 1, Cap)]]

\* Urgent: nobody alive is late, and Redis answers at once.
Due == \/ \E x \in net : x.wait
       \/ \E c \in Clients : alive[c] /\ \E n \in Numbers :
            \/ F[c][n].st = "wanted" /\ F[c][n].there /\ F[c][n].next = 0
            \/ F[c][n].st = "burnt" /\ F[c][n].rel < NR /\ ~Over(F[c][n])

LiveBeside(s) == s.open = 0 /\ \E i \in DOMAIN s.line : s.line[i].life > 0 /\ alive[s.line[i].c]

Tick ==
  /\ Urgent => ~Due
  /\ srv' = Aged(srv)
  /\ F' = [c \in Clients |-> [n \in Numbers |-> Older(F[c][n])]]
  /\ net' = {[x EXCEPT !.age = IF x.wait /\ x.k \in {"turn", "renew"} THEN Min(@ + 1, Cap) ELSE 0, !.left = Less(@)] :
             x \in {y \in net : D = 0 \/ y.done \/ y.left > 0}}
  /\ idle' = IF Urgent THEN << IF srv'.h = Nobody /\ LiveBeside(srv) THEN Min(idle[1] + 1, 9) ELSE 0,
                 IF \E c \in Clients, n \in Numbers : srv.h = <<c, n>> /\ F[c][n].st \notin {"held", "died"}
                 THEN Min(idle[2] + 1, 9) ELSE 0 >> ELSE idle
  /\ UNCHANGED <<subs, msgs, alive, events, newest, wrong>>

-----------------------------------------------------------------------------
\* What else happens

Event == events < NE /\ events' = events + 1
Cut(G, f) == [c \in Clients |-> [n \in Numbers |->
                IF f = <<c, n>> THEN [G[c][n] EXCEPT !.cut = TRUE] ELSE G[c][n]]]

Else ==
  /\ Event /\ UNCHANGED <<newest, wrong, idle>>
  /\ \/ /\ "delete" \in Env /\ srv.h # Nobody
        /\ srv' = Free(srv) /\ F' = Cut(F, srv.h) /\ UNCHANGED <<subs, net, msgs, alive>>
     \/ /\ "force" \in Env /\ srv.h # Nobody
        /\ LET k == Call([Free(srv) EXCEPT !.who = Nobody], Nobody[1], subs, TRUE) IN
           srv' = k.s /\ msgs' = msgs \cup k.m /\ F' = Seen(Cut(F, srv.h), k.s)
        /\ UNCHANGED <<subs, net, alive>>
     \/ /\ "stranger" \in Env /\ srv.h = Nobody
        /\ srv' = [srv EXCEPT !.h = Stranger, !.ttl = L] /\ F' = Seen(F, srv')
        /\ UNCHANGED <<subs, net, msgs, alive>>
     \/ /\ "stranger" \in Env /\ srv.h = Stranger
        /\ srv' = Free(srv) /\ UNCHANGED <<F, subs, net, msgs, alive>>
     \/ /\ "crash" \in Env
        /\ \E c \in Clients : /\ alive[c] /\ alive' = [alive EXCEPT ![c] = FALSE]
             /\ subs' = subs \ {c}
             /\ net' = {[x EXCEPT !.wait = x.wait /\ x.c # c] : x \in {y \in net : ~(y.c = c /\ y.done)}}
             /\ F' = [F EXCEPT ![c] = [n \in Numbers |->
                    [NewField EXCEPT !.st = IF F[c][n].st \in {"held", "turning", "burnt"} \/ Awaits(c, n, "acquire") THEN "died" ELSE "over"]]]
        /\ UNCHANGED <<srv, msgs>>
     \/ /\ "deaf" \in Env
        /\ \E c \in Clients : alive[c] /\ subs' = IF c \in subs THEN subs \ {c} ELSE subs \cup {c}
        /\ UNCHANGED <<srv, net, msgs, alive, F>>
     \/ /\ "forward" \in Env /\ srv' = Aged(srv) /\ UNCHANGED <<subs, net, msgs, alive, F>>
     \/ /\ "back" \in Env
        /\ srv' = [srv EXCEPT !.ttl = IF srv.h = Nobody THEN 0 ELSE @ + 1, !.open = IF @ > 0 THEN @ + 1 ELSE 0,
             !.line = [i \in DOMAIN @ |-> [@[i] EXCEPT !.life = IF @ > 0 THEN Min(@ + 1, PL) ELSE 0]]]
        /\ UNCHANGED <<subs, net, msgs, alive, F>>

Client(c) == DoAcquire(c) \/ DoConfirm(c) \/ DoRelease(c) \/ DoClean(c) \/ DoTurn(c) \/ DoRenew(c)
             \/ GiveUp(c) \/ Receive(c) \/ Lose(c) \/ Message(c) \/ TimeOver(c)

Next == (\E c \in Clients : Client(c)) \/ Land \/ Tick \/ Else
Spec == Init /\ [][Next]_vars
Symmetry == Permutations(Clients)

\* States that differ only in what cannot matter any more are one.
Matters(m) == /\ F[m.c][m.n].st \in {"wanted", "turning"}
              /\ \/ Mutant = "LastConfirmed"
                 \/ m.a >= F[m.c][m.n].ans /\ Left(F[m.c][m.n].age[m.a], m.l) > 0
Known(c, n) == LET f == F[c][n] IN
  CASE f.st = "over"  -> [NewField EXCEPT !.st = "over"]
    [] f.st = "burnt" -> [f EXCEPT !.last = 0, !.age = NewField.age, !.ans = 0, !.next = 0]
    [] f.st = "held"  -> [f EXCEPT !.last = 0, !.age = NewField.age, !.ans = 0, !.next = 0]
    [] OTHER -> f
View == <<srv, subs, net, {m \in msgs : Matters(m)}, [c \in Clients |-> [n \in Numbers |-> Known(c, n)]],
          alive, events, newest, wrong, idle>>

-----------------------------------------------------------------------------
\* What must hold

\* A client may rely on its grant; it was not deleted by hand behind its back.
Valid(c, n) == F[c][n].valid > 0 /\ ~F[c][n].cut

Exclusion == \A c, d \in Clients : \A n, k \in Numbers :
               Valid(c, n) /\ Valid(d, k) => <<c, n>> = <<d, k>>
NotBesideStranger == srv.h = Stranger => \A c \in Clients, n \in Numbers : ~Valid(c, n)
\* Why Exclusion holds. Not where the server's clock is set: there the margin pays for it.
HolderHasKey == \A c \in Clients, n \in Numbers :
               Valid(c, n) => srv.h = <<c, n>> /\ srv.ttl >= F[c][n].valid

NothingWrong == wrong = ""

OnePlace == \A c \in Clients : Cardinality(Places(srv, c)) <= 1

\* A field that its client has forgotten neither stands, alive, nor has the key.
NothingLeft == \A c \in Clients, n \in Numbers : alive[c] /\ F[c][n].st = "over" =>
               srv.h # <<c, n>> /\ \A i \in Exactly(srv, c, n) : srv.line[i].life = 0

\* Urgent: all messages are lost, and yet a free key beside a live place is called within one
\* confirmation (L4), and a call that nobody enters ends with its lease (L7).
Prompt  == idle[1] <= Every
Bounded == idle[2] <= CL

\* L13.
OpenIsOpen == [][ srv.open > 0 /\ srv'.h # srv.h => \A c \in Clients : srv'.h[1] # c ]_vars

\* L6: nobody but its own client removes a live place, except by calling it.
Own(c, s, t) == \E x \in net : ~x.done /\ x.c = c /\ x \notin net'
KeepsPlaces == [][ \A i \in DOMAIN srv.line : LET p == srv.line[i] IN
    p.life > 0 => \/ \E j \in DOMAIN srv'.line : srv'.line[j].c = p.c
                  \/ srv'.h = <<p.c, p.n>> \/ Own(p.c, srv, srv') ]_vars

\* L2, L17: who stands and stays is never passed by a later one, so the places before it
\* only become fewer.
Before(s, c) == {s.line[i].c : i \in {j \in DOMAIN s.line : \E k \in Places(s, c) : j < k}}
NoOvertaking == [][ \A i \in DOMAIN srv.line, j \in DOMAIN srv'.line :
    srv.line[i].c = srv'.line[j].c /\ srv.line[i].n = srv'.line[j].n
      => Before(srv', srv.line[i].c) \subseteq Before(srv, srv.line[i].c) ]_vars
==============================================================================
