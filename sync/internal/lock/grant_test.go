package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// waits puts an owner-to-be into the queue of k, which is held here, without a goroutine.
func waits(t *testing.T, k *Key, kind queue.Kind) (*Owner, *queue.Waiter) {
	t.Helper()
	o := &Owner{Stay: queue.Stay{Kind: kind, Need: 1}, lease: &k.set.Lease}
	w := &queue.Waiter{Stay: &o.Stay}
	if in, order, err := k.q.Acquire(w); in || order != queue.Nothing || err != nil {
		t.Fatal(in, order, err)
	}
	return o, w
}

// handOff has o pass its grant on to w, which has not been admitted by the grant yet.
func handOff(t *testing.T, o *Owner, w *queue.Waiter) {
	t.Helper()
	exits(t, o, true, queue.HandedOff)
	o.abandon()
	if _, err := o.g.k.q.Park(t.Context(), w); err != nil || w.Grant != o.g.n {
		t.Fatal(err, w.Grant)
	}
}

// isNew has g come only now. Tracking reads when it came, on a goroutine of its own.
func isNew(g *Held) {
	g.k.l.mu.Lock()
	defer g.k.l.mu.Unlock()
	g.since = g.k.l.now()
}

// Each reason for which a grant is not passed on, alone.
func TestDriver_MayHandOff(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	hour := func(s *Settings) { s.MaxHandoffs, s.MaxHandoffTime = 10, time.Hour }
	for name, c := range map[string]struct {
		set      func(*Settings)
		change   func(*Owner)
		handOffs int
		after    time.Duration
		may      bool
	}{
		"within the budget":                {hour, nil, 9, 0, true},
		"the budget is used up":            {hour, nil, 10, 0, true},
		"and another waits":                {hour, func(o *Owner) { o.g.k.noteContended(o.g.n) }, 10, 0, false},
		"another waits":                    {hour, func(o *Owner) { o.g.k.noteContended(o.g.n) }, 9, 0, true},
		"the time is over":                 {func(s *Settings) { s.MaxHandoffTime = 100 * ms }, nil, 0, 100 * ms, true},
		"and another waits then":           {func(s *Settings) { s.MaxHandoffTime = 100 * ms }, func(o *Owner) { o.g.k.noteContended(o.g.n) }, 0, 100 * ms, false},
		"not asked for long":               {func(s *Settings) { s.MaxHandoffTime = 100 * ms }, nil, 0, 1100 * ms, false},
		"none are allowed":                 {func(s *Settings) { s.MaxHandoffs = 0 }, nil, 0, 0, false},
		"beside a foreign client":          {hour, func(o *Owner) { o.g.k.others.Store(int64(o.g.k.l.now())) }, 0, 0, false},
		"the renewal was stopped":          {hour, func(o *Owner) { o.g.set(unrenewed) }, 0, 0, false},
		"an owner has asked for more":      {hour, func(o *Owner) { o.Extend(context.Background(), time.Minute) }, 0, 0, false},
		"as much as a lease":               {hour, func(o *Owner) { o.Extend(context.Background(), o.lease.For) }, 0, 0, true},
		"a fixed lease":                    {hour, func(o *Owner) { o.lease = &Lease{For: time.Second, Period: -1} }, 0, 0, false},
		"before MinHold is over":           {func(s *Settings) { s.MinHold, s.MaxHandoffTime = 100*ms, time.Hour }, nil, 0, 50 * ms, false},
		"after MinHold":                    {func(s *Settings) { s.MinHold, s.MaxHandoffTime = 100*ms, time.Hour }, nil, 0, 200 * ms, true},
		"little of the lease is left":      {func(s *Settings) { hour(s); s.Lease.For, s.Lease.Period = 3*time.Second, time.Second }, nil, 0, 1700 * ms, false},
		"tokens behind the clock":          {hour, func(o *Owner) { o.g.token = 1 }, 9, 500 * ms, true},
		"tokens as fast as half the clock": {hour, func(o *Owner) { o.g.token = 1; isNew(o.g) }, 9, 0, false},
		"lost":                             {hour, func(o *Owner) { o.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonGone}) }, 0, 0, false},
		"the client closes":                {hour, func(o *Owner) { o.g.k.l.closing.Store(true) }, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			rdb.FlushAll(t.Context()) // the line, too, remembers foreign clients
			p := newParty(t, rdb, func(s *Settings) { s.MaxHandoffs = 10; c.set(s) })
			o := p.mustAcquire(t, "k")
			defer o.Exit(t.Context())
			<-p.up // which makes turns ask, and may come after the answer
			o.g.k.asked.Store(int64(o.g.since))
			if c.change != nil {
				c.change(o)
			}
			o.handOffs = int32(c.handOffs)
			if may := o.g.mayHandOff(o, o.g.since+c.after); may != c.may {
				t.Errorf("may %v, want %v", may, c.may)
			}
		})
	}
}

// A grant is lost after the queue has admitted a waiter and before that has become its owner: there is nobody to notify
// yet, and the waiter goes back and gets another one.
func TestDriver_ALossBetweenAdmissionAndOwnership_Lab(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), nil)
	o := p.mustAcquire(t, "k")
	k, n := o.g.k, o.g.n
	next, w := waits(t, k, queue.Refusable)
	handOff(t, o, w)
	rdb.Del(t.Context(), "k")
	o.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonGone})
	if err := k.admit(t.Context(), next, w); err != errAgain { //nolint:errorlint // it is never wrapped
		t.Fatal(err)
	}
	k.leave(t.Context(), w) // as Acquire does
	next = p.mustAcquire(t, "k")
	if next.g.n == n {
		t.Error("the grant that was lost")
	}
	mustRelease(t, next)
}

// What a grant's owner-to-be does not get: one whose renewal was stopped.
func TestDriver_AGrantThatIsNotRenewedIsNotTaken_Lab(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), nil)
	o := p.mustAcquire(t, "k")
	next, w := waits(t, o.g.k, queue.Refusable)
	handOff(t, o, w)
	o.g.set(unrenewed)
	if err := o.g.k.admit(t.Context(), next, w); err != errAgain { //nolint:errorlint // it is never wrapped
		t.Error(err)
	}
	o.g.k.leave(t.Context(), w) // as Acquire does
	if rdb.Exists(t.Context(), "k").Val() != 0 {
		t.Error("it was not released")
	}
}

// Somebody who comes with another lease does not take the grant from a waiter to whom it was passed on.
func TestDriver_ANewcomerWithAnotherLeaseSparesTheGrant(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), nil)
	o := p.mustAcquire(t, "k")
	k := o.g.k
	next, w := waits(t, k, queue.Refusable)
	exits(t, o, true, queue.HandedOff) // w has not run yet
	fixed := &Lease{For: 20 * time.Second, Period: -1, Margin: time.Second}
	if err := k.Acquire(t.Context(), &Owner{Stay: queue.Stay{Kind: queue.Try | queue.Refusable}}, fixed); !errors.Is(err, ErrRefused) {
		t.Errorf("passed the waiter: %v", err)
	}
	if _, err := k.q.Park(t.Context(), w); err != nil || w.Grant != o.g.n {
		t.Error(err, w.Grant)
	}
	if err := k.admit(t.Context(), next, w); err != nil {
		t.Fatal(err)
	}
	o.abandon()
	mustRelease(t, next)
}

// Close begins while a waiter that was admitted finds that its grant is lost and goes back: it ends with ErrClosed.
func TestDriver_CloseEndsWhoGoesBack(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), nil)
	o := p.mustAcquire(t, "k")
	k := o.g.k
	done := make(chan error, 1)
	go func() {
		_, err := p.acquire(context.Background(), "k", 0)
		done <- err
	}()
	eventually(t, "it waits", func() bool { return k.q.Len() == 1 })
	k.mu.Lock() // it stops on its way in
	exits(t, o, true, queue.HandedOff)
	eventually(t, "it is admitted", func() bool { return k.q.Len() == 0 })
	o.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonGone})
	go p.BeginClose()
	eventually(t, "Close has begun", p.closing.Load)
	k.mu.Unlock()
	o.abandon()
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	rdb.Del(t.Context(), "k")
}

// A key that is over stays so: who remembers it finds the one that everybody else finds.
func TestDriver_AKeyThatIsOverStaysOver(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), nil)
	k := p.Key("k", p.set)
	k.Done()
	if k.Use() || !k.Over() || p.Find("k") != nil {
		t.Error("it is used again")
	}
	other := p.Key("k", p.set)
	defer other.Done()
	if other == k {
		t.Error("it is made again")
	}
}

// The renewals may conclude a loss before the lease is in its grant.
func TestDriver_ALossBeforeTheLeaseIsInTheGrant(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), nil)
	k := p.Key("k", p.set)
	defer k.Done()
	g, now := &Held{k: k, n: 1}, time.Now()
	g.Lost(renewal.Cause{Reason: renewal.ReasonDeadline, At: now, Deadline: now}) // it would panic with the program
	if l := g.Loss(); l == nil || l.Reason != renewal.ReasonDeadline {
		t.Errorf("the loss: %+v", l)
	}
}
