package lock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
)

// Each test here is a sequence in which a lock that lingers once went wrong.

// A brief grant is given back at half of its own lease, also where the timer was set for the grant before, which lasted longer.
func TestLinger_TheTimerOfAGrantBefore(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := lingers(t, client(), time.Hour, longLease)
	k := p.Key("k", p.set) // in use all the time, as where somebody waits
	defer k.Done()
	o := p.mustAcquire(t, "k")
	eventually(t, "it has its whole lease", func() bool { return o.g.Lease().Renewals() > 0 })
	mustRelease(t, o) // it lingers for 14 s
	o.g.k.endLinger()
	eventually(t, "it is free", func() bool { return rdb.Exists(t.Context(), "k").Val() == 0 })
	var begin time.Time
	for {
		o = p.mustAcquire(t, "k")
		begin = time.Now()
		mustRelease(t, o)
		if o.g.Lease().Renewals() == 0 {
			break
		}
		o.g.k.endLinger() // a busy machine has renewed it meanwhile
		eventually(t, "it is free", func() bool { return rdb.Exists(t.Context(), "k").Val() == 0 })
	}
	eventually(t, "it is free again", func() bool { return rdb.Exists(t.Context(), "k").Val() == 0 })
	if d := time.Since(begin); !pace.Within(d, 1300*time.Millisecond) { // else it is lost then
		t.Errorf("free after %v", d)
	}
	if l := o.g.Loss(); l != nil {
		t.Errorf("lost: %v", l)
	}
}

// After a new subscription a turn asks at its end, however long Linger is: a message may have been lost.
func TestLinger_ANewSubscription(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := lingers(t, client(), time.Hour)
	o := p.mustAcquire(t, "k")
	p.Resubscribed()
	mustRelease(t, o)
	if rdb.Exists(t.Context(), "k").Val() != 0 {
		t.Error("it lingers")
	}
}

// A subscription that comes between the decision and the queue's state ends the linger.
func TestLinger_ANewSubscriptionAtTheLastMoment(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := lingers(t, client(), time.Hour, longLease)
	k := p.Key("k", p.set)
	defer k.Done()
	o, _ := enter(t, p, k)
	eventually(t, "it has its whole lease", func() bool { return o.g.Lease().Renewals() > 0 })
	p.Resubscribed()
	if exit, _ := k.q.Release(&o.Stay, queue.Linger); exit != queue.Kept { // as Owner.Exit does, which has decided before
		t.Fatal("it does not linger")
	}
	o.g.checkLinger(k.l.now())
	begin := time.Now()
	eventually(t, "it is free", func() bool { return k.q.Word().State() == queue.Free })
	if d := time.Since(begin); d > beforeTheLease {
		t.Errorf("after %v", d)
	}
	o.abandon()
}

// A lock that somebody has deleted by force while it lingered is nobody's here.
func TestLinger_IsForced(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := lingers(t, client(), time.Hour)
	o := p.mustAcquire(t, "k")
	eventually(t, "it has its whole lease", func() bool { return o.g.Lease().Renewals() > 0 })
	mustRelease(t, o)
	rdb.Del(t.Context(), "k")
	p.Heard(lettucecompat.Message{Kind: lettucecompat.MessageForced, Key: "k", N: o.g.n})
	next := p.mustAcquire(t, "k")
	if rdb.Exists(t.Context(), "k").Val() == 0 {
		t.Error("the next owner has what was deleted")
	}
	mustRelease(t, next)
}

// A try that is the first that its client states gets a lock that lingers elsewhere.
func TestLinger_P13_TheFirstTry(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	a := lingers(t, client(), time.Hour)
	got, tries := 0, int(10*pace.Factor()) // a try waits for no more than a moment
	for i := range tries {
		key := fmt.Sprint("k", i)
		mustRelease(t, a.mustAcquire(t, key))
		b := newParty(t, client(), func(s *Settings) { s.Linger = time.Hour })
		if o, err := b.acquire(t.Context(), key, queue.Try); err == nil {
			mustRelease(t, o)
			got++
		} else if !errors.Is(err, ErrRefused) {
			t.Error(err)
		}
		b.BeginClose()
		time.Sleep(20 * time.Millisecond)
	}
	t.Logf("%d of %d", got, tries)
	if got < 5 {
		t.Errorf("%d of %d tries got it", got, tries)
	}
}

// A client that hears nothing does not keep what somebody may wait for.
func TestLinger_WithoutASubscription(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), func(s *Settings) { s.Linger = time.Hour })
	k := p.Key("k", p.set)
	defer k.Done()
	o, _ := enter(t, p, k)
	listened := p.wire.Listening()
	mustRelease(t, o)
	t.Logf("listening: %v, lingers: %v", listened, rdb.Exists(t.Context(), "k").Val() == 1)
	if !listened && k.q.Word().State() == queue.Lingers {
		t.Error("it lingers, and no message can end that")
	}
}

// The message that somebody waits comes before the answer that gives the lock, whose owner has it for longer than the pause.
func TestLinger_AMessageBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	c, rdb := client(), client()
	p := lingers(t, c, time.Hour)
	beforeScripts(c).next(func() {
		p.Heard(lettucecompat.Message{Kind: lettucecompat.MessageContended, Key: "k", N: p.number.Load()})
	})
	o := p.mustAcquire(t, "k")
	time.Sleep(lingerPause + 100*time.Millisecond)
	mustRelease(t, o)
	if rdb.Exists(t.Context(), "k").Val() != 0 {
		t.Error("it lingers")
	}
}

// A key is not in use because it is not to linger for now, and nothing is after a close.
func TestLinger_ACloseEndsThePause(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := lingers(t, client(), time.Minute)
	o := p.mustAcquire(t, "k")
	k := o.g.k
	k.pauseLinger()
	mustRelease(t, o)
	if n := len(p.All()); n != 0 {
		t.Errorf("%d keys are in use", n)
	}
	if again := p.Key("k", p.set); again.pausedUntil.Load() != k.pausedUntil.Load() {
		t.Error("the pause is forgotten")
	} else {
		again.Done()
	}
	ctx, cancel := context.WithTimeout(t.Context(), pace.Hang)
	defer cancel()
	begin := time.Now()
	p.close(ctx)
	k.pauseLinger()
	eventually(t, "nothing is in use", func() bool { return len(p.All()) == 0 })
	if d := time.Since(begin); !pace.Within(d, lingerPause/2) {
		t.Errorf("after %v", d)
	}
}
