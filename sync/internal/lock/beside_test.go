package lock

import (
	"context"
	"testing"
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// A grant is passed on to a waiter that gives up before it has seen that, and is lost in between: nobody can be at work,
// so the next one does not wait until the lease is over.
func TestBeside_ALossOfWhatAWaiterNeverTook(t *testing.T) {
	for name, kind := range map[string]queue.Kind{"notified": queue.Refusable, "by lock": queue.Refusable | queue.NoNotify} {
		t.Run(name, func(t *testing.T) {
			_, client := fresh(t)
			rdb := client()
			p := newParty(t, client(), nil)
			o := p.mustAcquire(t, "k")
			k, g := o.g.k, o.g
			k.refs.Add(1)
			defer k.Done()
			eventually(t, "renewed", func() bool { return g.lease.Load().Renewals() > 0 })
			w := &queue.Waiter{Kind: kind}
			if in, order, err := k.q.Enter(w); in || order != queue.Nothing || err != nil {
				t.Fatal(in, order, err)
			}
			if exit, _ := k.q.Exit(o.number, true); exit != queue.HandedOff {
				t.Fatal(exit)
			}
			o.abandon()
			g.lease.Load().Lose(renewal.Cause{Reason: renewal.ReasonWatchdog}) // so that its owner would have time to react
			rdb.Del(t.Context(), "k")
			_ = renewal.ReasonForced
			eventually(t, "told", func() bool { return g.lossNow() != nil })
			eventually(t, "queue", func() bool { return k.q.Word().State() != queue.Owned })
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			order, err := k.q.Wait(ctx, w)
			if err == nil {
				t.Fatal("admitted")
			}
			k.carryOut(order)
			begin := time.Now()
			next := p.mustAcquire(t, "k")
			if d := time.Since(begin); d > 500*time.Millisecond {
				t.Errorf("the next one waited %v for an owner that never was", d)
			}
			mustRelease(t, next)
		})
	}
}

// P9: Redis has said that the lock is gone, so the next one of this process gets it though the owner does not exit. Who has
// deleted it does not matter.
func TestBeside_P9_ForcedIsGone(t *testing.T) {
	for _, how := range []string{"del", "force"} {
		t.Run(how, func(t *testing.T) {
			_, client := fresh(t)
			rdb := client()
			p, other := newParty(t, client(), nil), newParty(t, client(), nil)
			k := p.Key("k", p.set)
			defer k.Done()
			o, lost := enter(t, p, k)
			eventually(t, "renewed", func() bool { return o.g.lease.Load().Renewals() > 0 })
			got := behind(t, p, o)
			if how == "del" {
				rdb.Del(t.Context(), "k")
				o.g.lease.Load().Hurry()
			} else if _, err := other.wire.ForceRelease(t.Context(), "k", false); err != nil {
				t.Fatal(err)
			}
			l := <-lost
			begin := time.Now()
			next := <-got
			t.Log(l.Reason, l.By, "the next one came in after", time.Since(begin))
			if d := time.Since(begin); d > 500*time.Millisecond {
				t.Errorf("after %v", d)
			}
			mustRelease(t, next)
			o.Exit(t.Context())
			_ = renewal.ReasonGone
		})
	}
}

// A release that is never sent before the deadline, and then finds nothing, has not released: somebody else may have had
// the lock since.
func TestBeside_AReleaseThatFindsNothingAfterTheDeadline(t *testing.T) {
	_, client := fresh(t)
	rdb, c, f := client(), client(), &faults{}
	c.AddHook(f)
	p := newParty(t, c, nil)
	k := p.Key("k", p.set)
	defer k.Done()
	o, _ := enter(t, p, k)
	eventually(t, "renewed", func() bool { return o.g.lease.Load().Renewals() > 0 })
	f.refuse.Store(1000)
	time.Sleep(time.Until(o.Deadline()) - 300*time.Millisecond)
	rdb.Del(t.Context(), "k")
	if err := o.Err(); err != nil {
		t.Fatal(err)
	}
	done := make(chan ExitResult, 1)
	go func() { done <- o.Exit(context.Background()) }()
	time.Sleep(400 * time.Millisecond)
	f.refuse.Store(0)
	r := <-done
	if r.Lost == nil && r.Err == nil {
		t.Error("said to be released")
	}
}

// Two Holds of one owner exit while a loss is concluded.
func TestBeside_TwoExitsBesideALoss(t *testing.T) {
	_, client := fresh(t)
	p := newParty(t, client(), nil)
	k := p.Key("k", p.set)
	defer k.Done()
	o, lost := enter(t, p, k)
	_ = o.Again()
	// The first one is held up in Exit between the queue's exit and its own count.
	if exit, _ := k.q.Exit(o.number, false); exit != queue.Nested {
		t.Fatal(exit)
	}
	o.g.lease.Load().Lose(renewal.Cause{Reason: renewal.ReasonWatchdog})
	<-lost
	eventually(t, "the queue moves on", func() bool { return k.q.Word().State() == queue.Free })
	o.Exit(context.Background())
	if o.units.Add(-1) == 0 { // and goes on: Nested
		o.exitedBesideALoss()
	}
	k.mu.Lock()
	left := k.talk.not - k.l.now()
	k.mu.Unlock()
	if left > 0 {
		t.Errorf("both have exited, and nothing is stated for %v", left)
	}
}

// Nothing was ever sent, and the release is said to be confirmed.
func TestBeside_AReleaseThatIsGivenUpIsNotConfirmed(t *testing.T) {
	_, client := fresh(t)
	c, f := client(), &faults{}
	c.AddHook(f)
	p := newParty(t, c, func(s *Settings) {
		s.Timeout = 3 * time.Second
		s.Lease = Lease{For: 300 * time.Millisecond, Period: 100 * time.Millisecond, Margin: 30 * time.Millisecond}
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
