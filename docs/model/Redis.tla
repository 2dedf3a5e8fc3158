-------------------------------- MODULE Redis --------------------------------
\* What Redis does about one key: each script is one step. It takes the state of Redis and a command, and returns the
\* new state, the answer, and the calls. There are two layouts. That of a Mutex (Document) is what foreign clients
\* know: a field <client>:<number>, which keeps the number by which it came. That of units has a record of each
\* client, which takes the number of each command, and a header. The line is the same.
\*
\* State of Redis:
\*   rec     of each client the number n, the units u, what is left of their lease, the capacity that they count with
\*   held, cap, next
\*           the header: the sum of the units, the least capacity of those who have some, how long no lease ends
\*   other   who else has it: Nobody, a "stranger", or a client by the mark that its release has left (MinHold)
\*   line    the places in order: [c, n, want, kept, cap, life, age]: client, number of its last command, what it
\*           wants in all, what it had beside, the capacity that it counts with, how long it lives unless it is
\*           confirmed (0: over, but nobody has removed it yet). age is no part of Redis: the time since that command
\*           was sent, which only its client knows
\*   open    how long the key is left to foreign clients
\*   ctr     the newest token
\* Times are what is left of them. Tokens are counted from the server's time, in which a tick is W tokens long: 0 is a
\* token of now, and older ones are negative. So no state tells the date.
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Clients,
  Document,   \* the layout is that of a Mutex, which has one unit
  L, K,       \* the lease, which a renewal gives; the call lease, which a grant gives
  Life,       \* of a place; 0: places do not end by themselves
  Window,     \* how long a turn that ends open leaves the key to strangers
  Fencing,    \* with tokens
  Mutant      \* "none", or the name of the rule that is broken

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Less(n)   == IF n > 0 THEN n - 1 ELSE 0
Least(S)  == CHOOSE i \in S : \A j \in S : i <= j
RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET c == CHOOSE c \in S : TRUE IN f[c] + Sum(f, S \ {c})

W    == 4
Past == -W * (L + 1) \* all tokens that are this old are the same

None   == [n |-> 0, u |-> 0, ttl |-> 0, cap |-> 0]
Nobody == [by |-> "nobody", ttl |-> 0]
Empty  == [rec |-> [c \in Clients |-> None], held |-> 0,
      cap |-> 0, next |-> 0, other |-> Nobody, line |-> <<>>, open |-> 0, ctr |-> Past]

\* Somebody has something, and what. What is over is nothing.
Has(s, c) == IF s.rec[c].ttl > 0 THEN s.rec[c].u ELSE 0

-----------------------------------------------------------------------------
\* The header

\* The record r of c, whose units are not in the header, comes to it.
Count(s, c, r) == LET alone == s.held = 0 IN
  [s EXCEPT !.rec[c] = r, !.held = @ + r.u,
     !.cap  = IF alone THEN r.cap ELSE Min(@, r.cap),
     !.next = IF alone THEN r.ttl ELSE IF Mutant = "NextNotLowered" THEN @ ELSE Min(@, r.ttl)]

\* What is over is freed, and the rest is counted anew. me: the client that sends the command, whose record may not be written yet.
Counted(s, me, in) ==
  [s EXCEPT !.held = Sum([c \in Clients |-> Has(s, c)], in),
     !.cap  = IF in = {} THEN 0 ELSE Least({s.rec[c].cap : c \in in}),
     !.next = IF in = {} THEN 0 ELSE Least({s.rec[c].ttl : c \in in}),
     !.rec  = [c \in Clients |-> IF c # me /\ Has(s, c) = 0 THEN None ELSE @[c]]]
Scan(s, me) == IF Mutant = "NoScan" THEN s
               ELSE Counted(s, me, {c \in Clients : Has(s, c) > 0 /\ ~(Mutant = "ScanWithoutOwn" /\ c = me)})

\* A key in which nobody has anything is none.
Tidy(s, c) == IF s.held = 0 THEN [s EXCEPT !.rec = [d \in Clients |-> None], !.cap = 0, !.next = 0]
              ELSE IF Has(s, c) = 0 THEN [s EXCEPT !.rec[c] = None] ELSE s

-----------------------------------------------------------------------------
\* The line

Places(s, c) == {i \in DOMAIN s.line : s.line[i].c = c}
Live(s)      == {i \in DOMAIN s.line : s.line[i].life > 0}
Strike(s, I) == LET left == {i \in DOMAIN s.line : i \notin I}
                    nth(k) == CHOOSE i \in left : Cardinality({j \in left : j <= i}) = k
                IN IF I = {} THEN s ELSE [s EXCEPT !.line = [k \in 1..Cardinality(left) |-> s.line[nth(k)]]]

\* Does what the place q wants fit? A Mutex is given if nobody has it. Otherwise no capacity may be exceeded, neither that of q
\* nor that of a holder; who counted with less may have left.
Fits(s, q, me) ==
  LET beside(t) == t.held - Has(t, q.c)
      t == IF beside(s) > 0 /\ s.cap < q.cap /\ beside(s) + q.want <= q.cap THEN Scan(s, me) ELSE s
      o == beside(t)
  IN IF Document THEN [s |-> s, ok |-> s.held = 0 /\ s.other = Nobody /\ (s.open = 0 \/ Mutant = "OpenIgnored")]
     ELSE [s |-> t, ok |-> o + q.want <= IF o > 0 /\ Mutant # "OwnCapacity" THEN Min(t.cap, q.cap) ELSE q.cap]

Token(s) == IF Fencing THEN [s EXCEPT !.ctr = Max(@ + 1, 0)] ELSE s

\* The place q gets what it wants, at least for `lease`. What its client had beside may be gone: it learns of that by a number
\* that is smaller
\* than that of any grant.
Give(s, q, lease) == LET u == Has(s, q.c) IN
  Token(Count([s EXCEPT !.held = @ - u], q.c,
    [n |-> IF u >= q.kept THEN q.n ELSE IF Mutant = "DeletedGoesOn" THEN q.n
          ELSE 0, u |-> Max(q.want, u), ttl |-> Max(s.rec[q.c].ttl, lease), cap |-> q.cap]))

\* The first live place whose client hears, or where none does the first live one, has what it wants; then the next one behind
\* it, up to the
\* first one for which it does not fit. Places before `from` were passed. The client `me` hears. deaf do not.
RECURSIVE Serve(_, _, _, _, _)
Serve(s, calls, me, deaf, from) ==
  LET live == {i \in Live(s) : i >= from} IN
  IF live = {} THEN [s |-> s, calls |-> calls]
  ELSE LET
           hears == {i \in live : s.line[i].c = me \/ s.line[i].c \notin deaf}
           i == Least(IF hears # {} THEN hears ELSE live)
           q == s.line[i]
           f == Fits(s, q, me)
           dead == DOMAIN s.line \ Live(s)
           gone == {i} \cup dead \cup (IF Mutant = "PassedRemoved" THEN 1..i ELSE {})
           t == Give(Strike(f.s, gone), q, IF Mutant = "LongCall" THEN L ELSE K)
       IN IF ~f.ok THEN [s |-> f.s, calls |-> calls]
          ELSE Serve(t, IF q.c = me THEN calls ELSE calls
                \cup {[c |-> q.c, n |-> q.n, u |-> t.rec[q.c].u, age |-> q.age, tok |-> t.ctr]}, me, deaf,
                     Cardinality({j \in 1..i : j \notin gone}) + 1)

-----------------------------------------------------------------------------
\* Scripts. A command x says what its client c has: `have` units or a place; how many it keeps at most, and wants in all;
\* `since`: an older record
\* is not its own. again: it takes a place though it has enough. try: it takes none. What it wants counts with the capacity cap, and
\* what it keeps with `of`. mark: MinHold keeps the key so long after it was given back. tok: the last token that was used.

\* An answer: the word, units, their number, what is left of them, the newest token.
Say(s, calls, word, c, u) == [s |-> s, calls |-> calls, o |-> word, u |-> u, rec |-> IF u = 0 THEN 0 ELSE s.rec[c].n,
                              ttl |-> IF u = 0 THEN 0 ELSE s.rec[c].ttl, tok |-> IF u = 0 THEN Past ELSE s.ctr]

MakeSo(s, x, mine, deaf, open) ==
  LET c    == x.c
      q    == s.rec[c]
      had  == IF mine THEN Has(s, c) ELSE 0
      kept == Min(had, x.keep)
      \* 3. What is not kept is given back. What the client knows of, and keeps, has the lease.
      of   == IF kept >= x.want /\ q.cap <= x.cap THEN x.cap ELSE x.of
      r    == [n |-> IF Document THEN q.n ELSE x.n, u |-> kept, cap |-> of,
               ttl |-> CASE x.have > 0 -> Max(q.ttl, L)
                         [] Mutant = "Lowers" -> K [] Mutant = "ConfirmRaises" -> Max(q.ttl, K) [] OTHER -> q.ttl]
      s0   == [s EXCEPT !.held = @ - had, !.rec[c] = IF mine THEN None ELSE @,
                 !.other = IF had > kept /\ x.mark > 0 THEN [by |-> c, ttl |-> x.mark] ELSE @,
                 !.ctr = IF had > kept THEN Max(@, x.tok) ELSE @]
      \* a call may have had no token
      s1   == IF kept = 0 THEN s0 ELSE IF kept > x.have THEN Token(Count(s0, c, r)) ELSE Count(s0, c, r)
      s2   == IF kept > 0 /\ q.cap < of /\ q.cap = s.cap /\ s1.held > kept THEN Scan(s1, c) ELSE s1
      \* 4. A place that is not needed goes, one that is needed is confirmed and keeps its position.
      wants  == x.want > kept \/ x.again \/ (kept > 0 /\ x.cap < of)
      old    == Places(s2, c)
      p      == [c |-> c, n |-> x.n, want |-> x.want, kept |-> kept,
            cap |-> x.cap, age |-> Min(x.age, K), life |-> IF Life = 0 THEN 1 ELSE Life]
      stands == old # {} /\ wants /\ ~x.try
      append(t) == [t EXCEPT !.line = Append(@, p)]
      s3     == IF ~stands THEN Strike(s2, old) ELSE IF Mutant = "ConfirmMoves" THEN append(Strike(s2, old))
            ELSE [s2 EXCEPT !.line[Least(old)] = p]
      \* 5. The line is served, be it to the client itself, unless this turn is left to foreign clients.
      r3     == IF open THEN [s |-> [s3 EXCEPT !.open = Window], calls |-> {}]
                ELSE IF x.place /\ Mutant = "ConfirmServesNot" THEN [s |-> s3, calls |-> {}] ELSE Serve(s3, {}, c, deaf, 1)
      waits  == wants /\ ~(stands /\ Places(r3.s, c) = {})
      f      == IF waits /\ ~stands /\ (Live(r3.s) = {} \/ Mutant = "PassesLine") THEN Fits(r3.s, p, c)
            ELSE [s |-> r3.s, ok |-> FALSE]
      direct == f.ok
      s4     == IF direct THEN Give(Strike(f.s, DOMAIN f.s.line \ Live(f.s)), p, IF Mutant = "LongAsk" THEN L ELSE K)
                ELSE IF waits /\ ~stands /\ (~x.try \/ Mutant = "TryStands") THEN append(f.s) ELSE f.s
      u      == IF ~mine /\ s4.rec[c].n < x.n /\ s4.rec[c].n > 0 THEN 0 ELSE Has(s4, c) \* of a late command: it is not told
  IN Say(Tidy(s4, c), r3.calls, IF waits /\ ~direct /\ ~x.try THEN "waits" ELSE "has", c, u)

\* A command makes itself void where its client has done something under its number or a greater one.
State(s, x, deaf, open) ==
  LET c     == x.c
      t     == IF ~Document /\ s.held > 0 /\ s.next = 0 THEN Scan(s, c) ELSE s
      u     == Has(t, c)
      mine  == u > 0 /\ (t.rec[c].n >= x.since \/ (~Document /\ x.have = 0) \/ Mutant = "NoSince")
      marked == x.mark > 0 /\ s.other.by = c
      void(n) == CASE Mutant = "NoVoid" -> FALSE [] Mutant = "VoidGt" -> n > x.n [] OTHER -> n >= x.n
  IN CASE void(s.rec[c].n) \/ (\E i \in Places(s, c) : void(s.line[i].n)) -> Say(s, {}, "failed", c, 0)
       [] (x.have > 0 \/ x.mark > 0) /\ ~mine /\ ~marked -> Say(s, {}, "lost", c, 0)
       [] x.have > 0 /\ mine /\ (u < x.have \/ (x.keep > 0 /\ s.rec[c].cap > x.of)) -> Say(s, {}, "lost", c, 0)
       [] x.place /\ x.keep > 0 /\ ~mine /\ (\A i \in Places(s, c) : s.line[i].n < x.since) -> Say(s, {}, "gone", c, 0)
       [] OTHER -> MakeSo(t, x, mine, deaf, open)

\* The slot moves (TRYAGAIN): the line and the tokens cannot be had. What only keeps or gives back units is sent without them.
\* The others fail.
WithoutLine(s, x) ==
  IF x.have = 0 \/ x.want > Min(x.keep, x.have) \/ x.cap < x.of \/ x.again THEN Say(s, {}, "failed", x.c, 0)
  ELSE LET y == State([s EXCEPT !.line = <<>>, !.rec[x.c].n = IF Mutant = "NoLineNoVoid" /\ @ >= x.n THEN x.since
        ELSE @], [x EXCEPT !.tok = Past], {}, FALSE)
       IN [y EXCEPT !.s.line = s.line]

\* A renewal names a grant, x.since, and changes the end of its record only.
Renew(s, x) == LET q == s.rec[x.c] IN
  IF Has(s, x.c) >= x.have /\ (IF Document THEN q.n = x.since ELSE q.n >= x.since \/ Mutant = "RenewsAny")
  THEN LET t == [s EXCEPT !.rec[x.c].ttl = Max(@, L)] IN Say(t, {}, "has", x.c, Has(s, x.c)) ELSE Say(s, {}, "lost", x.c, 0)

\* A tick. The field of a Mutex ends with its lease; units wait for a script.
Aged(s) ==
  LET t == [s EXCEPT !.rec = [c \in Clients |-> [@[c] EXCEPT !.ttl = Less(@)]], !.next = Less(@), !.open = Less(@),
              !.other = IF @.ttl <= 1 THEN Nobody ELSE [@ EXCEPT !.ttl = @ - 1],
              !.line = [i \in DOMAIN @ |-> [@[i] EXCEPT !.life = IF Life = 0 THEN @ ELSE Less(@), !.age = Min(@ + 1, K)]],
              !.ctr = IF Fencing THEN Max(@ - W, Past) ELSE @]
  IN IF Document THEN Counted(t, "nobody", {c \in Clients : Has(t, c) > 0}) ELSE t

\* Somebody deletes the key.
Deleted(s) == [s EXCEPT !.rec = [c \in Clients |-> None], !.held = 0, !.cap = 0, !.next = 0, !.other = Nobody]
==============================================================================
