-------------------------------- MODULE Units --------------------------------
\* Processes that state how many units of one lock they have, keep and want: a Semaphore, or an RWMutex
\* of which a writer wants all. Rules and words are those of README.md.
\*
\* A client states anything that is allowed, at any time, whatever of its earlier statements is under way.
\* A statement lands at any time, in any order, or never; its answer is heard at any time, or never. A call
\* is heard at any time, again, or never. A client that takes no step while time goes on is stopped.
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
  Clients, First,  \* First may state Most times; everybody else Others times
  Most, Others,
  Capacity, Small, \* the units; First counts with Small of them
  Wants,           \* how many somebody may want, besides none
  Can, OthersCan,  \* what First and the others state: see Kind
  NE, Env,         \* so many events: "delete" (DEL), "strike" (a place ends), "forward" (Redis' clock is set)
  L, K, M,         \* the lease, the call lease, the margin
  Mutant           \* "none", or the name of the rule that is broken

VARIABLES
  srv,             \* Redis
  net,             \* statements under way, and answers that were not heard yet
  calls,           \* all messages "called" that were ever sent
  C,               \* what each client knows
  events,          \* of Env, so far
  cut,             \* nothing is promised of units under these numbers or smaller ones: the key was deleted
  wrong            \* "", or what a step has broken

vars == <<srv, net, calls, C, events, cut, wrong>>

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Less(n)   == IF n > 0 THEN n - 1 ELSE 0
Least(S)  == CHOOSE i \in S : \A j \in S : i <= j
RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET c == CHOOSE c \in S : TRUE IN f[c] + Sum(f, S \ {c})
CapOf(c)  == IF c = First THEN Small ELSE Capacity

-----------------------------------------------------------------------------
\* Redis. rec: of each client the number, the units, and what is left of their lease. held, cap, next are the
\* header: the sum of the units, the least capacity of those who have some, how long no lease ends.
None  == [n |-> 0, u |-> 0, ttl |-> 0]
Empty == [there |-> FALSE, rec |-> [c \in Clients |-> None], held |-> 0, cap |-> 0, next |-> 0, line |-> <<>>]

Has(s, c)    == IF s.rec[c].ttl > 0 THEN s.rec[c].u ELSE 0
Places(s, c) == {i \in DOMAIN s.line : s.line[i].c = c}
Strike(s, c) == [s EXCEPT !.line = SelectSeq(@, LAMBDA p : p.c # c)]

\* Record r of c, whose units are not in the header, comes to it.
Count(s, c, r) == LET alone == s.held = 0 IN
  [s EXCEPT !.rec[c] = r, !.held = @ + r.u,
     !.cap  = IF r.u = 0 THEN @ ELSE IF alone THEN CapOf(c) ELSE Min(@, CapOf(c)),
     !.next = IF r.u = 0 THEN @ ELSE IF alone THEN r.ttl ELSE IF Mutant = "NextNotLowered" THEN @ ELSE Min(@, r.ttl)]

\* What is over is freed, and the rest is counted anew. me: the client that states.
Scan(s, me) == LET in == {c \in Clients : Has(s, c) > 0 /\ ~(Mutant = "ScanWithoutOwn" /\ c = me)} IN
  IF Mutant = "NoScan" THEN s
  ELSE [s EXCEPT !.held = Sum([c \in Clients |-> Has(s, c)], in),
          !.cap  = IF in = {} THEN CapOf(me) ELSE Least({CapOf(c) : c \in in}),
          !.next = IF in = {} THEN 0 ELSE Least({s.rec[c].ttl : c \in in}),
          !.rec  = [c \in Clients |-> IF c # me /\ Has(s, c) = 0 THEN None ELSE s.rec[c]]]

\* Does what the place q wants fit beside what all others have? Who had so little may have left.
Fits(s, q, me) ==
  LET beside(t) == t.held - Has(t, q.c)
      t == IF beside(s) > 0 /\ s.cap < CapOf(q.c) /\ beside(s) + q.want <= CapOf(q.c) THEN Scan(s, me) ELSE s
      o == beside(t)
  IN [s |-> t, ok |-> o + q.want <= IF o > 0 /\ Mutant # "OwnCapacity" THEN Min(t.cap, CapOf(q.c)) ELSE CapOf(q.c)]

\* What a client had beside its place may be gone: it learns of that by a number below its since.
Give(s, q) == LET u == Has(s, q.c) IN
  Count([s EXCEPT !.held = @ - u], q.c,
    [n |-> IF u < q.kept THEN q.n - 1 ELSE q.n, u |-> Max(q.want, u), ttl |-> Max(s.rec[q.c].ttl, K)])

\* The first places have what they want, up to the first one that does not fit.
RECURSIVE Serve(_, _, _)
Serve(s, cs, me) ==
  IF s.line = <<>> THEN [s |-> s, calls |-> cs]
  ELSE LET q == Head(s.line)  f == Fits(s, q, me)  t == Give([f.s EXCEPT !.line = Tail(@)], q) IN
       IF ~f.ok THEN [s |-> f.s, calls |-> cs]
       ELSE Serve(t, IF q.c = me THEN cs ELSE cs \cup {[c |-> q.c, n |-> q.n, u |-> t.rec[q.c].u, age |-> q.age]}, me)

Say(s, cs, word, u, ttl) == [s |-> s, calls |-> cs, o |-> word, u |-> u, ttl |-> ttl]

MakeSo(s, x) ==
  LET c    == x.c
      had  == Has(s, c)
      kept == Min(had, x.keep)
      \* What is not kept is given back. What the client knows of, and keeps, has the lease.
      s1 == Count([s EXCEPT !.held = @ - had], c,
              [n |-> x.n, u |-> kept, ttl |-> IF kept = 0 THEN 0 ELSE IF x.have > 0 THEN Max(s.rec[c].ttl, L) ELSE s.rec[c].ttl])
      inLine == x.want > kept \/ x.again
      old == Places(s1, c)
      p   == [c |-> c, n |-> x.n, want |-> x.want, kept |-> kept, age |-> Min(x.age, K)]
      s2  == IF ~inLine THEN Strike(s1, c) ELSE IF old # {} THEN [s1 EXCEPT !.line[Least(old)] = p] ELSE s1
      r   == Serve(s2, {}, c)
      new == inLine /\ old = {}
      f   == Fits(r.s, p, c)
      direct == new /\ (r.s.line = <<>> \/ Mutant = "PassesLine") /\ f.ok
      s3  == IF direct THEN Give(f.s, p) ELSE IF new THEN [r.s EXCEPT !.line = Append(@, p)] ELSE r.s
      u   == Has(s3, c)
      s4  == IF s3.held = 0 THEN [Empty EXCEPT !.line = s3.line]
             ELSE [s3 EXCEPT !.there = TRUE, !.rec[c] = IF u = 0 THEN None ELSE @]
  IN Say(s4, r.calls, IF Places(s4, c) # {} THEN "waits" ELSE "has", u, IF u = 0 THEN 0 ELSE s3.rec[c].ttl)

State(s, x) ==
  LET r == s.rec[x.c]  t == IF s.there /\ s.next = 0 THEN Scan(s, x.c) ELSE s  u == Has(t, x.c) IN
  CASE Mutant # "UnitsNoVoid" /\ (r.n >= x.n \/ (\E i \in Places(s, x.c) : s.line[i].n >= x.n)) -> Say(s, {}, "void", 0, 0)
    [] x.place /\ u = 0 /\ Places(s, x.c) = {} -> Say(s, {}, "gone", 0, 0)
    [] x.have > 0 /\ Mutant # "UnitsNoHave" /\ (u < x.have \/ (r.n < x.since /\ Mutant # "UnitsNoSince")) -> Say(s, {}, "lost", 0, 0)
    [] OTHER -> MakeSo(t, x)

Aged(s) == [s EXCEPT !.next = Less(@), !.line = [i \in DOMAIN @ |-> [@[i] EXCEPT !.age = Min(@ + 1, K)]],
                     !.rec = [c \in Clients |-> [@[c] EXCEPT !.ttl = Less(@)]]]

-----------------------------------------------------------------------------
\* Clients

NewClient == [
  u      |-> 0,       \* the units that it relies on, if the lease is more than the margin
  lease  |-> 0,       \* what is left of them
  place  |-> FALSE,   \* it has a place, says the last answer
  last   |-> 0,       \* the number of the last statement
  floor  |-> 0,       \* calls of a smaller number give nothing,
  most   |-> 0,       \*   and the others at most that
  since  |-> 0,       \* the number by which it knows of u
  news   |-> 0,       \* the greatest number of which it has heard
  reacts |-> 0,       \* for so long the owners of `lost` units that were told may still work
  lost   |-> 0,
  broken |-> FALSE,   \* the truth: the units it knows of were deleted
  age    |-> 0]       \* since the last statement (for a mutant)

Init == srv = Empty /\ net = {} /\ calls = {} /\ C = [c \in Clients |-> NewClient] /\ events = 0
        /\ cut = [c \in Clients |-> 0] /\ wrong = ""

Margin    == M
Relies(a) == a.u > 0 /\ a.lease > Margin
Ends(a, floor) == [a EXCEPT !.u = 0, !.lease = 0, !.floor = floor, !.broken = FALSE]

\* What a statement does, with u units of which it keeps k, and wants w.
Kind(u, k, w, again) ==
  CASE u = 0 -> IF w = 0 THEN "leave" ELSE "ask" \* also what confirms
    [] w > k -> IF k = u THEN "more" ELSE "turn"
    [] again -> "again" [] k = 0 -> "release" [] k < u -> "shrink" [] OTHER -> "renew"

\* It has u units, keeps k of them and wants w. keep is w where nothing is given back and a call may be on its way.
DoState(c) == LET a == C[c]  n == a.last + 1 IN
  \E k \in 0..a.u : \E w \in {k} \cup {v \in Wants : v > k /\ v <= CapOf(c)} : \E again \in {FALSE} \cup {w = k /\ k = a.u /\ k > 0} :
  LET keep == IF w > k /\ k = a.u /\ (k > 0 \/ a.place) THEN w ELSE k
      x == [c |-> c, n |-> n, have |-> a.u, place |-> a.place /\ a.u = 0, since |-> a.since, want |-> w, again |-> again,
            keep |-> IF Mutant = "KeepIsHave" THEN k ELSE keep, age |-> 0, done |-> FALSE, o |-> "", u |-> 0, ttl |-> 0, bad |-> FALSE]
      less == keep < a.most /\ Mutant # "CallAboveKeep"
      b == [a EXCEPT !.last = n, !.age = 0, !.floor = IF less THEN n ELSE @, !.most = Max(IF less THEN 0 ELSE @, Max(keep, w)),
              !.place = @ /\ (w > k \/ again)]
      d == IF Mutant = "UnitsGivenAnswered" THEN b ELSE [b EXCEPT !.u = Min(@, keep)]
  IN /\ Kind(a.u, k, w, again) \in (IF c = First THEN Can ELSE OthersCan) /\ (a.u = 0 /\ w = 0 => a.last > a.news \/ a.place)
     /\ a.last < (IF c = First THEN Most ELSE Others) /\ a.reacts = 0
     /\ net' = net \cup {x}
     /\ C' = [C EXCEPT ![c] = IF d.u = 0 THEN Ends(d, d.floor) ELSE d]
     /\ UNCHANGED <<srv, calls, events, cut, wrong>>

\* It has u units, for left from some moment after statement n was sent. A lease only grows.
Now(a, n, u, left) == [a EXCEPT !.u = u, !.since = n, !.news = n, !.lease = IF a.u > 0 THEN Max(@, left) ELSE left]

\* Redis has taken away what was relied on: there is nothing to wait for.
Gone(a) == Ends(a, IF a.u > 0 THEN a.last + 1 ELSE a.floor)

Left(a, x, ttl) == (IF Mutant = "UnitsLForK" THEN L ELSE ttl) -
  CASE Mutant = "UnitsFromAnswer" -> 0 [] Mutant = "UnitsLastStatement" -> a.age [] OTHER -> x.age

Answer(a, x) ==
  CASE x.o = "void" \/ (x.n < a.floor /\ Mutant # "AnswerInMargin") -> a
    [] x.o \in {"lost", "gone"} \/ x.u < a.u -> [Gone(a) EXCEPT !.place = x.o = "waits", !.news = x.n]
    [] x.u = 0 -> [a EXCEPT !.place = x.o = "waits", !.news = x.n]
    [] OTHER -> LET left == Left(a, x, x.ttl) IN
         IF left <= Margin /\ a.u = 0 THEN [a EXCEPT !.place = x.o = "waits", !.news = x.n]
         ELSE [Now(a, x.n, x.u, left) EXCEPT !.place = x.o = "waits"]

\* Only the answer to the last statement counts.
Hear(c) == \E x \in net : LET a == C[c] IN
  /\ x.c = c /\ x.done /\ x.n = a.last
  /\ net' = net \ {x}
  /\ C' = [C EXCEPT ![c] = Answer(a, x)]
  /\ wrong' = IF x.bad /\ a.broken /\ a.u > 0 /\ C'[c].u > 0 THEN "a possession had a gap" ELSE wrong
  /\ UNCHANGED <<srv, calls, events, cut>>

HearCall(c) == \E m \in calls : LET a == C[c]  left == Left(a, m, K) IN
  /\ m.c = c /\ m.n >= a.floor /\ m.n >= a.news /\ left > Margin
  /\ C' = [C EXCEPT ![c] = [Now(a, m.n, Max(m.u, a.u), left) EXCEPT !.place = FALSE]]
  /\ UNCHANGED <<srv, net, calls, events, cut, wrong>>

-----------------------------------------------------------------------------
\* Statements land, time goes on, and what else happens

Land == \E x \in net :
  LET y == State(srv, x) IN
  /\ ~x.done
  /\ srv' = y.s /\ calls' = calls \cup y.calls
  /\ net' = (net \ {x}) \cup {[x EXCEPT !.done = TRUE, !.o = y.o, !.u = y.u, !.ttl = y.ttl, !.bad = C[x.c].broken /\ x.have > 0]}
  /\ wrong' = IF y.o \in {"has", "waits"} /\ y.s.there /\ y.s.next = 0 THEN "what is over still counts" ELSE wrong
  /\ UNCHANGED <<C, events, cut>>

Older(a) ==
  LET ends == a.u > 0 /\ a.lease - 1 <= Margin
      b == IF ends THEN [Ends(a, a.last + 1) EXCEPT !.reacts = Less(a.lease), !.lost = a.u, !.place = FALSE]
           ELSE [a EXCEPT !.lease = Less(@), !.reacts = Less(@)]
  IN [b EXCEPT !.age = IF Mutant = "UnitsLastStatement" THEN Min(@ + 1, L) ELSE 0, !.lost = IF b.reacts = 0 THEN 0 ELSE @]

Tick ==
  /\ srv' = Aged(srv)
  /\ C' = [c \in Clients |-> Older(C[c])]
  /\ net' = {[x EXCEPT !.age = Min(@ + 1, IF x.done /\ x.u = 0 THEN 0 ELSE IF x.have > 0 THEN L ELSE IF x.want > 0 THEN K ELSE 0)] : x \in net}
  /\ calls' = {[m EXCEPT !.age = Min(@ + 1, K)] : m \in calls}
  /\ UNCHANGED <<events, cut, wrong>>

Deleted(s) == [Empty EXCEPT !.line = s.line]

Else ==
  /\ UNCHANGED <<net, calls, wrong>>
  /\ \/ /\ srv.there /\ \A c \in Clients : srv.rec[c].ttl = 0 \* the key ends
        /\ srv' = Deleted(srv) /\ UNCHANGED <<C, events, cut>>
     \/ /\ "delete" \in Env /\ events < NE /\ srv.there
        /\ srv' = Deleted(srv) /\ events' = events + 1
        /\ cut' = [c \in Clients |-> IF Has(srv, c) > 0 THEN C[c].last ELSE cut[c]]
        /\ C' = [c \in Clients |-> [C[c] EXCEPT !.broken = @ \/ C[c].u > 0]]
     \/ /\ "strike" \in Env /\ events < NE
        /\ \E c \in Clients : Places(srv, c) # {} /\ srv' = Strike(srv, c)
        /\ events' = events + 1 /\ UNCHANGED <<C, cut>>
     \/ /\ "forward" \in Env /\ events < NE
        /\ srv' = Aged(srv) /\ events' = events + 1 /\ UNCHANGED <<C, cut>>

Next == (\E c \in Clients : DoState(c) \/ Hear(c) \/ HearCall(c)) \/ Land \/ Tick \/ Else
Spec == Init /\ [][Next]_vars

\* States that differ only in what cannot matter any more are one.
View == <<srv, {x \in net : ~x.done \/ x.n = C[x.c].last},
          {m \in calls : m.n >= C[m.c].floor /\ m.n >= C[m.c].news /\ (m.age < K \/ Mutant \in {"UnitsLastStatement", "UnitsFromAnswer", "UnitsLForK"})},
          [c \in Clients |-> [C[c] EXCEPT !.since = IF C[c].u > 0 THEN @ ELSE 0]], events, cut, wrong>>

-----------------------------------------------------------------------------
\* What must hold

Whole(c)   == C[c].since > cut[c]
Counted(c) == IF ~Whole(c) THEN 0 ELSE (IF Relies(C[c]) THEN C[c].u ELSE 0) + (IF C[c].reacts > 0 THEN C[c].lost ELSE 0)

\* The units on which processes rely are never more than any of these count with.
Exclusion == LET all == Sum([c \in Clients |-> Counted(c)], Clients) IN \A c \in Clients : Counted(c) > 0 => all <= CapOf(c)

\* Where Redis' clock is set, the margin is used up, and an owner that was told has none.
ExclusionRelied == LET f == [c \in Clients |-> IF Relies(C[c]) THEN C[c].u ELSE 0] IN \A c \in Clients : f[c] > 0 => Sum(f, Clients) <= CapOf(c)

\* The reason: Redis keeps them, for at least as long; and its sum is never too small.
RedisKeeps == \A c \in Clients : Whole(c) =>
  /\ Relies(C[c]) => Has(srv, c) >= C[c].u /\ srv.rec[c].ttl >= C[c].lease
  /\ C[c].reacts > 0 => Has(srv, c) >= C[c].lost
NoDrift == srv.there /\ srv.next > 0 => srv.held = Sum([c \in Clients |-> Has(srv, c)], Clients)

\* The first place waits only while what it wants does not fit.
Prompt == srv.there /\ srv.next > 0 /\ srv.line # <<>> /\ events = 0 => ~Fits(srv, Head(srv.line), Head(srv.line).c).ok

OnePlace == \A c \in Clients : Cardinality(Places(srv, c)) <= 1
NothingWrong == wrong = ""

\* Nobody gets units while another one waits who came before.
Before(s, c) == LET mine == Places(s, c) IN
  {s.line[i].c : i \in {j \in DOMAIN s.line : \A k \in mine : j < k}} \ {c}
NoOvertaking == [][ \A c \in Clients : Has(srv', c) > Has(srv, c) => \A d \in Before(srv, c) : Places(srv', d) = {} ]_vars
==============================================================================
