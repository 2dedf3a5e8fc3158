package lettucecompat_test

import (
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// TestTake: the lock goes to the place, ahead of the line, for a call lease, or for what was left where it comes from a
// field. A command whose place has gone or was confirmed since, or whose field is not there, changes nothing.
func TestTake(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, line := b.standInLine(t, "x", "y")
		y := line[1]
		take := func(from string, place uint64) lettucecompat.Answer {
			y.n++
			return y.Take(ctx, lettucecompat.Taking{Key: "k", From: from, Place: place, Unit: y.n, Terms: terms}, 0)
		}
		before := y.n
		want(t, "a field that is not there", take("a:nobody", before).Word, wordGone)
		y.wantWord("confirm", y.confirm(), waits)
		confirmed := y.n
		want(t, "a place that was confirmed since", take("", before).Word, wordRefused)
		want(t, "a place that is not there", a.Take(ctx, lettucecompat.Taking{Key: "k", Place: a.n, Unit: a.n + 1, Terms: terms}, 0).Word, wordRefused)
		b.holds(t, a)
		r := take(a.field(a.unit), confirmed)
		y.wantWord("take", r, has)
		want(t, "another client waits", r.Contended, true)
		want(t, "lease is what was left", r.TTL <= callLease && r.TTL > 0, true)
		y.unit = y.n
		b.holds(t, y)
		a.message(lettucecompat.MessageContended)
		a.message(lettucecompat.MessageForced)
		a.wantWord("release", a.release(), lost)
		b.calledInTurn(t, y, line[:1])
	})
}

// TestState_FirstIsAheadOfTheLine: what a client gives back with an acquire or a yield that says First is its own again. Nobody
// of the line is called.
func TestState_FirstIsAheadOfTheLine(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, line := b.standInLine(t, "x")
		for _, have := range []lettucecompat.Have{nothing, unit} {
			s := a.command(have, 0, 1)
			s.First = true
			if have == nothing {
				s.Since = a.unit
			}
			answer := a.wantWord("first", a.says(s), has)
			want(t, "another client waits", answer.Contended, true)
			b.holds(t, a)
		}
		b.calledInTurn(t, a, line)
	})
}

// TestState_ARepeatedReleaseFindsItsMark: the one before has given the unit back, so it is not lost.
func TestState_ARepeatedReleaseFindsItsMark(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a := b.peer(t, "a")
		a.takes()
		for range 2 {
			s := a.command(unit, 0, 0)
			s.Mark, s.MarkAs = time.Minute, a.field(a.unit)+":ticket.x"
			a.wantWord("release", a.says(s), hasNothing)
		}
		s := a.command(unit, 0, 0)
		s.Mark, s.MarkAs = time.Minute, a.field(a.unit)+":ticket.y"
		a.wantWord("release to somebody else", a.says(s), lost)
	})
}
