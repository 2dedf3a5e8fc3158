package lettucecompat_test

import (
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// A command that has nothing leaves a mark of whatever its client has: a release without an answer is settled so, whether it
// has taken effect or not. Where neither the unit nor the mark is there, the lock had been lost.
func TestState_MinHold_AMarkOfWhatMayBeThere(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a := b.peer(t, "a")
		a.takes()
		s := a.command(unit, 0, 0)
		s.Have, s.Units, s.Mark = nothing, 0, 3*time.Second
		for range 2 {
			a.wantWord("clean-up", a.Do(ctx, s), hasNothing)
			b.wantHash(t, "k", hash{a.field(a.unit) + ":kept": "1"})
			b.wantTTL(t, "k", 2*time.Second, 3*time.Second)
			s.N++
		}
		s.Want = 1
		a.wantWord("acquire", a.Do(ctx, s), waits)
		s.N, s.Want = s.N+1, 0
		b.raw.Del(ctx, "k")
		want(t, "neither is there", a.Do(ctx, s).Word, lettucecompat.WordLost)
		s.N, s.Mark = s.N+1, 0
		a.wantWord("without a mark", a.Do(ctx, s), hasNothing)
	})
}

// A mark may stay as long as the unit would have.
func TestState_MinHold_AMarkForWhatIsLeft(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a := b.peer(t, "a")
		a.takes()
		b.raw.PExpire(ctx, "k", time.Hour)
		s := a.command(unit, 0, 0)
		s.Have, s.Units, s.Mark, s.MarkAs = nothing, 0, lettucecompat.LeaseLeft, "ticket"
		a.wantWord("clean-up", a.Do(ctx, s), hasNothing)
		b.wantHash(t, "k", hash{"ticket": "1"})
		b.wantTTL(t, "k", 59*time.Minute, time.Hour)
	})
}

// An acquire leaves it, too, in silence and with tokens or without, and waits behind it.
func TestState_MinHold_AnAcquireLeavesAMark(t *testing.T) {
	for name, terms := range map[string]*lettucecompat.Terms{"plain": terms, "fenced": fencedTerms} {
		t.Run(name, func(t *testing.T) {
			b := onReal(t, nil)
			a := b.peer(t, "a")
			a.terms = terms
			a.takes()
			s := a.command(nothing, 0, 1)
			s.Since, s.Mark, s.MarkAs = a.unit, lettucecompat.LeaseLeft, "ticket"
			messages := listen(t, b, func() { a.wantWord("acquire", a.Do(ctx, s), waits) })
			want(t, "messages", len(messages), 0)
			b.wantHash(t, "k", hash{"ticket": "1"})
		})
	}
}
