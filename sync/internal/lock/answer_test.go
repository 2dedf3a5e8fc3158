package lock

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// scripts is what comes before the scripts of a client.
type scripts struct {
	do atomic.Pointer[func(n int64)]
	n  atomic.Int64
}

// beforeScripts has something done before scripts of c, which has sent nothing yet.
func beforeScripts(c *redis.Client) *scripts {
	s := new(scripts)
	c.AddHook(slowHook{func(cmd redis.Cmder) {
		if do := s.do.Load(); do != nil && cmd.Name() == "evalsha" {
			(*do)(s.n.Add(1))
		}
	}})
	return s
}

// each has do called before each script from now on, with its number.
func (s *scripts) each(do func(n int64)) { s.do.Store(&do) }

// next has do called before the next one.
func (s *scripts) next(do func()) {
	s.each(func(n int64) {
		if n == 1 {
			do()
		}
	})
}

// A call comes by its message while a confirmation is on its way, whose answer then says it again: it is one call, and its
// message was not lost.
func TestAnswer_ACallIsReportedOnce(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	c := client()
	before := beforeScripts(c)
	p, q := newParty(t, c, longLease), newParty(t, client(), longLease)
	mustRelease(t, p.mustAcquire(t, "another")) // else the subscription begins meanwhile
	eventually(t, "p listens", p.wire.Listening)
	first := q.mustAcquire(t, "k")
	got := make(chan *Owner)
	go func() { got <- p.mustAcquire(t, "k") }()
	awaitPlace(t, client(), 1)
	before.next(func() {
		mustRelease(t, first)
		eventually(t, "called", func() bool { return p.rep.called.Load() == 1 })
	})
	k := p.Key("k", p.set)
	defer k.Done()
	k.handle(conversation.Event{Kind: conversation.Retry})
	k.sendNext()
	mustRelease(t, <-got)
	if called, found := p.rep.called.Load(), p.rep.found.Load(); called != 1 || found != 0 {
		t.Errorf("%d called, %d found", called, found)
	}
}

// Who has the lock does not listen for another holder, also when a late answer names one.
func TestAnswer_NobodyIsWatchedBesideAUnit(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), longLease)
	o := p.mustAcquire(t, "k")
	k := o.g.k
	k.answered(k.repeated(), conversation.Event{Kind: conversation.Waits, After: time.Hour}, &lettucecompat.Answer{Word: lettucecompat.WordWaits, Holder: "another"})
	k.mu.Lock()
	if k.unwatch != nil {
		t.Error("it listens")
	}
	k.mu.Unlock()
	mustRelease(t, o)
}

// P13: a lock that a try got too late is released, and not renewed before.
func TestAnswer_P13_WhatATryGotTooLate(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	c := client()
	before := beforeScripts(c)
	p := newParty(t, c, func(s *Settings) { longLease(s); s.Timeout = pace.Scale(3 * time.Second) })
	mustRelease(t, p.mustAcquire(t, "k")) // scripts are loaded
	k := p.Key("k", p.set)
	defer k.Done()
	before.next(func() { time.Sleep(1100 * time.Millisecond) }) // more than half of what it is given
	_, err := p.acquire(t.Context(), "k", queue.Try)
	if !errors.Is(err, errLate) {
		t.Errorf("%v", err)
	}
	eventually(t, "settled", func() bool { return p.unsettled.Load() == 0 })
	if n := before.n.Load(); n != 2 {
		t.Errorf("%d commands, not an acquire and a release", n)
	}
}

// Who is granted the lock while its lease is being secured does not come in once Close has begun.
func TestAnswer_CloseBesideAFixedLease(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	c := client()
	before := beforeScripts(c)
	p := newParty(t, c, longLease)
	mustRelease(t, p.mustAcquire(t, "k")) // scripts are loaded
	before.each(func(n int64) {
		if n == 2 { // after the acquire
			p.BeginClose()
		}
	})
	k := p.Key("k", p.set)
	defer k.Done()
	o := &Owner{Stay: queue.Stay{Kind: queue.Refusable}, Holder: notify(func(*Loss) {})}
	if err := k.Acquire(t.Context(), o, &Lease{For: time.Minute, Period: -1, Margin: time.Second}); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
		o.Exit(t.Context())
	}
}

// A call whose message was lost is found also where too little is left of it to let anybody in before it is renewed.
func TestAnswer_ACallThatIsFoundLate(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p, q := newParty(t, client(), longLease), newParty(t, client(), longLease)
	mustRelease(t, p.mustAcquire(t, "another")) // else the subscription begins meanwhile
	eventually(t, "p listens", p.wire.Listening)
	first := q.mustAcquire(t, "k")
	got := make(chan *Owner)
	go func() { got <- p.mustAcquire(t, "k") }()
	rdb := client()
	awaitPlace(t, rdb, 1)
	if err := rdb.ACLSetUser(t.Context(), "default", "resetchannels").Err(); err != nil { // nobody can be called
		t.Fatal(err)
	}
	first.Exit(context.Background())
	mustRelease(t, <-got)
	if called, found := p.rep.called.Load(), p.rep.found.Load(); called != 0 || found != 1 {
		t.Errorf("%d called, %d found", called, found)
	}
}

// P13: a waiter gives up in the pause after failures, and a try comes before the queue has said so: it asks
// immediately.
func TestAnswer_P13_ATryInThePauseOfAnother(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	c, f := client(), &faults{}
	c.AddHook(f)
	p := newParty(t, c, nil)
	k := p.Key("k", p.set)
	defer k.Done()
	f.refuse.Store(1000)
	w := &queue.Waiter{Stay: &queue.Stay{Kind: queue.Refusable, Need: 1}}
	_, order, _ := k.q.Acquire(w)
	k.carryOut(order)
	eventually(t, "a long pause", func() bool { k.mu.Lock(); defer k.mu.Unlock(); return k.conv.Failures() >= 7 && !k.conv.Unanswered() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	order, err := k.q.Park(ctx, w)
	if err == nil {
		t.Fatal("admitted")
	}
	defer k.carryOut(order)
	begin := time.Now()
	_, err = p.acquire(t.Context(), "k", queue.Try)
	if d := time.Since(begin); err == nil || !pace.Within(d, 200*time.Millisecond) {
		t.Errorf("%v after %v, while each command fails immediately", err, d)
	}
}
