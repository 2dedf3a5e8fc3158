package lettucecompat_test

import (
	"testing"
	"time"
)

// standInLine makes peers that stand behind a, in the order of their names.
func (b *bed) standInLine(t *testing.T, names ...string) (a *peer, line []*peer) {
	t.Helper()
	a = b.peer(t, "a")
	a.takes()
	for i, name := range names {
		p := b.peer(t, name)
		p.stands(i)
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

// TestLine_AClockThatIsSetBackKeepsTheOrder: all places were confirmed in the future.
func TestLine_AClockThatIsSetBackKeepsTheOrder(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, line := b.standInLine(t, "x", "y", "z")
		for _, p := range line {
			b.age(t, p, -time.Hour)
		}
		want(t, "confirmed", line[1].confirm().Ahead, 1)
		b.calledInTurn(t, a, line)
	})
}

// TestLine_AClockThatIsSetForwardKeepsTheOrder: all places are older than their life. Those that
// are confirmed before a script looks for the first live on, each at its number.
func TestLine_AClockThatIsSetForwardKeepsTheOrder(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, line := b.standInLine(t, "x", "y", "z")
		for _, p := range line {
			b.age(t, p, time.Hour)
		}
		for i, p := range []*peer{line[2], line[0], line[1]} {
			if got := p.confirm(); got.Outcome != ok || got.Called || got.Ahead != []int{2, 0, 1}[i] {
				t.Fatalf("%s: %+v", p.id, got)
			}
		}
		b.calledInTurn(t, a, line)
	})
}

// TestLine_AClockThatIsSetForwardLeavesNobodyOut: a release comes first, and finds nobody alive.
// The lock is free for whoever asks, and those who stood stand anew.
func TestLine_AClockThatIsSetForwardLeavesNobodyOut(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, line := b.standInLine(t, "x", "y", "z")
		for _, p := range line {
			b.age(t, p, time.Hour)
		}
		a.releases()
		b.nothingLeft(t)
		for i, p := range line {
			want(t, "place", p.confirm().Outcome, gone)
			if i == 0 {
				p.takes()
			} else {
				p.stands(i - 1)
			}
		}
		b.calledInTurn(t, line[0], line[1:])
	})
}
