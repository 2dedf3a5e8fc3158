package lock

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/queue"
)

// Those who are asked to retry when a lock becomes free without a release of ours are the first that hear: waiters that
// have died in front of them cost nothing.

// die is what Redis sees of a process that is gone: its subscription is closed, and its place stays.
func (p *party) die(t *testing.T) {
	t.Helper()
	p.dead = true
	for _, k := range p.All() {
		k.silence()
	}
	p.wire.StopListening()
}

// waitsLast makes the party the last one in the line of k, as number n.
func (p *party) waitsLast(t *testing.T, rdb *redis.Client, n int) {
	t.Helper()
	k := p.Key("k", p.set)
	_, order, _ := k.q.Acquire(&queue.Waiter{Stay: &queue.Stay{Kind: queue.Refusable, Need: 1}})
	k.carryOut(order)
	awaitPlace(t, rdb, int64(n))
	eventually(t, "listens", p.wire.Listening)
}

// comes acquires k, releases it, and says when it had it.
func (p *party) comes(t *testing.T) <-chan time.Time {
	came := make(chan time.Time, 1)
	go func() {
		o := p.mustAcquire(t, "k")
		came <- time.Now()
		mustRelease(t, o)
	}()
	return came
}

// behindTheDead has a waiter come in behind so many dead ones, after free, and returns how long after.
func behindTheDead(t *testing.T, dead int, set func(*Settings), free func(rdb *redis.Client, o *Owner, p *party)) time.Duration {
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), set)
	o := p.mustAcquire(t, "k")
	eventually(t, "renewed", func() bool { return o.g.lease.Renewals() > 0 })
	var gone []*party
	for n := range dead {
		gone = append(gone, newParty(t, client(), longLease))
		gone[n].waitsLast(t, rdb, n+1)
	}
	waiter := newParty(t, client(), longLease)
	came := waiter.comes(t)
	awaitPlace(t, rdb, int64(dead+1))
	eventually(t, "listens", waiter.wire.Listening)
	for _, g := range gone {
		g.die(t)
	}
	time.Sleep(1500 * time.Millisecond) // it confirms its place at moments that have nothing to do with what follows
	begin := time.Now()
	free(rdb, o, p)
	return (<-came).Sub(begin)
}

func TestDead_AForcedRelease_Lab(t *testing.T) {
	t.Parallel()
	for _, dead := range []int{2, 8} {
		d := behindTheDead(t, dead, longLease, func(rdb *redis.Client, o *Owner, p *party) {
			p.die(t)
			o.g.lease.End()
			p.unregister(o.g, nil)
			if _, err := newParty(t, rdb, nil).wire.ForceRelease(t.Context(), "k", false); err != nil {
				t.Fatal(err)
			}
		})
		if !pace.Within(d, time.Second) {
			t.Errorf("behind %d: free for %v", dead, d)
		}
	}
}

func TestDead_AMark_Lab(t *testing.T) {
	t.Parallel()
	for _, dead := range []int{2, 8} {
		d := behindTheDead(t, dead, func(s *Settings) { longLease(s); s.MinHold = 3 * time.Second }, func(_ *redis.Client, o *Owner, _ *party) {
			mustRelease(t, o)
		})
		if !pace.Within(d, 2*time.Second) {
			t.Errorf("behind %d: a mark of 1.4 s has kept it for %v", dead, d)
		}
	}
}

func TestDead_AnOpenTurn_Lab(t *testing.T) {
	t.Parallel()
	for _, dead := range []int{2, 8} {
		d := behindTheDead(t, dead, longLease, func(rdb *redis.Client, o *Owner, _ *party) {
			foreign := rdb.Subscribe(t.Context(), "lock:release:k")
			if _, err := foreign.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = foreign.Close() })
			rdb.HSet(t.Context(), "anteroom:line:{k}", "s", fmt.Sprintf("0 1 %d", time.Now().UnixMilli())) // this turn is the second
			mustRelease(t, o)
		})
		if !pace.Within(d, time.Second) {
			t.Errorf("behind %d: a turn of 1 ms was open for %v", dead, d)
		}
	}
}

// The end of a MinHold's mark is waited for as everybody does, in the line: it may come sooner.
func TestDead_AMarkIsDeleted(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"with the lock before", "by force"} {
		t.Run(how, func(t *testing.T) {
			_, client := fresh(t)
			rdb := client()
			p := newParty(t, client(), func(s *Settings) {
				s.MinHold = time.Minute
				s.Lease.Period = s.Lease.For / 2
			})
			o := p.mustAcquire(t, "k")
			eventually(t, "renewed", func() bool { return o.g.lease.Renewals() > 0 })
			got := make(chan *Owner, 1)
			go func() { got <- p.mustAcquire(t, "k") }()
			eventually(t, "it waits", func() bool { return o.g.k.q.Len() == 1 })
			if how == "by force" {
				mustRelease(t, o)
				awaitPlace(t, rdb, 1)
				if _, err := newParty(t, client(), nil).wire.ForceRelease(t.Context(), "k", false); err != nil {
					t.Fatal(err)
				}
			} else {
				rdb.Del(t.Context(), "k")
				if r := o.Exit(t.Context()); r.Lost == nil {
					t.Fatalf("%+v", r)
				}
			}
			begin := time.Now()
			next := <-got
			if d := time.Since(begin); !pace.Within(d, time.Second) {
				t.Errorf("the key was free for %v", d)
			}
			rdb.Del(context.Background(), "k")
			next.Exit(t.Context())
		})
	}
}

// The first in line gives up before the mark ends, at which the next one that is subscribed is asked to retry immediately, too.
func TestDead_ARetryForLater_Lab(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), func(s *Settings) { longLease(s); s.MinHold = time.Hour })
	o := p.mustAcquire(t, "k")
	eventually(t, "renewed", func() bool { return o.g.lease.Renewals() > 0 })
	front := newParty(t, client(), longLease)
	fk := front.Key("k", front.set)
	fw := &queue.Waiter{Stay: &queue.Stay{Kind: queue.Refusable, Need: 1}}
	_, order, _ := fk.q.Acquire(fw)
	fk.carryOut(order)
	awaitPlace(t, rdb, 1)
	eventually(t, "listens", front.wire.Listening)
	const dead = 8
	var gone []*party
	for n := range dead {
		gone = append(gone, newParty(t, client(), longLease))
		gone[n].waitsLast(t, rdb, n+2)
	}
	waiter := newParty(t, client(), longLease)
	came := waiter.comes(t)
	awaitPlace(t, rdb, dead+2)
	eventually(t, "listens", waiter.wire.Listening)
	for _, g := range gone {
		g.die(t)
	}
	time.Sleep(500 * time.Millisecond)
	p.set.MinHold = p.now() - o.g.since + pace.Scale(2*time.Second) // the mark lasts for that
	mustRelease(t, o)
	end := time.Now().Add(rdb.PTTL(t.Context(), "k").Val())
	time.Sleep(500 * time.Millisecond)
	giveUp(t, fk, fw)
	if d := (<-came).Sub(end); !pace.Within(d, time.Second) {
		t.Errorf("the key was free for %v", d)
	}
}

// A monitor that subscribes to a pattern hears nothing for those who have died.
func TestDead_APatternDoesNotHear_Lab(t *testing.T) {
	t.Parallel()
	d := behindTheDead(t, 8, longLease, func(rdb *redis.Client, o *Owner, p *party) {
		sub := rdb.PSubscribe(t.Context(), "anteroom:*")
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = sub.Close() })
		p.die(t)
		o.g.lease.End()
		p.unregister(o.g, nil)
		if _, err := newParty(t, rdb, nil).wire.ForceRelease(t.Context(), "k", false); err != nil {
			t.Fatal(err)
		}
	})
	if !pace.Within(d, time.Second) {
		t.Errorf("free for %v", d)
	}
}
