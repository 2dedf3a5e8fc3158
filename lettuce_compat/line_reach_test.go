package lettucecompat_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// TestLine_TheDeadAreRemoved: a place that nobody has confirmed within its life, 30 s or its lease
// if that is shorter, is none.
func TestLine_TheDeadAreRemoved(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		for lease, life := range map[time.Duration]time.Duration{5 * time.Second: 5 * time.Second, time.Hour: 30 * time.Second} {
			b.raw.FlushAll(ctx)
			want(t, "life", lettucecompat.PlaceLife(lease), life)
			a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
			a.takes()
			x.n++
			r := x.request()
			r.Lease = lease
			want(t, "stands", x.TryAcquire(ctx, r).Standing, true)
			y.stands(1)
			b.age(t, x, life-time.Second)
			want(t, "alive", x.confirm().Outcome, ok)
			b.age(t, x, life+time.Second)
			a.releases()
			y.called()
			want(t, "places", b.raw.HExists(ctx, lineOfK, "cx").Val(), false)
			want(t, "the dead one", x.confirm().Outcome, gone)
		}
	})
}

// TestLine_WhoDoesNotListenIsPassedOver: and keeps its place, until nobody else is there.
func TestLine_WhoDoesNotListenIsPassedOver(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y, z := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y"), b.peer(t, "z")
		a.takes()
		for i, p := range []*peer{x, y, z} {
			p.stands(i)
		}
		x.StopListening()
		eventually(t, "nobody listens for x", func() bool {
			return b.raw.PubSubNumSub(ctx, "anteroom:client:x").Val()["anteroom:client:x"] == 0
		})
		a.releases()
		y.called()
		y.releases()
		z.called()
		want(t, "x keeps its place", x.confirm().Ahead, 0)
		z.releases() // nobody listens, but x lives
		b.holds(t, x)
		want(t, "called", x.confirm().Called, true)
		x.releases()
		b.nothingLeft(t)
	})
}

// TestLine_ThePassedOverLeaveNoGaps: however often one is passed over, those behind it are found.
func TestLine_ThePassedOverLeaveNoGaps(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y, z := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y"), b.peer(t, "z")
		a.takes()
		x.stands(0)
		x.StopListening()
		eventually(t, "nobody listens for x", func() bool {
			return b.raw.PubSubNumSub(ctx, "anteroom:client:x").Val()["anteroom:client:x"] == 0
		})
		y.stands(1)
		holder, next, last := a, y, z // who is called is never at the tail: the number there is free again
		for range 150 {
			last.stands(2)
			holder.releases()
			next.called()
			holder, next, last = next, last, holder
		}
		want(t, "x keeps its place", x.confirm().Ahead, 0)
	})
}

// TestLine_APatternMakesNobodyAlive: one PSUBSCRIBE * receives everything, and is nobody's ear.
func TestLine_APatternMakesNobodyAlive(t *testing.T) {
	b := onReal(t, nil)
	ps := b.raw.PSubscribe(ctx, "*")
	defer ps.Close()
	if _, err := ps.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
	a.takes()
	x.stands(0)
	y.stands(1)
	x.StopListening()
	eventually(t, "nobody listens for x", func() bool {
		return b.raw.PubSubNumSub(ctx, "anteroom:client:x").Val()["anteroom:client:x"] == 0
	})
	a.releases()
	y.called()
}

// TestLine_TheDeafAreCalled: who says that it hears nothing is not passed over, and is told to
// ask soon.
func TestLine_TheDeafAreCalled(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.peer(t, "a"), b.deafPeer(t, "x"), b.peer(t, "y")
		a.takes()
		if got := x.stands(0); got.TTL > 25*time.Millisecond {
			t.Fatalf("is to ask after %v", got.TTL)
		}
		if got := y.stands(1); got.TTL < 9*time.Second {
			t.Fatalf("who hears is to ask after %v", got.TTL)
		}
		if got := x.confirm(); got.TTL > 25*time.Millisecond || got.Holder != a.field() {
			t.Fatalf("%+v", got)
		}
		a.releases()
		b.holds(t, x)
		want(t, "found", x.confirm().Called, true)
	})
}

// tenThousand fills the line of k with dead places.
func tenThousand(t *testing.T, b *bed) {
	t.Helper()
	fillDead(t, b, 10_000)
}

// fillDead makes the line of k from n dead places.
func fillDead(t testing.TB, b *bed, n int) {
	t.Helper()
	pipe := b.raw.Pipeline()
	for i := 1; i <= n; i++ {
		seq := strconv.Itoa(i)
		pipe.HSet(ctx, lineOfK, "p"+seq, fmt.Sprintf("dead%d:%d %d 10000 0 0 1600000000000", i, int64(first), nonce+int64(i)), fmt.Sprint("cdead", i), seq)
	}
	pipe.HSet(ctx, lineOfK, "head", 1, "tail", n)
	pipe.PExpire(ctx, lineOfK, time.Minute)
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
}

// usecPerScript is the mean of Redis' own time for a script since the statistics began.
func usecPerScript(t testing.TB, b *bed) (usec float64) {
	t.Helper()
	_, rest, _ := strings.Cut(b.raw.Info(ctx, "commandstats").Val(), "cmdstat_evalsha:")
	_, rest, _ = strings.Cut(rest, "usec_per_call=")
	digits, _, found := strings.Cut(strings.ReplaceAll(rest, "\r", ","), ",") // before 6.2 it is the last of its line
	usec, err := strconv.ParseFloat(digits, 64)
	if !found || err != nil {
		t.Fatalf("no mean in %q: %v", digits, err)
	}
	return usec
}

// TestLine_AScriptLooksAt64Places: ten thousand dead places stand before one that lives. No script
// takes long for them, and one after the other comes through to it.
func TestLine_AScriptLooksAt64Places(t *testing.T) {
	b := onReal(t, nil)
	a, x := b.peer(t, "a"), b.peer(t, "x")
	a.takes()
	tenThousand(t, b)
	x.stands(10_000)
	b.raw.ConfigResetStat(ctx)
	a.releases()
	want(t, "places", b.raw.HExists(ctx, lineOfK, "p64").Val(), false)
	want(t, "places", b.raw.HExists(ctx, lineOfK, "p65").Val(), true)
	want(t, "the last one is told to go on", x.looked(), time.Duration(0))
	scripts := 1
	for got := x.confirm(); !got.Called; got = x.confirm() {
		if got.Outcome != ok || got.Holder != "" || got.TTL > time.Millisecond {
			t.Fatalf("%+v", got)
		}
		scripts++
	}
	want(t, "scripts in vain", scripts, 10_000/64)
	if cost := usecPerScript(t, b); cost > 4000 { // some 500 when nothing else runs; all 10,000 at once take ten times as long as this
		t.Fatalf("%.0f µs of Redis' time for a script", cost)
	}
	x.releases()
	b.nothingLeft(t)

	tenThousand(t, b)
	got := x.acquire() // an attempt goes on by itself, too
	for ; got.Outcome == refused && got.Holder == "" && got.TTL <= time.Millisecond; got = x.TryAcquire(ctx, x.request()) {
	}
	want(t, "acquire", got.Outcome, ok)
}

// BenchmarkLine_RedisTimeOfAPair is what an uncontended pair costs Redis by its own count.
func BenchmarkLine_RedisTimeOfAPair(b *testing.B) {
	bed := onReal(b, nil)
	c := newClient(b, bed.raw)
	field := lettucecompat.NewField("me", first)
	pair := func() {
		if c.TryAcquire(ctx, lockRequest("k", field)).Outcome != ok || c.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: field}).Outcome != ok {
			b.Fatal("failed")
		}
	}
	best := math.Inf(1) // of windows that are short enough to be undisturbed now and then
	for b.Loop() {
		pair()
		bed.raw.ConfigResetStat(ctx)
		for range 100 {
			pair()
		}
		best = min(best, 2*usecPerScript(b, bed))
	}
	b.ReportMetric(best, "redis-µs/pair")
}

// BenchmarkLine_RedisTimeOfATurn is what a turn costs Redis where two others always stand.
func BenchmarkLine_RedisTimeOfATurn(b *testing.B) {
	bed := onReal(b, nil)
	line := []*peer{bed.peer(b, "a"), bed.peer(b, "x"), bed.peer(b, "y")}
	line[0].takes()
	line[1].stands(0)
	line[2].stands(1)
	best := math.Inf(1)
	for b.Loop() {
		bed.raw.ConfigResetStat(ctx)
		for range 100 {
			a := line[0]
			a.EndTurn(ctx, lettucecompat.TurnRequest{
				Key: "k", Field: a.field(), Lease: 10 * time.Second, Next: lettucecompat.NewField(a.id, a.n+1), Attempt: a.send + 1,
			})
			a.n, a.send = a.n+1, a.send+1
			line = append(line[1:], a)
			line[0].called()
		}
		best = min(best, usecPerScript(b, bed))
	}
	b.ReportMetric(best, "redis-µs/turn")
}
