package lock

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

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
	_, client := fresh(t)
	c := client()
	p := newParty(t, c, nil)
	mustRelease(t, p.mustAcquire(t, "k")) // scripts are loaded
	k := p.Key("k", p.set)
	defer k.Done()
	ctx, cancel := context.WithCancel(context.Background())
	var states atomic.Int32
	c.AddHook(slowHook{func(cmd redis.Cmder) {
		if cmd.Name() != "evalsha" && cmd.Name() != "eval" {
			return
		}
		if states.Add(1) == 2 { // the renewal to the fixed lease
			cancel()
			time.Sleep(20 * time.Millisecond)
		}
	}})
	o := &Owner{Kind: queue.Refusable, Holder: notify(func(*Loss) {})}
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

func TestBeside_MinHoldWhereALossMeetsAnExit(t *testing.T) {
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), func(s *Settings) { s.MinHold = time.Second })
	bad := 0
	for range 10 {
		rdb.Del(t.Context(), "k")
		o := p.mustAcquire(t, "k")
		o.g.k.mu.Lock()
		done := make(chan struct{})
		go func() { o.Exit(context.Background()); close(done) }()
		eventually(t, "releasing", func() bool { return o.g.k.q.Word().State() == queue.Releasing })
		o.g.lease.Load().Lose(renewal.Cause{Reason: renewal.ReasonWatchdog})
		o.g.k.mu.Unlock()
		<-done
		time.Sleep(20 * time.Millisecond)
		if rdb.Exists(t.Context(), "k").Val() == 0 {
			bad++
		}
		rdb.Del(t.Context(), "k")
		time.Sleep(1100 * time.Millisecond)
	}
	if bad > 0 {
		t.Errorf("%d of 10 were free before MinHold", bad)
	}
}
