package lettucecompat_test

import (
	"testing"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

const all = lettucecompat.AllUnits

// The terms of an RWMutex, of one with tokens, and of a Semaphore.
var (
	rwTerms       = &lettucecompat.Terms{Call: callLease, Lease: lease, Life: lease}
	fencedRWTerms = &lettucecompat.Terms{Call: callLease, Lease: lease, Life: lease, Fenced: true}
	semTerms      = semaphore(7)
)

func semaphore(capacity int64) *lettucecompat.Terms {
	return &lettucecompat.Terms{Call: callLease, Lease: lease, Life: lease, Capacity: capacity}
}

// units is a statement of p under its next number: what it has (-1: a place), keeps and wants.
func (p *peer) units(have, keep, want int64, change ...func(*lettucecompat.UnitsStatement)) lettucecompat.UnitsStatement {
	p.n++
	s := lettucecompat.UnitsStatement{Key: p.key, N: p.n, Since: p.unit, Keep: keep, Want: want, Terms: p.terms}
	switch {
	case have < 0:
		s.Have = place
	case have > 0:
		s.Have, s.Units = unit, have
	}
	for _, f := range change {
		f(&s)
	}
	return s
}

// says sends a statement about units, and learns from the answer. It checks the word.
func (p *peer) wants(what string, word lettucecompat.Word, s lettucecompat.UnitsStatement) lettucecompat.UnitsAnswer {
	p.t.Helper()
	a := p.StateUnits(ctx, s)
	if a.Outcome != ok || a.Word != word {
		p.t.Fatalf("%s: %s: %v %v (%+v), want %v", p.id, what, a.Outcome, a.Word, a, word)
	}
	if a.Units > 0 {
		p.unit = s.N
	}
	return a
}

func try(s *lettucecompat.UnitsStatement)   { s.Try = true }
func again(s *lettucecompat.UnitsStatement) { s.Again = true }

func (b *bed) unitsPeer(t testing.TB, id string, terms *lettucecompat.Terms) *peer {
	t.Helper()
	p := b.peer(t, id)
	p.terms = terms
	return p
}

func TestUnits_Smoke(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x := b.unitsPeer(t, "a", rwTerms), b.unitsPeer(t, "x", rwTerms)
		t.Logf("%+v", a.wants("read", has, a.units(0, 0, 1)))
		t.Log(b.hash(t, "k"))
		t.Logf("%+v", x.wants("write", waits, x.units(0, 0, all)))
		t.Log(b.hash(t, "k"), b.hash(t, lineOfK))
		a.contended()
		t.Logf("%+v", a.wants("renew", has, a.units(1, 1, 1)))
		t.Logf("%+v", a.wants("release", hasNothing, a.units(1, 0, 0)))
		t.Logf("%+v", x.called())
		t.Log(b.hash(t, "k"), b.hash(t, lineOfK))
		t.Logf("%+v", x.wants("release", hasNothing, x.units(all, 0, 0)))
		b.nothingLeft(t)
	})
}
