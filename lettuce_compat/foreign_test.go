package lettucecompat_test

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/foreign"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// run runs one of the foreign client's scripts.
func run(t testing.TB, s foreign.Client, script, key string, lease time.Duration) bool {
	t.Helper()
	yes, err := s.Run(ctx, script, key, lease)
	if err != nil {
		t.Fatal(err)
	}
	return yes
}

// TestForeign: a program that runs the document's scripts and ours exclude, wake and see each other, byte for byte.
func TestForeign(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		var warned atomic.Bool
		c := b.client(t, func(o *lettucecompat.Options) { o.OnWarning = func(lettucecompat.Warning) { warned.Store(true) } })
		s := foreign.Client{RDB: b.raw, Holder: "server1-thread-123"}

		// Exclusion, seen from both sides; the state is the same byte for byte.
		want(t, "foreign client locks", run(t, s, foreign.Lock, "theirs", lease), true)
		try := asks("theirs", 1)
		try.Try = true
		got := c.Do(ctx, try)
		want(t, "we are refused", got.Word, wordRefused)
		want(t, "by the foreign client", got.Holder, s.Holder)
		want(t, "ours", c.Ours(got.Holder), false)
		want(t, "we lock", c.Do(ctx, asks("ours", 1)).Word, has)
		want(t, "the foreign client is refused", run(t, s, foreign.Lock, "ours", lease), false)
		if b.mini == nil {
			run(t, foreign.Client{RDB: b.raw, Holder: me(1)}, foreign.Lock, "twin", lease)
			want(t, "state", b.raw.Dump(ctx, "ours").Val(), b.raw.Dump(ctx, "twin").Val())
		}

		// Renewal and its end: ours as the foreign client sees it, theirs as we see it.
		want(t, "the foreign client's check of our lock", run(t, foreign.Client{RDB: b.raw, Holder: me(1)}, foreign.Check, "ours", 0), true)
		want(t, "the foreign client renews", run(t, s, foreign.Renew, "theirs", 2*lease), true)
		try = asks("theirs", 2)
		try.Try = true
		want(t, "we see it", c.Do(ctx, try).Next > lease, true)
		want(t, "we cannot release it", c.Do(ctx, gives("theirs", 1)).Word, lost)
		want(t, "the foreign client cannot release ours", run(t, s, foreign.Unlock, "ours", lease), false)

		// Wake-up, both ways.
		w := watchConfirmed(t, c, "theirs")
		want(t, "the foreign client unlocks", run(t, s, foreign.Unlock, "theirs", lease), true)
		b.raw.Publish(ctx, "lock:release:theirs", `{"lockKey":"theirs","releaseTime":1640995200000,"holder":"server1-thread-123"}`)
		signal(t, "the foreign client's message", w.C())
		want(t, "warned of it", warned.Load(), false)
		want(t, "we get it", c.Do(ctx, asks("theirs", 3)).Word, has)

		ps := b.raw.Subscribe(ctx, "lock:release:ours")
		defer ps.Close()
		if _, err := ps.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		want(t, "we release", c.Do(ctx, gives("ours", 1)).Word, hasNothing)
		msg, err := ps.ReceiveMessage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		a, valid := lettucecompat.DesignDocument.ParseRelease(msg.Channel, msg.Payload)
		want(t, "a release", valid && a.Holder == me(1), true)
		want(t, "the foreign client gets it", run(t, s, foreign.Lock, "ours", lease), true)
	})
}

// TestForeignExpiry: a lease that ends frees the lock for the other side.
func TestForeignExpiry(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	c := b.client(t)
	s := foreign.Client{RDB: b.raw, Holder: "server1-thread-123"}
	short := asks("k", 1)
	short.Terms = &lettucecompat.Terms{Call: 30 * time.Millisecond, Lease: 30 * time.Millisecond, Life: time.Second}
	want(t, "we lock", c.Do(ctx, short).Word, has)
	eventually(t, "the foreign client after our lease", func() bool { return run(t, s, foreign.Lock, "k", 30*time.Millisecond) })
	want(t, "our renewal", c.Extend(ctx, renews("k", 1), 0).Outcome, gone)
	i := 2
	eventually(t, "we after the foreign client's lease", func() bool { i++; return c.Do(ctx, asks("k", i)).Word == has })
}

// TestForeign_TheDocumentHasItsScripts: who writes a client from docs/internals/protocol.md writes these.
func TestForeign_TheDocumentHasItsScripts(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/internals/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"lock": foreign.Lock, "unlock": foreign.Unlock, "renew": foreign.Renew, "check": foreign.Check,
	} {
		if !strings.Contains(string(page), "```lua\n"+script+"\n```") {
			t.Errorf("docs/internals/protocol.md lacks %s as it is run here:\n%s", name, script)
		}
	}
}

// dialects are those of a single server, with what a foreign client of each looks like.
var dialects = []struct {
	dialect lettucecompat.Dialect
	channel string
	ids     []string // of our clients
	holder  string   // a foreign one
	turns   int      // one in so many is left to foreign clients
}{
	{lettucecompat.DesignDocument, "lock:release:k", []string{"a", "x", "y"}, "server1-thread-1", 2},
	{lettucecompat.DesignDocument, "lock:release:k", []string{"a", "x", "y"}, javaUUID + ":57", 2},
	{lettucecompat.Redisson, "redisson_lock__channel:{k}", []string{ourUUID[:35] + "a", ourUUID[:35] + "b", ourUUID[:35] + "c"}, javaUUID + ":57", 3},
}

// inDialects runs a test for each dialect, with three of our clients.
func inDialects(t *testing.T, test func(t *testing.T, b *bed, line []*peer, channel, holder string, turns int)) {
	for _, d := range dialects {
		t.Run(fmt.Sprint(d.dialect, " ", d.holder), func(t *testing.T) {
			both(t, func(t *testing.T, b *bed) {
				var line []*peer
				for _, id := range d.ids {
					line = append(line, b.peer(t, id, func(o *lettucecompat.Options) { o.Dialect = d.dialect }))
				}
				test(t, b, line, d.channel, d.holder, d.turns)
			})
		})
	}
}

// listener is a foreign client that hears of releases.
func (b *bed) listener(t *testing.T, subscribe func(ps *redis.PubSub) error) *redis.PubSub {
	t.Helper()
	ps := b.raw.Subscribe(ctx)
	t.Cleanup(func() { _ = ps.Close() })
	if err := subscribe(ps); err != nil {
		t.Fatal(err)
	}
	if _, err := ps.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	go func() {
		for range ps.Channel() { // until it is closed
		}
	}()
	return ps
}

// opens opens the window for the lock anew, for as long as may be. Only the next command may count on it.
func (b *bed) opens() (until int64) {
	words := strings.Fields(b.raw.HGet(ctx, lineOfK, "s").Val())
	until = b.raw.Time(ctx).Val().Add(longWindow).UnixMilli()
	b.raw.HSet(ctx, lineOfK, "s", fmt.Sprint(until, " ", words[1], " ", words[2]))
	return until
}

// longWindow is nearly the longest that there is.
const longWindow = 990 * time.Millisecond

// closes ends the window that is open for the lock: nobody has come.
func (b *bed) closes(t *testing.T) {
	t.Helper()
	words := strings.Fields(b.raw.HGet(ctx, lineOfK, "s").Val())
	b.raw.HSet(ctx, lineOfK, "s", "0 "+words[1]+" "+words[2])
}

// openTurns counts, over n turns of the line, how many have left the lock open. Those are over immediately here.
func openTurns(t *testing.T, b *bed, line []*peer, n int) (open int) {
	t.Helper()
	for range n {
		a := line[0]
		turn := a.wantWord("yield", a.yield(), waits)
		line = append(line[1:], a)
		if turn.Holder == "" {
			open++
			want(t, "the lock is left open", b.raw.Exists(ctx, "k").Val(), int64(0))
			b.closes(t)
			line[0].unit = line[0].wantWord("confirm", line[0].confirm(), has).Unit
		} else {
			line[0].called()
		}
		for _, p := range line { // contended, or retry
			for len(p.messages) > 0 {
				<-p.messages
			}
		}
	}
	return open
}

// TestState_P15_WhoListensGetsTurns: one in two of ours, in Redisson's dialect one in three, is left to foreign clients
// that listen for a release. A pattern counts for nothing: it may be a monitor's.
func TestState_P15_WhoListensGetsTurns(t *testing.T) {
	t.Parallel()
	inDialects(t, func(t *testing.T, b *bed, line []*peer, channel, _ string, turns int) {
		line[0].takes()
		line[1].waits(0)
		line[2].waits(1)
		want(t, "without foreign clients", openTurns(t, b, line, 12), 0)
		ps := b.listener(t, func(ps *redis.PubSub) error { return ps.PSubscribe(ctx, channel) })
		want(t, "for a pattern", openTurns(t, b, line, 12), 0)
		_ = ps.Close()
		eventually(t, "the pattern has gone", func() bool { return b.raw.PubSubNumPat(ctx).Val() == 0 })
		b.listener(t, func(ps *redis.PubSub) error { return ps.Subscribe(ctx, channel) })
		want(t, "for one that listens", openTurns(t, b, line, 12), 12/turns)
	})
}

// TestState_P15_AForeignHolderGetsTurns: one that was seen holding the lock gets its share for 10 s, though it does not listen.
func TestState_P15_AForeignHolderGetsTurns(t *testing.T) {
	t.Parallel()
	inDialects(t, func(t *testing.T, b *bed, line []*peer, _, holder string, turns int) {
		want(t, "ours", line[0].Ours(holder), false)
		b.put(t, "k", hash{holder: "1"}, time.Minute)
		for i, p := range line {
			want(t, "holder", p.waits(i).Holder, holder)
		}
		b.wantTTL(t, lineOfK, life*2/3, life+2*time.Second)
		b.raw.Del(ctx, "k")
		line[0].unit = line[0].wantWord("confirm", line[0].confirm(), has).Unit
		want(t, "while it counts", openTurns(t, b, line, 12), 12/turns)
		old := b.raw.Time(ctx).Val().Add(-10 * time.Second).UnixMilli()
		b.raw.HSet(ctx, lineOfK, "s", fmt.Sprintf("0 0 %d", old))
		want(t, "10 s later", openTurns(t, b, line, 12), 0)
	})
}

// TestState_P15_WhoListensGetsATurnOfALockWithoutALine: also where nobody of ours ever waits.
func TestState_P15_WhoListensGetsATurnOfALockWithoutALine(t *testing.T) {
	t.Parallel()
	inDialects(t, func(t *testing.T, b *bed, line []*peer, channel, _ string, turns int) {
		b.listener(t, func(ps *redis.PubSub) error { return ps.Subscribe(ctx, channel) })
		a, open := line[0], 0
		for range 12 {
			a.takes()
			a.releases()
			if until := strings.Fields(b.raw.HGet(ctx, lineOfK, "s").Val())[0]; until != "0" {
				open++
				b.opens()
				want(t, "holder", a.wantWord("try", a.try(), wordRefused).Holder, "")
				b.closes(t)
			}
		}
		want(t, "open turns", open, 12/turns)
	})
}

// TestState_P15_TheOwnSubscriptionIsNoOthers: who listens itself, for a foreign holder that has gone, leaves no turn open.
func TestState_P15_TheOwnSubscriptionIsNoOthers(t *testing.T) {
	t.Parallel()
	inDialects(t, func(t *testing.T, b *bed, line []*peer, _, _ string, _ int) {
		a := line[0]
		watchConfirmed(t, a.Client, "k")
		for range 6 {
			a.takes()
			a.wantWord("yield", a.yield(), has)
			a.releases()
		}
		b.nothingLeft(t)
	})
}

// TestState_P15_TheWindow: while it is open nobody of ours enters; each learns how long, and the first two are asked
// to retry when it ends. It ends when a foreign client has come.
func TestState_P15_TheWindow(t *testing.T) {
	t.Parallel()
	inDialects(t, func(t *testing.T, b *bed, line []*peer, channel, holder string, turns int) {
		a, x, y := line[0], line[1], line[2]
		b.listener(t, func(ps *redis.PubSub) error { return ps.Subscribe(ctx, channel) })
		a.takes()
		x.waits(0)
		a.contended()
		b.raw.HSet(ctx, lineOfK, "s", fmt.Sprintf("0 %d %d", turns-1, b.raw.Time(ctx).Val().UnixMilli()))
		a.releases()
		if after := x.retries(); after < time.Millisecond || after > time.Second {
			t.Fatalf("retries after %v", after)
		}
		until := b.opens()
		b.raw.HSet(ctx, lineOfK, "s", fmt.Sprintf("%d 0 %d", until, until-longWindow.Milliseconds()))
		for i, state := range []func() lettucecompat.Answer{y.try, y.acquire, x.confirm, y.confirm} {
			b.opens()
			got := state()
			if got.Outcome != ok || got.Word != waits && got.Word != wordRefused || got.Holder != "" || got.Next <= 0 || got.Next > longWindow {
				t.Fatalf("command %d: %+v", i, got)
			}
		}
		b.opens()
		if info, err := a.Inspect(ctx, "k", false); err != nil || info.Open <= 0 || info.Open > longWindow || info.InLine != 2 || info.First != x.id {
			t.Fatalf("%+v, %v", info, err)
		}
		want(t, "held", b.raw.Exists(ctx, "k").Val(), int64(0))
		b.opens()
		x.cancel()
		if after := y.retries(); after <= 0 || after > longWindow {
			t.Fatalf("retries after %v", after)
		}
		b.put(t, "k", hash{holder: "1"}, time.Minute)
		want(t, "holder", y.wantWord("confirm", y.confirm(), waits).Holder, holder)
		b.raw.Del(ctx, "k")
		y.unit = y.wantWord("its chance is used", y.confirm(), has).Unit
		y.releases()

		// A moment far ahead comes from a clock that was set back.
		b.raw.Del(ctx, lineOfK)
		a.takes()
		x.waits(0)
		b.raw.HSet(ctx, lineOfK, "s", fmt.Sprintf("%d 0 %d", until+3_600_000, until-900))
		b.raw.Del(ctx, "k")
		x.wantWord("confirm", x.confirm(), has)
	})
}

// TestState_P15_Strings: with Strings a string is a holder without a name, and counts as a foreign client that was seen: turns
// end open wherever somebody waits.
func TestState_P15_Strings(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		line := []*peer{b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")}
		for _, p := range line {
			p.terms = stringTerms
		}
		a, x, y := line[0], line[1], line[2]
		for _, ttl := range []time.Duration{10 * time.Second, 0} {
			b.raw.Set(ctx, "k", "theirs", ttl)
			got := a.wantWord("try", a.try(), wordRefused)
			want(t, "holder", got.Holder, "")
			want(t, "no end", got.Next < 0, ttl == 0)
			want(t, "the string", b.raw.Get(ctx, "k").Val(), "theirs")
		}
		a.waits(0)
		x.waits(1)
		info, err := a.Inspect(ctx, "k", true)
		if err != nil || info.Type != "string" || !info.Exists || len(info.Holders) != 0 {
			t.Fatalf("%+v, %v", info, err)
		}
		fields, err := y.ForceRelease(ctx, "k", true)
		if err != nil || len(fields) != 1 || fields[0] != "" {
			t.Fatalf("%q, %v", fields, err)
		}
		a.unit = a.wantWord("confirm", a.confirm(), has).Unit
		y.waits(1)
		want(t, "open turns", openTurns(t, b, line, 12), 6)
		b.raw.FlushAll(ctx)
		a.takes()
		x.waits(0)
		y.waits(1)
		want(t, "open turns, though none was seen", openTurns(t, b, line, 12), 6)
		b.raw.FlushAll(ctx)
		a.takes()
		a.releases() // nobody waits: it is free for a client that polls
		b.nothingLeft(t)

		// Their ways to take a lock fail on ours, whatever the value.
		a.takes()
		taken, err := b.raw.SetNX(ctx, "k", "theirs", time.Second).Result()
		want(t, "SET NX takes it", taken || err != nil, false)
	})
}
