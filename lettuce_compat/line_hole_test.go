package lettucecompat_test

import (
	"testing"
	"time"
)

// lineIsGone fails where there is a line for k.
func (b *bed) lineIsGone(t *testing.T) {
	t.Helper()
	if line := b.raw.HGetAll(ctx, lineOfK).Val(); len(line) > 0 {
		t.Fatalf("a line without places is left: %v", line)
	}
}

// TestLine_NumbersWithoutPlacesAreNoLine: whoever leaves last takes the line along, wherever the
// others have stood that left before.
func TestLine_NumbersWithoutPlacesAreNoLine(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y, z := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y"), b.peer(t, "z")
		a.takes()
		for _, order := range [][]*peer{{x, y, z}, {x, z, y}, {y, x, z}, {y, z, x}, {z, x, y}, {z, y, x}} {
			for i, p := range []*peer{x, y, z} {
				p.stands(i)
			}
			for _, p := range order {
				want(t, "left", p.release().Left, true)
			}
			b.lineIsGone(t)
		}
		a.releases()
		b.nothingLeft(t)
	})
}

// TestLine_TheDeadBehindTheCalledAreNoLine: one that does not listen is called because those
// behind it are dead. Nobody stands any more.
func TestLine_TheDeadBehindTheCalledAreNoLine(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
		a.takes()
		x.stands(0)
		y.stands(1)
		x.StopListening()
		eventually(t, "nobody listens for x", func() bool {
			return b.raw.PubSubNumSub(ctx, "anteroom:client:x").Val()["anteroom:client:x"] == 0
		})
		b.age(t, y, 11*time.Second)
		a.releases()
		b.holds(t, x)
		b.lineIsGone(t)
		x.releases()
		b.nothingLeft(t)
	})
}

// holes has so many numbers in line for k, which a holds, at none of which anybody stands.
func holes(t *testing.T, b *bed, a *peer, n int) {
	t.Helper()
	x, y, z := b.peer(t, "x"), b.peer(t, "y"), b.peer(t, "z")
	a.takes()
	x.stands(0)
	for range n {
		want(t, "stands", y.acquire().Standing, true)
		want(t, "stands", z.acquire().Standing, true)
		want(t, "left", y.release().Left, true)
		want(t, "left", z.release().Left, true)
	}
	if tail, err := b.raw.HGet(ctx, lineOfK, "tail").Int(); err != nil || tail < n {
		t.Fatalf("%d numbers, %v, want %d", tail, err, n)
	}
	want(t, "left", x.release().Left, true)
}

// TestLine_AFreeLockIsFreeWhereNobodyStands: however many have left, the next attempt is granted
// at once.
func TestLine_AFreeLockIsFreeWhereNobodyStands(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a := b.peer(t, "a")
		holes(t, b, a, 80)
		b.lineIsGone(t)
		a.releases()
		a.takes()
	})
}

// TestLine_ALineThatStaysKeepsNoNumbers: without places it stays for a while because a stranger was
// seen, and no script looks for those that have left.
func TestLine_ALineThatStaysKeepsNoNumbers(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y, z := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y"), b.peer(t, "z")
		a.takes()
		for i, p := range []*peer{x, y, z} {
			p.stands(i)
		}
		b.raw.HSet(ctx, lineOfK, "stranger", b.raw.Time(ctx).Val().UnixMilli())
		for _, p := range []*peer{y, z, x} {
			want(t, "left", p.release().Left, true)
		}
		head, _ := b.raw.HGet(ctx, lineOfK, "head").Int()
		tail, err := b.raw.HGet(ctx, lineOfK, "tail").Int()
		if err != nil || head != tail+1 {
			t.Fatalf("numbers from %d to %d, %v", head, tail, err)
		}
	})
}

// TestLine_WhoIsPassedOverStaysBehindTheCalled: the one that is called was the last in line, and
// the one that was passed over takes its number: it is still in line, and so is whoever comes next.
func TestLine_WhoIsPassedOverStaysBehindTheCalled(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y, z := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y"), b.peer(t, "z")
		a.takes()
		x.stands(0)
		y.stands(1)
		x.StopListening()
		eventually(t, "nobody listens for x", func() bool {
			return b.raw.PubSubNumSub(ctx, "anteroom:client:x").Val()["anteroom:client:x"] == 0
		})
		a.releases()
		y.called()
		z.stands(1)
		y.releases()
		z.called()
		z.releases()
		b.holds(t, x)
		b.lineIsGone(t)
	})
}

// TestLine_TheLastNumberIsGivenBack: whoever comes after one that left the tail is next to those
// before that one.
func TestLine_TheLastNumberIsGivenBack(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
		a.takes()
		x.stands(0)
		y.stands(1)
		want(t, "left", y.release().Left, true)
		want(t, "tail", b.raw.HGet(ctx, lineOfK, "tail").Val(), "1")
		y.stands(1)
		want(t, "number", b.raw.HGet(ctx, lineOfK, "cy").Val(), "2")
	})
}
