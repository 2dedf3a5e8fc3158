package lock

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

func TestBeside_MinHoldWhereALossMeetsAnExit_Lab(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), func(s *Settings) { s.MinHold = pace.Scale(200 * time.Millisecond) })
	bad := 0
	for range 5 {
		rdb.Del(t.Context(), "k")
		o := p.mustAcquire(t, "k")
		o.g.k.mu.Lock()
		done := make(chan struct{})
		go func() { o.Exit(context.Background()); close(done) }()
		eventually(t, "releasing", func() bool { return o.g.k.q.Word().State() == queue.Releasing })
		o.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonWatchdog})
		o.g.k.mu.Unlock()
		<-done
		time.Sleep(20 * time.Millisecond)
		if rdb.Exists(t.Context(), "k").Val() == 0 {
			bad++
		}
		rdb.Del(t.Context(), "k")
		time.Sleep(p.set.MinHold + 100*time.Millisecond)
	}
	if bad > 0 {
		t.Errorf("%d of 5 were free before MinHold", bad)
	}
}

// The lock is handed to a caller of Lock that is parked just when the client is closed: it stays parked, and the lock is
// given back.
func TestBeside_AHandOffToAParkedLockMeetsClose(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), longLease)
	o := p.mustAcquire(t, "k")
	k := o.g.k
	ctx, cancel := context.WithCancel(t.Context())
	out := make(chan error, 1)
	go func() { out <- k.Acquire(ctx, &Owner{Stay: queue.Stay{Kind: queue.NoNotify}}, nil) }()
	eventually(t, "parked", func() bool { return k.q.Len() == 1 })
	p.closing.Store(true)
	exits(t, o, true, queue.HandedOff)
	o.abandon()
	eventually(t, "parked again", func() bool { return rdb.Exists(ctx, "k").Val() == 0 && k.q.Len() == 1 })
	cancel()
	if err := <-out; !errors.Is(err, context.Canceled) {
		t.Errorf("Lock has ended: %v", err)
	}
}

// lateContext holds up the goroutine that waits for it.
type lateContext struct {
	context.Context
	late *atomic.Bool
}

func (c lateContext) Done() <-chan struct{} {
	if c.late.Load() {
		time.Sleep(30 * time.Millisecond)
	}
	return c.Context.Done()
}

// Close waits for a caller of Lock that has to park again, since it names those.
func TestBeside_CloseWaitsForWhoParksAgain(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	for _, closed := range []bool{true, false} { // false: before Close began, for a grant that is not to be relied on
		p := newParty(t, rdb, longLease)
		o := p.mustAcquire(t, "k")
		k := o.g.k
		ctx, cancel := context.WithCancel(context.Background())
		out, late := make(chan error, 1), new(atomic.Bool)
		go func() { out <- k.Acquire(lateContext{ctx, late}, &Owner{Stay: queue.Stay{Kind: queue.NoNotify}}, nil) }()
		eventually(t, "parked", func() bool { return k.q.Len() == 1 })
		p.closing.Store(closed)
		k.mu.Lock()
		exits(t, o, true, queue.HandedOff)
		if !closed {
			time.Sleep(20 * time.Millisecond) // it has seen that nothing is closing, and waits for the mutex
		}
		late.Store(true)
		if closed {
			o.g.clear(unrenewed)
		} else {
			o.g.set(unrenewed)
		}
		p.closing.Store(true)
		k.mu.Unlock()
		o.abandon()
		if _, unsettled := p.Settle(t.Context()); unsettled != 0 || k.q.Len() != 1 {
			t.Errorf("closed %v: %d are unsettled, %d parked", closed, unsettled, k.q.Len())
		}
		cancel()
		<-out
	}
}

// Whose time is up behind a lock that was lost and not unlocked gets no error about an outage that is over.
func TestBeside_GivingUpBehindALostLock(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	c, f := client(), &faults{}
	c.AddHook(f)
	p := newParty(t, c, nil)
	k := p.Key("k", p.set)
	defer k.Done()
	o := &Owner{Stay: queue.Stay{Goroutine: 7, Kind: queue.NoNotify}, Holder: notify(func(*Loss) {})}
	if err := k.Acquire(t.Context(), o, nil); err != nil {
		t.Fatal(err)
	}
	f.refuse.Store(1000)
	o.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonGone})
	eventually(t, "the clean-up failed", func() bool { a := k.Answer(); return a != nil && a.Err != nil })
	f.refuse.Store(0)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := k.Acquire(ctx, &Owner{Stay: queue.Stay{Kind: queue.Refusable}}, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	o.Exit(t.Context())
}

// The loss of a lock is concluded and not reported yet when its owner exits: what is left of MinHold stays.
func TestBeside_MinHoldWhereAnExitMeetsAConcludedLoss(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), func(s *Settings) { longLease(s); s.MinHold = time.Minute })
	o := p.mustAcquire(t, "k")
	open := busyLoop(t, p)
	o.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonClosed})
	o.Exit(t.Context())
	eventually(t, "released", func() bool { return !rdb.HExists(t.Context(), "k", o.g.Field()).Val() })
	if left := rdb.PTTL(t.Context(), "k").Val(); left < 30*time.Second {
		t.Errorf("%v are left of MinHold", left)
	}
	open()
}

// A release was refused, and a try comes before it is repeated. The try neither waits in line, nor does it overtake a waiter.
func TestBeside_ATryBehindAReleaseThatFailed(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb, c, f := client(), client(), &faults{}
	c.AddHook(f)
	p, q := newParty(t, c, longLease), newParty(t, client(), longLease)
	o := p.mustAcquire(t, "k")
	first := make(chan *Owner)
	go func() { first <- q.mustAcquire(t, "k") }()
	eventually(t, "somebody waits in line", func() bool { return rdb.Exists(t.Context(), "anteroom:line:{k}").Val() == 1 })
	f.refuse.Store(1000)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := o.Exit(ctx); r.Err == nil || r.Unknown {
		t.Fatalf("%+v", r)
	}
	f.refuse.Store(0)
	k := p.Key("k", p.set)
	defer k.Done()
	if err := k.Acquire(t.Context(), &Owner{Stay: queue.Stay{Kind: queue.Try | queue.Refusable}}, nil); !errors.Is(err, ErrRefused) {
		t.Errorf("%v", err)
	}
	k.mu.Lock()
	last := k.conv.LastCommand()
	k.mu.Unlock()
	if last.Have != 1 || last.Want != 1 {
		t.Errorf("it had to say %v", last)
	}
	mustRelease(t, <-first)
}
