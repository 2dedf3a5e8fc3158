package lock

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
)

// A call comes by its message while a confirmation is on its way, whose answer then says it again: it is one call, and its
// message was not lost.
func TestAnswer_ACallIsReportedOnce(t *testing.T) {
	_, client := fresh(t)
	c := client()
	p, q := newParty(t, c, longLease), newParty(t, client(), longLease)
	mustRelease(t, p.mustAcquire(t, "another")) // else the subscription begins meanwhile
	eventually(t, "p listens", p.wire.Listening)
	first := q.mustAcquire(t, "k")
	got := make(chan *Owner)
	go func() { got <- p.mustAcquire(t, "k") }()
	awaitPlace(t, client(), 1)
	var once sync.Once
	c.AddHook(slowHook{func(cmd redis.Cmder) {
		if cmd.Name() == "evalsha" {
			once.Do(func() {
				mustRelease(t, first)
				eventually(t, "called", func() bool { return p.rep.called.Load() == 1 })
			})
		}
	}})
	k := p.Key("k", p.set)
	defer k.Done()
	k.hear(News{Word: Look})
	k.speak(false)
	mustRelease(t, <-got)
	if called, found := p.rep.called.Load(), p.rep.found.Load(); called != 1 || found != 0 {
		t.Errorf("%d called, %d found", called, found)
	}
}

// Who has the lock does not listen for another holder, also where an answer comes late that tells of one.
func TestAnswer_NobodyIsWatchedBesideAUnit(t *testing.T) {
	_, client := fresh(t)
	p := newParty(t, client(), longLease)
	o := p.mustAcquire(t, "k")
	k := o.g.k
	k.answered(News{Word: Stands, Lease: time.Hour}, &lettucecompat.Answer{Word: lettucecompat.WordStands, Holder: "another"})
	k.mu.Lock()
	if k.unwatch != nil {
		t.Error("it listens")
	}
	k.mu.Unlock()
	mustRelease(t, o)
}

// P13: a lock that a try got too late is released, and not renewed before.
func TestAnswer_P13_WhatATryGotTooLate(t *testing.T) {
	_, client := fresh(t)
	c := client()
	p := newParty(t, c, func(s *Settings) { longLease(s); s.Timeout = 3 * time.Second })
	mustRelease(t, p.mustAcquire(t, "k")) // scripts are loaded
	k := p.Key("k", p.set)
	defer k.Done()
	var mu sync.Mutex
	n := 0
	c.AddHook(afterHook{func(cmd redis.Cmder) {
		if cmd.Name() != "evalsha" {
			return
		}
		mu.Lock()
		n++
		ask := n == 1
		mu.Unlock()
		if ask {
			time.Sleep(1100 * time.Millisecond) // more than half of what it was given
		}
	}})
	_, err := p.acquire(t.Context(), "k", queue.Try)
	if !errors.Is(err, errLate) {
		t.Errorf("%v", err)
	}
	eventually(t, "settled", func() bool { return p.unsettled.Load() == 0 })
	mu.Lock()
	defer mu.Unlock()
	if n != 2 {
		t.Errorf("%d statements, not an ask and a release", n)
	}
}

// Who is granted the lock while its lease is being secured does not come in once Close has begun.
func TestAnswer_CloseBesideAFixedLease(t *testing.T) {
	_, client := fresh(t)
	c := client()
	p := newParty(t, c, longLease)
	mustRelease(t, p.mustAcquire(t, "k")) // scripts are loaded
	var mu sync.Mutex
	n := 0
	c.AddHook(slowHook{func(cmd redis.Cmder) {
		if cmd.Name() != "evalsha" {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if n++; n == 2 { // after the ask
			p.BeginClose()
		}
	}})
	k := p.Key("k", p.set)
	defer k.Done()
	o := &Owner{Kind: queue.Refusable, Holder: notify(func(*Loss) {})}
	if err := k.Acquire(t.Context(), o, &Lease{For: time.Second, Period: -1, Margin: 100 * time.Millisecond}); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
		o.Exit(t.Context())
	}
}
