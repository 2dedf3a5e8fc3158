package lock

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// A grant that is lost comes again, though Changes has named it: a caller that read it between the loss and its report
// has seen that it was over. It stays listed until its owner, whom nobody can notify, has exited.
func TestListed_ALostGrantComesAgain(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), nil)
	o, err := p.acquire(t.Context(), "k", queue.NoNotify)
	if err != nil {
		t.Fatal(err)
	}
	g := o.g
	if came, _ := p.Changes(); !slices.Contains(came, g.n) {
		t.Fatalf("%v, not %d", came, g.n)
	}
	rdb.Del(t.Context(), "k")
	g.lease.Lose(renewal.Cause{Reason: renewal.ReasonGone})
	eventually(t, "it is listed as lost", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.lost[g.n] == g
	})
	if came, _ := p.Changes(); !slices.Contains(came, g.n) || ofNumber(p, g.n) != g {
		t.Errorf("%v, not %d", came, g.n)
	}
	if r := o.Exit(t.Context()); r.Lost == nil {
		t.Errorf("%+v", r)
	}
	if _, went := p.Changes(); !slices.Contains(went, g.n) || ofNumber(p, g.n) != nil {
		t.Errorf("%v, not %d", went, g.n)
	}
}

// A release that is sent after the deadline and finds nothing is one loss, by the deadline: no release was given up.
func TestListed_AReleaseAfterTheDeadlineIsOneLoss(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), nil)
	o := p.mustAcquire(t, "k")
	p.leases.Stop() // nothing finds out before the release
	time.Sleep(time.Until(o.Deadline()) + 300*time.Millisecond)
	if r := o.Exit(context.Background()); r.Lost == nil || r.Lost.Reason != renewal.ReasonDeadline {
		t.Errorf("%+v", r)
	}
	p.rep.mu.Lock()
	defer p.rep.mu.Unlock()
	if len(p.rep.losses) != 1 || p.rep.givenUp != 0 {
		t.Errorf("%d losses, %d releases given up", len(p.rep.losses), p.rep.givenUp)
	}
}

func ofNumber(p *party, n uint64) *Held {
	g, _ := p.OfNumber(n)
	return g
}
