------------------------------- MODULE Scripts -------------------------------
\* What Redis does: the scripts of one lock and its line, each one step. A script takes the
\* state of Redis and a command, and returns the new state, the answer, and the calls.
\*
\* State of Redis, about one key:
\*   h, ttl  who has the unit (a field <<client, number>>, Nobody, Kept or Stranger), for how long
\*   line    the places in order: [c, n, life, age]: client, number of its last statement, how long
\*           it lives unless it is confirmed (0: over, but nobody has removed it yet). age is no part
\*           of Redis: the time since that statement was sent, which only its client knows
\*   open    how long the key is left to foreign clients
\*   ctr     the newest token
\* Times are what is left of them. Tokens are counted from the server's time, in which a tick is W
\* tokens long: 0 is a token of now, and older ones are negative. So no state tells the date.
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  L,          \* the lease, which a renewal gives
  K,          \* the call lease, which a grant or a call gives (P4)
  Life,       \* of a place; 0: places do not end by themselves
  Window,     \* how long a turn that ends open leaves the key to strangers (P15)
  Fencing,    \* with tokens
  Mutant      \* "none", or the name of the rule that is broken

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Less(n)   == IF n > 0 THEN n - 1 ELSE 0
Least(S)  == CHOOSE i \in S : \A j \in S : i <= j

W    == 4
Past == -W * (L + 1) \* all tokens that are this old are the same

Nobody   == <<"nobody", 0>>
Kept     == <<"kept", 0>>      \* the mark of MinHold
Stranger == <<"stranger", 0>>

Empty == [h |-> Nobody, ttl |-> 0, line |-> <<>>, open |-> 0, ctr |-> Past]

\* What may be stated (P2): what the client has, how much of it it keeps, what it wants.
What == [ask     |-> [have |-> "nothing", keep |-> 0, want |-> 1],
         try     |-> [have |-> "nothing", keep |-> 0, want |-> 1],
         leave   |-> [have |-> "nothing", keep |-> 0, want |-> 0], \* clean up, too
         confirm |-> [have |-> "place",   keep |-> 1, want |-> 1],
         raise   |-> [have |-> "unit",    keep |-> 1, want |-> 1], \* before anybody enters: it lands as a renewal
         release |-> [have |-> "unit",    keep |-> 0, want |-> 0],
         again   |-> [have |-> "unit",    keep |-> 0, want |-> 0], \* a release that had no answer
         turn    |-> [have |-> "unit",    keep |-> 0, want |-> 1]]

-----------------------------------------------------------------------------
\* The line

Places(s, c) == {i \in DOMAIN s.line : s.line[i].c = c}
Live(s)      == {i \in DOMAIN s.line : s.line[i].life > 0}
Strike(s, I) == LET left == {i \in DOMAIN s.line : i \notin I}
                    nth(k) == CHOOSE i \in left : Cardinality({j \in left : j <= i}) = k
                IN IF I = {} THEN s ELSE [s EXCEPT !.line = [k \in 1..Cardinality(left) |-> s.line[nth(k)]]]

Place(x) == [c |-> x.c, n |-> x.n, age |-> Min(x.age, K), life |-> IF Life = 0 THEN 1 ELSE Life]
Stand(s, x)   == IF Places(s, x.c) = {} THEN [s EXCEPT !.line = Append(@, Place(x))] ELSE s
Confirm(s, x) == IF Places(s, x.c) = {} THEN s
                 ELSE IF Mutant = "ConfirmMoves" THEN Stand(Strike(s, Places(s, x.c)), x)
                 ELSE [s EXCEPT !.line[Least(Places(s, x.c))] = Place(x)]

\* Every grant is new, for K, and has a new token.
Token(s) == IF Fencing THEN [s EXCEPT !.ctr = Max(@ + 1, 0)] ELSE s
Grant(s, f, ttl) == [Token(s) EXCEPT !.h = f, !.ttl = ttl]

\* A free key is given to the first live place whose client hears, or where none does to the
\* first live one. me is the client that states: it hears. deaf do not.
Serve(s, me, deaf) ==
  LET live  == Live(s)
      hears == {i \in live : s.line[i].c = me \/ s.line[i].c \notin deaf}
  IN IF s.h # Nobody \/ (s.open > 0 /\ Mutant # "OpenIgnored") \/ live = {} THEN [s |-> s, calls |-> {}]
     ELSE LET i == Least(IF hears # {} THEN hears ELSE live)
              p == s.line[i]
              t == Grant(Strike(s, {i} \cup (DOMAIN s.line \ live) \cup (IF Mutant = "PassedRemoved" THEN 1..i ELSE {})), <<p.c, p.n>>, IF Mutant = "LongCall" THEN L ELSE K)
          IN [s |-> t,
              calls |-> IF p.c = me THEN {} ELSE {[c |-> p.c, n |-> p.n, age |-> p.age, tok |-> t.ctr]}]

-----------------------------------------------------------------------------
\* Scripts

Has(s, calls) == [s |-> s, calls |-> calls, o |-> "has", ttl |-> s.ttl, unit |-> s.h[2], tok |-> s.ctr]
Say(s, calls, word) == [s |-> s, calls |-> calls, o |-> word, ttl |-> 0, unit |-> 0, tok |-> Past]

\* The unit is given back. x.mark: MinHold keeps the key so long. x.tok: the last token that was used, which the record notes.
GivesBack(s, x) == [s EXCEPT !.h = IF x.mark > 0 THEN Kept ELSE Nobody, !.ttl = x.mark, !.ctr = Max(@, x.tok)]

\* P3 from its third step on. mine: there is a unit that the client has.
MakeSo(s, x, mine, deaf, open) ==
  LET w    == What[x.k]
      f    == <<x.c, x.n>>
      kept == mine /\ w.keep = 1
      \* 3. What is not kept is given back.
      s1 == IF mine /\ ~kept THEN GivesBack(s, x) ELSE s
      \* 4. A unit that the client knows of is raised to the lease; nothing else is (P4). A place
      \* that is not needed goes, one that is needed is confirmed and keeps its position.
      s2 == IF kept /\ w.have = "unit" THEN [s1 EXCEPT !.ttl = Max(@, L)]
            ELSE IF kept /\ Mutant = "Lowers" THEN [s1 EXCEPT !.ttl = K]
            ELSE IF kept /\ Mutant = "ConfirmRaises" THEN [s1 EXCEPT !.ttl = Max(@, K)] ELSE s1
      s3 == IF w.want = 0 \/ kept \/ x.k = "try" THEN Strike(s2, Places(s2, x.c)) ELSE Confirm(s2, x)
      \* 5. The line is served, be it to the client itself, unless this turn is left to foreign clients.
      r  == IF open THEN [s |-> [s3 EXCEPT !.open = Window], calls |-> {}] 
            ELSE IF x.k = "confirm" /\ Mutant = "ConfirmServesNot" THEN [s |-> s3, calls |-> {}] ELSE Serve(s3, x.c, deaf)
      \* 4. A free key beside nobody's live place is granted.
      free == r.s.h = Nobody /\ r.s.open = 0 /\ Live(r.s) = {}
  IN IF w.want = 0 THEN Say(r.s, r.calls, "nothing")
     ELSE IF kept /\ w.have = "place" THEN Has(Token(r.s), r.calls) \* a call may have had no token
     ELSE IF kept \/ r.s.h = f THEN Has(r.s, r.calls)
     ELSE IF free THEN Has(Grant(Strike(r.s, Places(r.s, x.c)), f, IF Mutant = "LongAsk" THEN L ELSE K), {})
     ELSE IF x.k = "try" THEN Say(IF Mutant = "TryStands" THEN Stand(r.s, x) ELSE r.s, r.calls, "refused")
     ELSE Say(Stand(r.s, x), r.calls, "waits")

\* The one statement (P3). A record below x.since is not had (P2). What has used a number makes it void.
State(s, x, deaf, open) ==
  LET own  == s.h[1] = x.c
      mine == own /\ (s.h[2] >= x.since \/ Mutant = "NoSince")
      place == \E i \in Places(s, x.c) : s.line[i].n >= x.since \/ Mutant = "PlaceBelowSince"
      void(n) == CASE Mutant = "NoVoid" -> FALSE [] Mutant = "VoidGt" -> n > x.n [] OTHER -> n >= x.n
  IN IF (own /\ void(s.h[2])) \/ \E i \in Places(s, x.c) : void(s.line[i].n) THEN Say(s, {}, "void")
     ELSE IF What[x.k].have = "unit" /\ ~mine THEN Say(s, {}, "lost")
     ELSE IF What[x.k].have = "place" /\ ~mine /\ ~place THEN Say(s, {}, "gone")
     ELSE MakeSo(s, x, mine, deaf, open)

\* The slot moves (TRYAGAIN): line and record cannot be had. What keeps and wants nothing is sent without
\* them. The others fail, which is as if they had not been sent.
WithoutLine(s, x) ==
  LET own  == s.h[1] = x.c
      mine == own /\ s.h[2] >= x.since
  IN IF own /\ s.h[2] >= x.n /\ Mutant # "NoLineNoVoid" THEN Say(s, {}, "void")
     ELSE IF What[x.k].have = "unit" /\ ~mine THEN Say(s, {}, "lost")
     ELSE Say(IF mine THEN [s EXCEPT !.h = IF x.mark > 0 THEN Kept ELSE Nobody, !.ttl = x.mark] ELSE s, {}, "nothing")

\* A renewal is no statement, and neither is "raise". It names exactly one field, x.unit.
Renew(s, x) == IF s.h = <<x.c, x.unit>> THEN Has([s EXCEPT !.ttl = Max(@, L)], {}) ELSE Say(s, {}, "lost")

\* A tick.
Aged(s) ==
  LET ttl == Less(s.ttl) IN
  [s EXCEPT !.ttl = ttl, !.h = IF ttl = 0 THEN Nobody ELSE @, !.open = Less(@),
            !.line = [i \in DOMAIN @ |-> [@[i] EXCEPT !.life = IF Life = 0 THEN @ ELSE Less(@),
                                                                !.age = Min(@ + 1, K)]],
            !.ctr = IF Fencing THEN Max(@ - W, Past) ELSE @]
==============================================================================
