package lettucecompat_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// listener is a stranger that hears of releases.
func (b *bed) listener(t *testing.T, pattern bool) *redis.PubSub {
	t.Helper()
	subscribe := b.raw.Subscribe
	if pattern {
		subscribe = b.raw.PSubscribe
	}
	ps := subscribe(ctx, "lock:release:k")
	t.Cleanup(func() { _ = ps.Close() })
	if _, err := ps.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	go func() {
		for range ps.Channel() { // until it is closed
		}
	}()
	return ps
}

// turns counts, over n releases in a line of a, x and y, how many have left the lock open. Those
// are over at once here.
func turns(t *testing.T, b *bed, n int) (open int) {
	t.Helper()
	line := []*peer{b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")}
	line[0].takes()
	line[1].stands(0)
	line[2].stands(1)
	for range n {
		a := line[0]
		turn := a.EndTurn(ctx, lettucecompat.TurnRequest{
			Key: "k", Field: a.field(), Lease: 10 * time.Second, Next: lettucecompat.NewField(a.id, a.n+1), Attempt: a.send + 1,
		})
		if turn.Outcome != ok || turn.Kept || !turn.Standing {
			t.Fatalf("%+v", turn)
		}
		a.n, a.send = a.n+1, a.send+1
		line = append(line[1:], a)
		if turn.Holder == "" {
			open++
			want(t, "the lock is left open", b.raw.Exists(ctx, "k").Val(), int64(0))
			want(t, "the first one looks", line[0].looked(), turn.TTL)
			want(t, "and the second", line[1].looked(), turn.TTL)
			b.raw.HSet(ctx, lineOfK, "open", 0) // nobody came
			want(t, "found", line[0].confirm().Called, true)
		}
		line[0].called()
	}
	return open
}

// TestLine_AShareOfTheTurnsEndsOpen: for each stranger that listens, one in each round of the line;
// none where nobody does; few for a pattern, which may be a monitor's.
func TestLine_AShareOfTheTurnsEndsOpen(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		want(t, "without strangers", turns(t, b, 12), 0)
		b.raw.FlushAll(ctx)
		ps := b.listener(t, false)
		if got := turns(t, b, 12); got < 3 || got > 5 {
			t.Fatalf("%d of 12 turns are open for a stranger that listens", got)
		}
		b.raw.FlushAll(ctx)
		second := b.listener(t, false)
		if got := turns(t, b, 12); got < 6 { // all, because none of them comes
			t.Fatalf("%d of 12 turns are open for two strangers that listen", got)
		}
		_, _ = ps.Close(), second.Close()
		b.raw.FlushAll(ctx)
		b.listener(t, true)
		if got := turns(t, b, 40); got != 2 {
			t.Fatalf("%d of 40 turns are open for a pattern", got)
		}
	})
}

// TestLine_AHolderThatDoesNotStandGetsTurns: who was seen holding the lock without calling, a
// program of another kind or a release without the line, gets a share for 10 s.
func TestLine_AHolderThatDoesNotStandGetsTurns(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		for _, holder := range []string{"server1-thread-1", "old-1-00112233aabb:17"} {
			b.raw.FlushAll(ctx)
			want(t, "calls", lettucecompat.DesignDocument.Calls(holder), false)
			b.put(t, "k", hash{holder: "1"}, time.Minute)
			x, y := b.peer(t, "x"), b.peer(t, "y")
			x.stands(0)
			y.stands(1)
			b.raw.Del(ctx, "k")
			want(t, "called", x.confirm().Called, true)
			open := 0
			for _, p := range []*peer{x, y} {
				p.releases()
				if until, _ := b.raw.HGet(ctx, lineOfK, "open").Int64(); until > 0 && b.raw.Exists(ctx, "k").Val() == 0 {
					open++
				}
				b.raw.HSet(ctx, lineOfK, "open", 0)
				if p == x {
					want(t, "called", y.confirm().Called, true)
				}
			}
			want(t, "open turns", open > 0, true)
		}
	})
}

// TestLine_WhileItIsOpenNobodyOfOursEnters: neither by an attempt nor by a confirmation or a
// release; each is told how long.
func TestLine_WhileItIsOpenNobodyOfOursEnters(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
		a.takes()
		x.stands(0)
		b.raw.Del(ctx, "k")
		open := func(by time.Duration) {
			b.raw.HSet(ctx, lineOfK, "open", b.raw.Time(ctx).Val().Add(by).UnixMilli())
		}
		open(900 * time.Millisecond)
		for name, got := range map[string]lettucecompat.AcquireReply{"try": y.try(), "acquire": y.acquire()} {
			if got.Outcome != refused || got.Holder != "" || got.TTL <= 0 || got.TTL > 900*time.Millisecond {
				t.Fatalf("%s: %+v", name, got)
			}
		}
		if got := x.confirm(); got.Called || got.Holder != "" || got.TTL <= 0 || got.TTL > 900*time.Millisecond {
			t.Fatalf("confirm: %+v", got)
		}
		want(t, "left", y.release().Left, true)
		if info, err := a.Inspect(ctx, "k"); err != nil || info.Open <= 0 || info.Open > 900*time.Millisecond {
			t.Fatalf("%+v, %v", info, err)
		}
		want(t, "held", b.raw.Exists(ctx, "k").Val(), int64(0))
		// A moment far ahead comes from a clock that was set back.
		open(time.Hour)
		want(t, "called", x.confirm().Called, true)
	})
}

// TestLine_TheClockIsSetBack: those who stand live on, and not for longer than their life.
func TestLine_TheClockIsSetBack(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
		a.takes()
		x.stands(0)
		y.stands(1)
		b.age(t, x, -time.Hour)
		a.releases()
		x.called()
		b.age(t, y, -time.Hour)
		want(t, "try", a.try().Outcome, refused)
		b.raw.Del(ctx, "k")
		want(t, "try", a.try().Holder, y.field())
		y.called()
	})
}
