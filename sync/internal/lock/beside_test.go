package lock

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// A grant is passed on to a waiter that gives up before it has seen that, and is lost in between: nobody can be at work,
// so the next one does not wait until the lease is over.
func TestBeside_ALossOfWhatAWaiterNeverTook(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]queue.Kind{"notified": queue.Refusable, "by lock": queue.Refusable | queue.NoNotify} {
		t.Run(name, func(t *testing.T) {
			_, client := fresh(t)
			rdb := client()
			p := newParty(t, client(), longLease)
			o := p.mustAcquire(t, "k")
			k, g := o.g.k, o.g
			k.refs.Add(1)
			defer k.Done()
			eventually(t, "renewed", func() bool { return g.lease.Renewals() > 0 })
			_, w := waits(t, k, kind)
			exits(t, o, true, queue.HandedOff)
			o.abandon()
			g.lease.Lose(renewal.Cause{Reason: renewal.ReasonWatchdog}) // so that its owner would have time to react
			rdb.Del(t.Context(), "k")
			eventually(t, "it is notified", func() bool { return g.Loss() != nil })
			eventually(t, "queue", func() bool { return k.q.Word().State() != queue.Owned })
			giveUp(t, k, w)
			nobodyIsWaitedFor(t, p)
		})
	}
}

// giveUp has w leave the queue, whether it was admitted meanwhile or not.
func giveUp(t *testing.T, k *Key, w *queue.Waiter) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	order, err := k.q.Park(ctx, w)
	if err == nil {
		t.Fatal("admitted")
	}
	k.carryOut(order)
}

func nobodyIsWaitedFor(t *testing.T, p *party) {
	t.Helper()
	begin := time.Now()
	next := p.mustAcquire(t, "k")
	if d := time.Since(begin); d > beforeTheLease {
		t.Errorf("the next one waited %v for an owner that never was", d)
	}
	mustRelease(t, next)
}

// The same where the owner passes it on while it is notified of the loss, and the queue admits the next immediately.
func TestBeside_ALossOfWhatWasPassedOnMeanwhile(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), longLease)
	k := p.Key("k", p.set)
	defer k.Done()
	o := &Owner{Stay: queue.Stay{Kind: queue.Refusable}}
	o.Holder = notify(func(*Loss) {
		exits(t, o, true, queue.HandedOff)
	})
	if err := k.Acquire(t.Context(), o, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "renewed", func() bool { return o.g.lease.Renewals() > 0 })
	_, w := waits(t, k, queue.Refusable)
	o.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonWatchdog})
	rdb.Del(t.Context(), "k")
	eventually(t, "queue", func() bool { return k.q.Word().State() != queue.Owned })
	giveUp(t, k, w)
	nobodyIsWaitedFor(t, p)
}

// What Redis has said is taken in also for a caller that has given up meanwhile.
func TestBeside_AGrantThatIsGoneBesideACallerThatGivesUp(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), nil)
	o := p.mustAcquire(t, "k")
	rdb.Del(t.Context(), "k")
	fixed := &Owner{lease: &Lease{For: time.Second, Period: -1}}
	err := o.g.k.secure(&endsMeanwhile{Context: context.Background()}, o.g, fixed)
	if err != errAgain || o.g.lease.Valid(p.leases.Now()) {
		t.Errorf("%v, and the lease is relied on", err)
	}
	o.Exit(t.Context())
}

// endsMeanwhile has ended when it is asked a third time: the wire asks twice before it sends.
type endsMeanwhile struct {
	context.Context
	asked atomic.Int32
}

func (c *endsMeanwhile) Err() error {
	if c.asked.Add(1) > 2 {
		return context.Canceled
	}
	return nil
}

// P9: Redis has said that the lock is gone, so the next one of this process gets it though the owner does not exit. Who has
// deleted it does not matter.
func TestBeside_P9_ForcedIsGone(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"del", "force"} {
		t.Run(how, func(t *testing.T) {
			_, client := fresh(t)
			rdb := client()
			p, other := newParty(t, client(), longLease), newParty(t, client(), longLease)
			k := p.Key("k", p.set)
			defer k.Done()
			o, lost := enter(t, p, k)
			eventually(t, "renewed", func() bool { return o.g.lease.Renewals() > 0 })
			got := behind(t, p, o)
			if how == "del" {
				rdb.Del(t.Context(), "k")
				o.g.lease.Hurry()
			} else if _, err := other.wire.ForceRelease(t.Context(), "k", false); err != nil {
				t.Fatal(err)
			}
			l := <-lost
			begin := time.Now()
			next := <-got
			t.Log(l.Reason, l.By, "the next one came in after", time.Since(begin))
			if d := time.Since(begin); d > beforeTheLease {
				t.Errorf("after %v", d)
			}
			mustRelease(t, next)
			o.Exit(t.Context())
		})
	}
}

// A release that is never sent before the deadline, and then finds nothing, has not released: somebody else may have had
// the lock since.
func TestBeside_AReleaseThatFindsNothingAfterTheDeadline_Lab(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb, c, f := client(), client(), &faults{}
	c.AddHook(f)
	p := newParty(t, c, func(set *Settings) {
		set.Lease = stretchedBy(Lease{For: 1500 * time.Millisecond, Period: 500 * time.Millisecond, Margin: 75 * time.Millisecond})
		set.Timeout = pace.Scale(5 * time.Second) // so long the exit waits for the answer
	})
	k := p.Key("k", p.set)
	defer k.Done()
	o, _ := enter(t, p, k)
	eventually(t, "renewed", func() bool { return o.g.lease.Renewals() > 0 })
	f.refuse.Store(1000)
	time.Sleep(time.Until(o.Deadline()) - p.set.Lease.For/3) // a busy machine is late
	rdb.Del(t.Context(), "k")
	if err := o.Err(); err != nil {
		t.Fatal(err)
	}
	done := make(chan ExitResult, 1)
	go func() { done <- o.Exit(context.Background()) }()
	time.Sleep(time.Until(o.Deadline()) + 100*time.Millisecond)
	f.refuse.Store(0)
	if r := <-done; r.Lost == nil && r.Err == nil {
		t.Error("said to be released")
	}
}

// Two Holds of one owner exit while a loss is concluded.
func TestBeside_TwoExitsBesideALoss(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), nil)
	k := p.Key("k", p.set)
	defer k.Done()
	o, lost := enter(t, p, k)
	_ = o.Reenter(false)
	// The first one is held up in Exit after the queue's.
	exits(t, o, false, queue.Nested)
	o.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonWatchdog})
	<-lost
	eventually(t, "the queue moves on", func() bool { return k.q.Word().State() == queue.Free })
	if r := o.Exit(context.Background()); r.Lost == nil {
		t.Errorf("%+v", r)
	}
	k.mu.Lock()
	left := Moment(k.conv.SilentUntil()) - k.l.now()
	k.mu.Unlock()
	if left > 0 {
		t.Errorf("both have exited, and nothing is stated for %v", left)
	}
}

// Nothing was ever sent, and the release is said to be confirmed.
func TestBeside_AReleaseThatIsGivenUpIsNotConfirmed_Lab(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	c, f := client(), &faults{}
	c.AddHook(f)
	p := newParty(t, c, func(s *Settings) {
		s.Timeout = pace.Scale(time.Second)
		s.Lease = stretchedBy(Lease{For: 300 * time.Millisecond, Period: 100 * time.Millisecond, Margin: 30 * time.Millisecond})
	})
	k := p.Key("k", p.set)
	defer k.Done()
	o, _ := enter(t, p, k)
	f.refuse.Store(1000)
	r := o.Exit(context.Background())
	f.refuse.Store(0)
	if r.Lost == nil && r.Err == nil {
		t.Error("said to be released")
	}
}

// slowHook does something before each command that travels alone.
type slowHook struct{ before func(cmd redis.Cmder) }

func (slowHook) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h slowHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { h.before(cmd); return next(ctx, cmd) }
}

func (h slowHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A caller that gives up while its lease is secured is no failure of Redis.
func TestBeside_ACallerThatGivesUpIsNoOutage(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	c := client()
	before := beforeScripts(c)
	p := newParty(t, c, nil)
	mustRelease(t, p.mustAcquire(t, "k")) // scripts are loaded
	k := p.Key("k", p.set)
	defer k.Done()
	ctx, cancel := context.WithCancel(context.Background())
	before.each(func(n int64) {
		if n == 2 { // the renewal to the fixed lease
			cancel()
			time.Sleep(20 * time.Millisecond)
		}
	})
	o := &Owner{Stay: queue.Stay{Kind: queue.Refusable}, Holder: notify(func(*Loss) {})}
	err := k.Acquire(ctx, o, &Lease{For: time.Second, Period: -1, Margin: 100 * time.Millisecond})
	if err == nil {
		o.Exit(context.Background())
		t.Fatal("admitted")
	}
	if n := p.rep.failed.Load(); n > 0 {
		t.Errorf("%d failures of Redis are reported, which answers all", n)
	}
}

// A field that an application adds to a held lock.
func TestBeside_MinHoldBesideAnotherField(t *testing.T) {
	t.Parallel()
	for _, mark := range []time.Duration{0, 200 * time.Millisecond} {
		_, client := fresh(t)
		rdb := client()
		p := newParty(t, client(), func(s *Settings) { s.MinHold = mark })
		o := p.mustAcquire(t, "k")
		rdb.HSet(t.Context(), "k", "note", "of an application")
		r := o.Exit(t.Context())
		left := rdb.HKeys(t.Context(), "k").Val()
		if r.Lost != nil || slices.Contains(left, o.g.Field()) {
			t.Errorf("MinHold %v: released %+v, left %v", mark, r, left)
		}
	}
}
