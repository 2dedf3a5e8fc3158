package lock

import (
	"testing"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// P10: that somebody waits is not forgotten over the answer that gives the unit and comes later, nor over what is said
// of another unit.
func TestDriver_P10_ContendedBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), nil)
	o := p.mustAcquire(t, "k")
	defer o.Exit(t.Context())
	k, n := o.g.k, o.g.n
	contended := func(n uint64) { p.Heard(lettucecompat.Message{Kind: lettucecompat.MessageContended, Key: "k", N: n}) }
	inLine := func() bool { return k.othersMayWait(n, Moment(k.asked.Load())) }
	contended(n - 1)
	contended(lettucecompat.LastNumber) // forged
	if inLine() {
		t.Error("another client waits for another unit, and for this one")
	}
	contended(n)
	answer := &lettucecompat.Answer{Word: lettucecompat.WordHas, Unit: n}
	e := k.event(n, answer)
	k.heardOfOthers(&conversation.Command{N: n}, &e, answer)
	contended(n - 1)
	contended(lettucecompat.LastNumber)
	if !inLine() {
		t.Error("it is forgotten that another client waits")
	}
}

// P10: while nobody listened, also before the first subscription, somebody may have come: the next turn asks at its end.
func TestDriver_P10_ContendedWhileNobodyListened(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), nil)
	mustRelease(t, p.mustAcquire(t, "another"))
	eventually(t, "it listens", p.wire.Listening)
	o := p.mustAcquire(t, "k")
	k, n := o.g.k, o.g.n
	if k.othersMayWait(n, p.now()) {
		t.Error("another client waits for a lock that was just asked for")
	}
	p.Resubscribed()
	if !k.othersMayWait(n, p.now()) {
		t.Error("the turn does not ask")
	}
	mustRelease(t, o)
}
