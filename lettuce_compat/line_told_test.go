package lettucecompat_test

import (
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// silence ends p as a kill does: its place stays, and nobody listens for it.
func (b *bed) silence(t *testing.T, p *peer) {
	t.Helper()
	p.StopListening()
	channel := "anteroom:client:" + p.id
	eventually(t, "nobody listens for "+p.id, func() bool { return b.raw.PubSubNumSub(ctx, channel).Val()[channel] == 0 })
}

// TestLine_TheMarkIsToldToOneThatHears: the first in line was killed, so the next one is told when
// the mark of MinHold ends.
func TestLine_TheMarkIsToldToOneThatHears(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, line := b.standInLine(t, "x", "y", "z")
		b.silence(t, line[0])
		a.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: a.field(), Keep: 300 * time.Millisecond})
		want(t, "looks in", line[1].looked(), 300*time.Millisecond)
		want(t, "told", len(line[2].looks), 0)
	})
}

// TestLine_ATurnThatEndsOpenIsToldToThoseThatHear: the first two in line were killed, so the next
// two are told when the lock is no longer left to strangers.
func TestLine_ATurnThatEndsOpenIsToldToThoseThatHear(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, line := b.standInLine(t, "v", "w", "x", "y", "z")
		b.silence(t, line[0])
		b.silence(t, line[1])
		b.listener(t, false)
		b.raw.HSet(ctx, lineOfK, "since", 100)
		a.releases()
		want(t, "held", b.raw.Exists(ctx, "k").Val(), int64(0))
		line[2].looked()
		line[3].looked()
		want(t, "told", len(line[4].looks), 0)
	})
}

// TestLine_WhoLeavesAnOpenLockTellsTheNext: those who were told to look when the lock is no longer
// left to strangers, or when a mark ends, leave before that.
func TestLine_WhoLeavesAnOpenLockTellsTheNext(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		_, line := b.standInLine(t, "x", "y", "z")
		b.raw.Del(ctx, "k")
		b.raw.HSet(ctx, lineOfK, "open", b.raw.Time(ctx).Val().Add(900*time.Millisecond).UnixMilli())
		want(t, "left", line[0].release().Left, true)
		line[1].looked()
		want(t, "left", line[1].release().Left, true)
		if in := line[2].looked(); in <= 0 || in > 900*time.Millisecond {
			t.Fatalf("looks in %v", in)
		}
	})
}

// TestLine_WhoLeavesAMarkTellsTheNext: the first one was told when the mark of MinHold ends, and leaves
// before that.
func TestLine_WhoLeavesAMarkTellsTheNext(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, line := b.standInLine(t, "x", "y", "z")
		a.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: a.field(), Keep: 900 * time.Millisecond})
		line[0].looked()
		want(t, "left", line[0].release().Left, true)
		if in := line[1].looked(); in <= 0 || in > 900*time.Millisecond {
			t.Fatalf("looks in %v", in)
		}
	})
}

// TestLine_AnEndOfTurnThatFindsTheLockFreeCalls: somebody has deleted the key.
func TestLine_AnEndOfTurnThatFindsTheLockFreeCalls(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, line := b.standInLine(t, "x", "y")
		b.raw.Del(ctx, "k")
		got := a.EndTurn(ctx, lettucecompat.TurnRequest{
			Key: "k", Field: a.field(), Lease: 10 * time.Second, Next: lettucecompat.NewField("a", a.n+1), Attempt: a.send + 1,
		})
		want(t, "end of turn", got.Outcome, gone)
		line[0].called()
		b.holds(t, line[0])
		want(t, "a stands", b.raw.HExists(ctx, lineOfK, "ca").Val(), false)
	})
}
