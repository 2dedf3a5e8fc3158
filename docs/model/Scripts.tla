------------------------------- MODULE Scripts -------------------------------
\* What Redis does: the scripts of a lock and its line, each one step. A script takes the
\* state of Redis and answers [s |-> the new state, r |-> the answer, m |-> messages].
\*
\* State of Redis, about one key:
\*   h, ttl    who has the key (a field <<client, n>>, Nobody, Kept or Stranger), and for how long
\*   line      the places in order: [c, n, a, l, life]: client, number of its field, attempt,
\*             lease, and how long it lives unless it is confirmed (0: dead)
\*   open      how long the key is left to those who do not stand (L13)
\*   ctr, who  the fencing record: the newest token, and the grantee
\* All times are what is left of them, so a state says nothing about the date.
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
  L,        \* the lease
  CL,       \* the call lease (L7)
  PL,       \* the life of a place (L6)
  Window,   \* how long a turn that ends open leaves the key (L13)
  MinHold,  \* 0, or how long a mark keeps the key
  Fencing,  \* with tokens
  Cluster,  \* NUMSUB knows nothing: all clients count as reachable
  Mutant    \* "none", or the name of the rule that is broken

Nobody   == <<"nobody", 0>>
Kept     == <<"kept", 0>>      \* the mark of MinHold
Stranger == <<"stranger", 0>>

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Least(S)  == CHOOSE i \in S : \A j \in S : i <= j

Empty == [h |-> Nobody, ttl |-> 0, line |-> <<>>, open |-> 0, ctr |-> 0, who |-> Nobody]

-----------------------------------------------------------------------------
\* The line

Places(s, c)    == {i \in DOMAIN s.line : s.line[i].c = c}
Exactly(s, c, n) == {i \in Places(s, c) : s.line[i].n = n}
Strike(s, I)    == LET left == {i \in DOMAIN s.line : i \notin I}
                       nth(k) == CHOOSE i \in left : Cardinality({j \in left : j <= i}) = k
                   IN [s EXCEPT !.line = [k \in 1..Cardinality(left) |-> s.line[nth(k)]]]

Life(lease) == Min(lease, PL)

\* L6: the first live place that can be told; where none can, the first live one.
\* A script knows of its own client that it is there.
First(s, me, subs) ==
  LET live  == {i \in DOMAIN s.line : s.line[i].life > 0}
      reach == {i \in live : Cluster \/ s.line[i].c = me \/ s.line[i].c \in subs}
  IN IF reach # {} THEN Least(reach) ELSE IF live # {} THEN Least(live) ELSE 0

\* L3, L20: stand, or confirm by standing again. A newer field takes over the position of
\* its client's older one, an older field changes nothing, a lower attempt lowers nothing.
Stand(s, c, n, a, lease) ==
  LET I == Places(s, c) IN
  IF I = {} THEN
    [s |-> [s EXCEPT !.line = Append(@, [c |-> c, n |-> n, a |-> a, l |-> lease, life |-> Life(lease)])],
     stands |-> TRUE, found |-> FALSE]
  ELSE LET i == Least(I)  p == s.line[i] IN
    IF p.n > n THEN [s |-> s, stands |-> FALSE, found |-> FALSE]
    ELSE IF p.n = n THEN
      LET l == IF Mutant = "LeaseChanges" THEN lease ELSE p.l IN
      [s |-> [s EXCEPT !.line[i] = [p EXCEPT !.a = Max(@, a), !.l = l, !.life = Life(l)]],
       stands |-> TRUE, found |-> TRUE]
    ELSE [s |-> [s EXCEPT !.line[i] = [c |-> c, n |-> n, a |-> a, l |-> lease, life |-> Life(lease)]],
          stands |-> TRUE, found |-> FALSE]

\* The record of a grant that ends: L9, "settle before reserve".
Settle(s, f, last, reserved) ==
  IF ~Fencing \/ s.who # f THEN s
  ELSE [s EXCEPT !.who = Nobody, !.ctr = IF reserved # 0 /\ @ = reserved THEN last ELSE @]
Reserve(s, f) == IF Fencing THEN [s EXCEPT !.ctr = @ + 1, !.who = f] ELSE s

\* L5: the key must not exist; then the first place gets it, its tokens and a message.
\* fence: the script may touch the fencing record (a confirmation may not).
Call(s, me, subs, fence) ==
  LET i == First(s, me, subs) IN
  IF (s.h # Nobody /\ Mutant # "CallWhileTaken") \/ (s.open > 0 /\ Mutant # "OpenIgnored") \/ i = 0
  THEN [s |-> s, m |-> {}]
  ELSE
    LET p     == s.line[i]
        lease == Min(p.l, CL)
        dead  == {j \in DOMAIN s.line : s.line[j].life = 0}
        over  == IF Mutant = "PassedRemoved" THEN {j \in DOMAIN s.line : j < i} ELSE {}
        s1    == [Strike(s, dead \cup over \cup {i}) EXCEPT !.h = <<p.c, p.n>>, !.ttl = lease]
        s2    == IF fence THEN Reserve(s1, <<p.c, p.n>>)
                 ELSE [s1 EXCEPT !.who = Nobody]
    IN [s |-> s2,
        m |-> {[c |-> p.c, n |-> p.n, a |-> p.a,
                l |-> IF Mutant = "WholeLease" THEN p.l ELSE lease,
                t |-> IF fence /\ Fencing THEN s2.ctr ELSE 0]}]

-----------------------------------------------------------------------------
\* The scripts. x is the command, subs the clients that Redis knows to listen.

Answer(s, m, o) == [s |-> s, m |-> m, o |-> o, found |-> FALSE, t |-> 0]

Free(s) == [s EXCEPT !.h = Nobody, !.ttl = 0]

\* x.stand: an attempt that does not only try. x.again: a repeat, which may find its field.
\* x.drop: numbers of fields that this client has burnt.
Acquire(s, x, subs) ==
  LET f   == <<x.c, x.n>>
      s0  == IF x.stand THEN s ELSE Strike(s, {i \in Places(s, x.c) : s.line[i].n \in x.drop})
      s1  == IF \E d \in x.drop : s.h = <<x.c, d>> THEN Settle(Free(s0), s.h, 0, 0) ELSE s0
      i   == First(s1, x.c, subs)
      refused(z, m) ==
        IF ~x.stand THEN Answer(z, m, "refused")
        ELSE LET st == Stand(z, x.c, x.n, x.a, x.l) IN
             [Answer(st.s, m, IF st.stands THEN "stands" ELSE "refused") EXCEPT !.found = st.found]
      taken(found) ==
        LET own == {j \in Places(s1, x.c) : s1.line[j].n <= x.n}
            s2  == Reserve([Strike(s1, own) EXCEPT !.h = f, !.ttl = Max(@, x.l)], f)
        IN [Answer(s2, {}, "granted") EXCEPT !.found = found, !.t = IF Fencing THEN s2.ctr ELSE 0]
  IN IF s1.h = f THEN (IF x.again THEN taken(TRUE) ELSE Answer(s1, {}, "error"))
     ELSE IF s1.h # Nobody THEN refused(s1, {})
     ELSE IF s1.open > 0 THEN refused(s1, {})
     ELSE IF i # 0 /\ s1.line[i].c # x.c THEN LET k == Call(s1, x.c, subs, TRUE) IN refused(k.s, k.m)
     ELSE taken(FALSE)

\* What a release does when it has made the key free: L5, or L13 if it ends open.
HandOn(s, me, subs, open) ==
  IF open /\ s.h = Nobody THEN [s |-> [s EXCEPT !.open = Window], m |-> {}]
  ELSE Call(s, me, subs, TRUE)

\* x.keep: for MinHold. x.last, x.res: tokens that were used and reserved, 0 where not known.
Release(s, x, subs, open) ==
  LET f    == <<x.c, x.n>>
      had  == s.h = f
      mine == Exactly(s, x.c, x.n)
      s1   == IF ~had THEN s ELSE IF x.keep > 0 THEN [s EXCEPT !.h = Kept, !.ttl = x.keep] ELSE Free(s)
      s2   == Settle(Strike(s1, mine), f, x.last, x.res)
      k    == HandOn(s2, Nobody[1], subs, open)
  IN Answer(k.s, k.m, IF had THEN "removed" ELSE IF mine # {} THEN "left" ELSE "none")

\* L10: F goes, the next is called, and F2 (number x.n2) stands at the tail.
Turn(s, x, subs, open) ==
  LET f == <<x.c, x.n>>
      others == \E i \in DOMAIN s.line : s.line[i].life > 0 /\ s.line[i].c # x.c
      s1 == Settle(Free(s), f, x.last, x.res)
      k  == HandOn(s1, Nobody[1], subs, open)
  IN IF s.h # f THEN
       IF Mutant = "TurnStands" THEN Answer(Stand(s, x.c, x.n2, 1, x.l).s, {}, "none")
       ELSE Answer(s, {}, "none")
     ELSE IF ~others /\ ~open THEN
       LET s2 == Reserve(Settle(s, f, x.last, x.res), f) IN
       [Answer([s2 EXCEPT !.ttl = Max(@, x.l)], {}, "kept") EXCEPT !.t = s2.ctr]
     ELSE Answer(Stand(k.s, x.c, x.n2, 1, x.l).s, k.m, "stands")

\* L4: never makes a place, never takes the key for a field without one; finding the key
\* free, it calls.
Confirm(s, x, subs) ==
  LET I == Exactly(s, x.c, x.n) IN
  IF s.h = <<x.c, x.n>> THEN Answer(s, {}, "called")
  ELSE IF I = {} THEN
    IF Mutant = "ConfirmStands" /\ Places(s, x.c) = {}
    THEN Answer(Stand(s, x.c, x.n, x.a, x.l).s, {}, "stands")
    ELSE Answer(s, {}, "gone")
  ELSE
    LET i  == Least(I)
        s1 == [s EXCEPT !.line[i].a = Max(@, x.a), !.line[i].life = Life(s.line[i].l)]
        k  == IF Mutant = "ConfirmKeepsStill" THEN [s |-> s1, m |-> {}] ELSE Call(s1, x.c, subs, FALSE)
    IN Answer(k.s, k.m, IF k.s.h = <<x.c, x.n>> THEN "called" ELSE "stands")

Renew(s, x) == IF s.h = <<x.c, x.n>> THEN Answer([s EXCEPT !.ttl = Max(@, x.l)], {}, "ok")
               ELSE Answer(s, {}, "gone")

Run(s, x, subs, open) ==
  CASE x.k = "acquire" -> Acquire(s, x, subs)
    [] x.k = "release" -> Release(s, x, subs, open)
    [] x.k = "turn"    -> Turn(s, x, subs, open)
    [] x.k = "confirm" -> Confirm(s, x, subs)
    [] x.k = "renew"   -> Renew(s, x)
==============================================================================
