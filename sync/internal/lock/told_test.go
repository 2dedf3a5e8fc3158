package lock

import (
	"testing"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// P10: that somebody waits is not forgotten over the answer that gives the unit and comes later, nor over what is said
// of another unit.
func TestDriver_P10_ToldBeforeTheAnswer(t *testing.T) {
	_, client := fresh(t)
	p := newParty(t, client(), nil)
	o := p.mustAcquire(t, "k")
	defer o.Exit(t.Context())
	k, n := o.g.k, o.g.n
	told := func(n uint64) { p.Heard(lettucecompat.Message{Kind: lettucecompat.MessageContended, Key: "k", N: n}) }
	stands := func() bool { return k.somebody(n, Moment(k.asked.Load())) }
	told(n - 1)
	told(lettucecompat.LastNumber) // forged
	if stands() {
		t.Error("somebody stands behind another unit, and behind this one")
	}
	told(n)
	k.news(&Statement{N: n}, &lettucecompat.Answer{Word: lettucecompat.WordHas, Unit: n})
	told(n - 1)
	told(lettucecompat.LastNumber)
	if !stands() {
		t.Error("it is forgotten that somebody stands")
	}
}

// P10: while nobody listened, also before the first subscription, somebody may have come: the next turn asks at its end.
func TestDriver_P10_ToldWhileNobodyListened(t *testing.T) {
	_, client := fresh(t)
	p := newParty(t, client(), nil)
	mustRelease(t, p.mustAcquire(t, "another"))
	eventually(t, "it listens", p.wire.Listening)
	o := p.mustAcquire(t, "k")
	k, n := o.g.k, o.g.n
	if k.somebody(n, p.now()) {
		t.Error("somebody stands behind a lock that was just asked for")
	}
	p.Resubscribed()
	if !k.somebody(n, p.now()) {
		t.Error("the turn does not ask")
	}
	mustRelease(t, o)
}
