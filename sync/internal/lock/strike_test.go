package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// The watchdog strikes an owner in the moment in which that one has decided to pass the grant on: the next one does not
// get it, and has a lock of its own, which is renewed.
func TestDriver_WhatStrikesOneOwnerSparesTheNext(t *testing.T) {
	t.Parallel()
	for name, strike := range map[string]func(*Owner) bool{
		"stop renewing": func(o *Owner) bool { return o.g.StopRenewing(o) },
		"revoke":        func(o *Owner) bool { return o.g.Revoke(o, renewal.ReasonWatchdog, false, false) },
	} {
		t.Run(name, func(t *testing.T) {
			_, client := fresh(t)
			p := newParty(t, client(), nil)
			first, _ := enter(t, p, p.Key("k", p.set))
			g, k := first.g, first.g.k
			defer k.Done()
			next := make(chan *Owner, 1)
			go func() { next <- p.mustAcquire(t, "k") }()
			eventually(t, "somebody waits", func() bool { return k.q.Len() == 1 })
			// On a loaded machine too little of the lease may be left for a moment, until it is renewed.
			eventually(t, "the grant may be passed on", func() bool { return g.mayHandOff(first, p.now()) })
			if !strike(first) { // between the decision and the hand-off
				t.Error("the accused was spared")
			}
			if exit, _ := k.q.Release(&first.Stay, queue.HandOff); exit != queue.HandedOff {
				k.handle(conversation.Event{Kind: conversation.Exited, N: g.n}) // the loss came first
				k.sendAsync()
			}
			first.abandon()
			o := <-next
			if o.g == g {
				t.Error("the next owner got the grant that was given up")
			}
			if l := o.g.lease; l.State() != renewal.StateActive || l.NextDue().IsZero() {
				t.Error("the next owner's lease is not renewed")
			}
			mustRelease(t, o)
		})
	}
}

// An owner that has passed the grant on is out of the watchdog's reach, and so is who came after it.
func TestDriver_AnAccusationExpiresWithItsOwner(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), nil)
	first := p.mustAcquire(t, "k")
	next, w := waits(t, first.g.k, queue.Refusable)
	handOff(t, first, w)
	if err := first.g.k.admit(t.Context(), next, w); err != nil {
		t.Fatal(err)
	}
	if g := next.g; g != first.g || g.StopRenewing(first) || g.Revoke(first, renewal.ReasonWatchdog, true, true) || next.Err() != nil || g.Unrenewed() {
		t.Error("struck the next owner")
	}
	mustRelease(t, next)
}

// The check and the act are one step under the lock in which owners are admitted: a strike that meets an admission waits
// for it, and then finds another owner than the accused.
func TestDriver_AStrikeWaitsForAnAdmission(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), nil)
	first := p.mustAcquire(t, "k")
	g := first.g
	next, w := waits(t, g.k, queue.Refusable)
	handOff(t, first, w)
	next.g = g
	g.k.refs.Add(1)
	g.k.mu.Lock()
	begun, struck := make(chan struct{}), make(chan bool, 1)
	go func() {
		close(begun)
		struck <- g.Revoke(first, renewal.ReasonWatchdog, false, false)
	}()
	<-begun
	g.owner.Store(next)
	g.k.mu.Unlock()
	if <-struck || next.Err() != nil {
		t.Error("the next owner was struck")
	}
	mustRelease(t, next)
}

// A batch of renewals that was handed over a while ago, by a goroutine that had to wait for its processor since, has what
// is left of its time limit, and is not sent where that is over.
func TestDriver_TheTimeLimitOfRenewalsCountsFromTheHandOver(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), func(s *Settings) { s.Lease.Period = time.Hour })
	o := p.mustAcquire(t, "k")
	item := []renewal.Item{{Key: "k", Field: o.g.Field(), Lease: 10 * time.Minute}}
	renew := func(ago time.Duration) (renewal.Result, time.Duration) {
		r := sender{p.Locks}.RenewBatch(context.Background(), "", item, time.Now().Add(-ago))[0]
		return r, rdb.PTTL(t.Context(), "k").Val()
	}
	r, ttl := renew(p.set.Timeout)
	if r.Renewed || r.Gone || !r.SentAt.IsZero() || !errors.Is(r.Err, lettucecompat.ErrTimeout) || ttl > 5*time.Minute {
		t.Errorf("too late: %+v, TTL %v", r, ttl)
	}
	if r, ttl = renew(0); !r.Renewed || ttl < 9*time.Minute {
		t.Errorf("in time: %+v, TTL %v", r, ttl)
	}
	mustRelease(t, o)
}

// Who takes the lock ends the owner that it has found, and not the next one, who takes it, too, and was passed it meanwhile.
func TestDriver_WhoTakesTheLockSparesTheNext(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), nil)
	first, _ := enter(t, p, p.Key("k", p.set))
	g, k := first.g, first.g.k
	defer k.Done()
	next := &Owner{Stay: queue.Stay{Kind: queue.Refusable, Need: 1}, lease: &p.set.Lease, Holder: notify(func(*Loss) {})}
	takes := &Taking{ctx: t.Context(), spoil: func(err error) { t.Error(err) }}
	next.With(More{Takes: takes})
	w := &queue.Waiter{Stay: &next.Stay, Takes: true, Note: next}
	if _, _, err := k.q.Acquire(w); err != nil {
		t.Fatal(err)
	}
	k.mu.Lock()
	done := make(chan struct{})
	go func() { // of another taker, which gives up
		k.takeFrom(first, takes)
		close(done)
	}()
	time.Sleep(50 * time.Millisecond) // it has found the first owner, and asks
	handOff(t, first, w)
	next.g = g // as admit does
	k.refs.Add(1)
	g.owner.Store(next)
	k.mu.Unlock()
	<-done
	if l := next.Err(); l != nil {
		t.Errorf("the next owner: %v", l)
	}
	next.Exit(t.Context())
}

// What Redis says to be gone while its lease is made a fixed one has no owner.
func TestDriver_GoneWhileTheLeaseIsFixed(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), nil)
	first, _ := enter(t, p, p.Key("k", p.set))
	g, k := first.g, first.g.k
	defer k.Done()
	next, w := waits(t, k, queue.Refusable)
	handOff(t, first, w)
	k.mu.Lock() // Key.apply of the answer to a confirmation, whose call came first, in two parts: the admission comes between
	k.conv, _ = k.conv.Handle(conversation.Event{Kind: conversation.Lost, N: k.conv.LastCommand().N}, k.l.moment())
	k.mu.Unlock()
	err := k.admit(t.Context(), next, w)
	if err != errAgain {
		t.Errorf("%v: it has the lock until %v", err, next.Deadline())
	}
	k.vanished(g)
	if g.fix(&Lease{For: time.Minute, Period: -1}, time.Now()) {
		t.Error("what is gone has a fixed lease")
	}
	if err == nil {
		next.Exit(t.Context())
		return
	}
	k.leave(t.Context(), w) // as Acquire does
}
