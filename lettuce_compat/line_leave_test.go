package lettucecompat_test

import (
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// TestLine_Leaving: a release of a field that only stands says so, is heard by nobody, and removes
// a place of exactly this field.
func TestLine_Leaving(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
		a.takes()
		x.stands(0)
		y.stands(1)
		ps := b.raw.Subscribe(ctx, "lock:release:k")
		defer ps.Close()
		if _, err := ps.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		other := x.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: lettucecompat.NewField("x", x.n-1)})
		want(t, "another field", other.Outcome, gone)
		want(t, "place", x.confirm().Outcome, ok)
		if got := x.release(); got.Outcome != ok || !got.Left {
			t.Fatalf("left: %+v", got)
		}
		if got := x.release(); got.Outcome != gone || got.Left {
			t.Fatalf("repeated: %+v", got)
		}
		want(t, "ahead", y.confirm().Ahead, 0)
		b.holds(t, a)
		if got := y.release(); got.Outcome != ok || !got.Left {
			t.Fatalf("left: %+v", got)
		}
		want(t, "line", b.raw.Exists(ctx, lineOfK).Val(), int64(0))
		if m, err := ps.ReceiveTimeout(ctx, 20*time.Millisecond); err == nil {
			t.Fatalf("heard %v", m)
		}
		_ = ps.Close()
		eventually(t, "nobody listens", func() bool { return b.raw.PubSubNumSub(ctx, "lock:release:k").Val()["lock:release:k"] == 0 })
		a.releases()
		b.nothingLeft(t)
	})
}

// TestLine_LeavingAfterTheCall: a field that was called meanwhile is a release, which calls the next.
func TestLine_LeavingAfterTheCall(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
		a.takes()
		x.stands(0)
		y.stands(1)
		a.releases()
		x.releases()
		y.called()
		b.holds(t, y)
	})
}

// TestLine_LeavingAFreeLockCallsTheNext: whoever finds a lock free gives it to the first.
func TestLine_LeavingAFreeLockCallsTheNext(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
		a.takes()
		x.stands(0)
		y.stands(1)
		b.raw.Del(ctx, "k")
		want(t, "left", x.release().Left, true)
		y.called()
		b.holds(t, y)
	})
}

// TestLine_WhoLeavesFromTheMiddleIsNotCounted: those behind know how many are before them.
func TestLine_WhoLeavesFromTheMiddleIsNotCounted(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a := b.peer(t, "a")
		a.takes()
		var line []*peer
		for i, id := range []string{"u", "v", "w", "x", "y"} {
			p := b.peer(t, id)
			p.stands(i)
			line = append(line, p)
		}
		line[1].release()
		line[3].release()
		for i, n := range map[int]int{0: 0, 2: 1, 4: 2} {
			want(t, "ahead", line[i].confirm().Ahead, n)
		}
		line[0].release()
		line[4].release()
		z := b.peer(t, "z")
		z.stands(1)
		a.releases()
		line[2].called()
		line[2].releases()
		z.called()
		z.releases()
		b.nothingLeft(t)
	})
}

// TestLine_OnlyAFreeLockIsCalledFor: a second field, which a stranger has added, holds the lock.
func TestLine_OnlyAFreeLockIsCalledFor(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x := b.peer(t, "a"), b.peer(t, "x")
		a.takes()
		x.stands(0)
		b.put(t, "k", hash{"intruder": "1"}, 0)
		a.releases()
		b.wantHash(t, "k", hash{"intruder": "1"})
		if got := x.confirm(); got.Called || got.Holder != "intruder" {
			t.Fatalf("%+v", got)
		}
	})
}

// TestLine_MinHoldTellsTheFirst: the release leaves a mark and calls nobody; the first one is told
// when to look.
func TestLine_MinHoldTellsTheFirst(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
		a.takes()
		x.stands(0)
		y.stands(1)
		got := a.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: a.field(), Keep: 3 * time.Second})
		want(t, "release", got.Outcome == ok && !got.Marked, true)
		b.wantHash(t, "k", hash{a.field() + ":kept": "1"})
		want(t, "looks in", x.looked(), 3*time.Second)
		if got := x.confirm(); got.Called || got.Holder != a.field()+":kept" || !lettucecompat.DesignDocument.Calls(got.Holder) {
			t.Fatalf("%+v", got)
		}
		want(t, "stranger", b.raw.HGet(ctx, lineOfK, "stranger").Val(), "0")
		want(t, "told", len(y.looks), 0)
	})
}

// TestLine_ForceReleaseCalls: the first one has the lock at once.
func TestLine_ForceReleaseCalls(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
		a.takes()
		x.stands(0)
		y.stands(1)
		info, err := a.Inspect(ctx, "k")
		if err != nil || info.Standing != 2 || info.First != "x" || info.Open != 0 {
			t.Fatalf("%+v, %v", info, err)
		}
		if fields, err := a.ForceRelease(ctx, "k"); err != nil || len(fields) != 1 || fields[0] != a.field() {
			t.Fatalf("%v, %v", fields, err)
		}
		x.called()
		b.raw.Del(ctx, "k") // nobody knows
		if fields, err := a.ForceRelease(ctx, "k"); err != nil || len(fields) != 0 {
			t.Fatalf("%v, %v", fields, err)
		}
		y.called()
		b.holds(t, y)
		y.releases()
		want(t, "line", b.raw.Exists(ctx, lineOfK).Val(), int64(0))
	})
}
