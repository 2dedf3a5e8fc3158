package lettucecompat_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// standInLine makes peers that wait behind a, in the order of their names.
func (b *bed) standInLine(t *testing.T, names ...string) (a *peer, line []*peer) {
	t.Helper()
	a = b.peer(t, "a")
	a.takes()
	for i, name := range names {
		p := b.peer(t, name)
		p.waits(i)
		line = append(line, p)
	}
	return a, line
}

// calledInTurn fails unless a's release, and each next one's, calls the line in its order.
func (b *bed) calledInTurn(t *testing.T, a *peer, line []*peer) {
	t.Helper()
	for _, p := range line {
		a.releases()
		p.called()
		b.holds(t, p)
		a = p
	}
	a.releases()
	b.nothingLeft(t)
}

// TestLine_TheDeadAreRemoved: a place that nobody has confirmed within its life is none.
func TestLine_TheDeadAreRemoved(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		for given, life := range map[time.Duration]time.Duration{20 * time.Second: 20 * time.Second, time.Hour: 30 * time.Second} {
			b.raw.FlushAll(ctx)
			want(t, "life", lettucecompat.PlaceLife(given), life)
			a, line := b.standInLine(t, "x", "y")
			x, y := line[0], line[1]
			x.terms = &lettucecompat.Terms{Call: 2 * time.Second, Lease: given, Life: lettucecompat.PlaceLife(given)}
			x.wantWord("confirm", x.confirm(), waits)
			b.age(t, x, life*3/4)
			x.wantWord("alive", x.confirm(), waits)
			b.age(t, x, life+time.Second)
			a.releases()
			y.called()
			want(t, "place", len(b.placeOf("x")), 0)
			x.wantWord("the dead one", x.confirm(), wordGone)
		}
	})
}

// TestWire_I14_ThePassedOverKeepTheirOrder (line.md 1.6): who does not listen is passed over and keeps its place, in order
// among those like it, until nobody else is there.
func TestWire_I14_ThePassedOverKeepTheirOrder(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, line := b.standInLine(t, "u", "v", "w", "y", "z")
		u, v, w, y, z := line[0], line[1], line[2], line[3], line[4]
		for _, p := range []*peer{u, v, w} {
			b.unsubscribes(t, p)
		}
		a.releases()
		y.called()
		a.waits(4)
		y.releases()
		z.called()
		for i, p := range []*peer{u, v, w} {
			want(t, p.id+": ahead", p.wantWord("confirm", p.confirm(), waits).Ahead, i)
		}
		z.releases()
		a.called()
		for _, p := range []*peer{u, v, w} { // nobody listens, but they live
			a.releases()
			a = p
			p.unit = p.n
			b.holds(t, p)
			p.wantWord("confirm", p.confirm(), has)
		}
		a.releases()
		b.nothingLeft(t)
	})
}

// TestLine_WhoStatesHears: it is not passed over, whatever the server counts.
func TestLine_WhoStatesHears(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		_, line := b.standInLine(t, "x", "y")
		x := line[0]
		b.unsubscribes(t, x)
		b.raw.Del(ctx, "k")
		got := x.wantWord("confirm", x.confirm(), has)
		want(t, "contended", got.Contended, true)
	})
}

// TestLine_APatternMakesNobodyAlive: one PSUBSCRIBE * receives everything, and is nobody's subscription.
func TestLine_APatternMakesNobodyAlive(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	ps := b.raw.PSubscribe(ctx, "*")
	defer ps.Close()
	if _, err := ps.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	a, line := b.standInLine(t, "x", "y")
	b.unsubscribes(t, line[0])
	a.releases()
	line[1].called()
}

// TestLine_AClockThatIsSetBackKeepsTheOrder: all places were confirmed in the future. Each lives on from the first script that reads it.
func TestLine_AClockThatIsSetBackKeepsTheOrder(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, line := b.standInLine(t, "x", "y", "z")
		for _, p := range line {
			b.age(t, p, -2*lease)
		}
		want(t, "confirmed", line[1].wantWord("confirm", line[1].confirm(), waits).Ahead, 1)
		b.unsubscribes(t, line[0])
		a.releases() // checks x, and passes it over
		line[1].called()
		alive, err := strconv.ParseInt(b.placeOf("x")[3], 10, 64)
		if now := b.raw.Time(ctx).Val().UnixMilli(); err != nil || alive > now+30_000 {
			t.Fatalf("x lives for %d ms more", alive-now)
		}
		line[1].releases()
		line[2].called()
		b.age(t, line[0], -2*lease)
		line[2].releases()
		line[0].unit = line[0].n
		b.holds(t, line[0])
	})
}

// TestLine_AClockThatIsSetForwardKeepsTheOrder: all places are past their life. Those that are confirmed before a script
// searches for the first live on, each at its number.
func TestLine_AClockThatIsSetForwardKeepsTheOrder(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, line := b.standInLine(t, "x", "y", "z")
		for _, p := range line {
			b.age(t, p, 2*lease)
		}
		for i, p := range []*peer{line[2], line[0], line[1]} {
			want(t, p.id+": ahead", p.wantWord("confirm", p.confirm(), waits).Ahead, []int{2, 0, 1}[i])
		}
		b.calledInTurn(t, a, line)
	})
}

// TestLine_AClockThatIsSetForwardLeavesNobodyOut: a release comes first, and finds nobody alive. The clients in line ask anew.
func TestLine_AClockThatIsSetForwardLeavesNobodyOut(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, line := b.standInLine(t, "x", "y", "z")
		for _, p := range line {
			b.age(t, p, 2*lease)
		}
		a.releases()
		b.nothingLeft(t)
		for i, p := range line {
			p.wantWord("confirm", p.confirm(), wordGone)
			if i == 0 {
				p.takes()
			} else {
				p.waits(i - 1)
			}
		}
		b.calledInTurn(t, line[0], line[1:])
	})
}

// fillDead makes the line of k from n dead places.
func fillDead(t testing.TB, b *bed, n int) {
	t.Helper()
	pipe := b.raw.Pipeline()
	for i := 1; i <= n; i++ {
		pipe.HSet(ctx, lineOfK, "p"+strconv.Itoa(i), fmt.Sprintf("dead%d %d 2000 1600000000000 ABC", i, int64(first)), fmt.Sprint("cdead", i), i)
	}
	pipe.HSet(ctx, lineOfK, ":", fmt.Sprintf("1 %d %d 1600000000000 0", n, n))
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

// TestLine_AScriptChecks64Places: ten thousand dead places are before one that lives. No script
// takes long for them, and one after the other comes through to it.
func TestLine_AScriptChecks64Places(t *testing.T) {
	t.Parallel()
	const dead = 10_000
	b := onReal(t, nil)
	a, x := b.peer(t, "a"), b.peer(t, "x")
	a.takes()
	fillDead(t, b, dead)
	x.waits(dead)
	b.raw.ConfigResetStat(ctx)
	a.releases()
	want(t, "places", b.raw.HExists(ctx, lineOfK, "p64").Val(), false)
	want(t, "places", b.raw.HExists(ctx, lineOfK, "p65").Val(), true)
	want(t, "the last one is notified to continue", x.retries(), time.Duration(0))
	scripts := 1
	got := x.confirm()
	for ; got.Word == waits; got = x.confirm() {
		if got.Outcome != ok || got.Holder != "" || got.Next > time.Millisecond {
			t.Fatalf("%+v", got)
		}
		scripts++
	}
	x.unit = x.wantWord("at last", got, has).Unit
	want(t, "scripts in vain", scripts, dead/64)
	// About 500 when nothing else runs; all 10,000 together take ten times as long as the bound.
	if cost := usecPerScript(t, b); !pace.Within(time.Duration(cost)*time.Microsecond, 4*time.Millisecond) {
		t.Fatalf("%.0f µs of Redis' time for a script", cost)
	}
	x.releases()
	b.nothingLeft(t)

	fillDead(t, b, dead)
	for got = x.acquire(); got.Word == waits && got.Holder == "" && got.Next <= time.Millisecond; got = x.acquire() {
	}
	x.wantWord("asks go on by themselves", got, has)
}

// TestLine_Gaps: the last client to leave takes the line along, wherever those were that left before; and who has only
// gaps before it is the first.
func TestLine_Gaps(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, line := b.standInLine(t, "x", "y", "z")
		x, y, z := line[0], line[1], line[2]
		for i, order := range [][]*peer{{x, y, z}, {x, z, y}, {y, x, z}, {y, z, x}, {z, x, y}, {z, y, x}} {
			if i > 0 {
				for i, p := range line {
					p.waits(i)
				}
			}
			for _, p := range order {
				p.wantWord("cancel", p.cancel(), hasNothing)
			}
			want(t, "line", b.raw.Exists(ctx, lineOfK).Val(), int64(0))
		}
		a.wantWord("renew", a.state(unit, 1, 1), has)
		x.waits(0)
		for range 60 {
			y.waits(1)
			z.waits(2)
			y.cancel()
			z.cancel()
		}
		y.waits(1)
		want(t, "number", b.raw.HGet(ctx, lineOfK, "cy").Val(), "62")
		z.waits(2)
		a.releases()
		x.called()
		want(t, "ahead", z.wantWord("confirm", z.confirm(), waits).Ahead, 1)
		y.cancel()
		want(t, "ahead", z.wantWord("confirm", z.confirm(), waits).Ahead, 0)
		x.releases()
		z.called()
		z.releases()
		b.nothingLeft(t)
	})
}

// TestLine_EndsByItself: the hash lives for as long as the longest place life in it, and a second.
func TestLine_EndsByItself(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		began := time.Now()
		left := func() {
			t.Helper()
			b.wantTTL(t, lineOfK, life+time.Second/2-time.Since(began), life+time.Second)
		}
		_, line := b.standInLine(t, "x")
		left()
		b.raw.PExpire(ctx, lineOfK, life/2)
		b.age(t, line[0], life/2)
		words := strings.Fields(b.raw.HGet(ctx, lineOfK, ":").Val())
		words[3] = "1600000000000" // the end that the line knows of is near
		b.raw.HSet(ctx, lineOfK, ":", strings.Join(words, " "))
		began = time.Now()
		line[0].wantWord("confirm", line[0].confirm(), waits)
		left()
	})
}

// TestLine_WhatIsNoLineIsReplaced: entries that no script of ours has written call nobody and harm nobody.
func TestLine_WhatIsNoLineIsReplaced(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		for _, entries := range []hash{
			{":": "x"},
			{"head": "1", "tail": "2", "p1": "x:17 1 1 1 0 1"},
			{":": "1 2 2 9999999999999 0", "p1": "x", "p2": "", "cx": "2", "cy": "1"},
			{":": "1 1 1 9999999999999 0", "p1": "z 1700000000000000 2000 9999999999999 ABC", "cx": "1"},
			{"s": "x"},
			{"s": "1 1 1"},
		} {
			b.raw.FlushAll(ctx)
			b.put(t, lineOfK, entries, time.Minute)
			a, x := newPeer(t, b.rdb, "a"), newPeer(t, b.rdb, "x")
			for try := 0; ; try++ {
				got := a.acquire()
				if got.Outcome != ok || try > 5 {
					t.Fatalf("%v: %+v", entries, got)
				}
				if got.Word == has {
					break
				}
				if got.Holder != "" { // a place that looks like one is called
					b.raw.Del(ctx, "k")
				}
			}
			x.wantWord("acquire", x.acquire(), waits)
			a.releases()
			x.unit = x.wantWord("confirm", x.confirm(), has).Unit
			x.releases()
		}
	})
}
