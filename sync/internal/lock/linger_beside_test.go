package lock

import (
	"context"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// A timer that an earlier one has made needless ends without an effect: the lock that is in use later does not get one timer
// more each time.
func TestLinger_ATimerThatAnotherOneReplaces(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := lingers(t, client(), time.Hour)
	o := p.mustAcquire(t, "k")
	k, now := o.g.k, p.now()
	k.wakeLingering(now+60*time.Millisecond, now)
	k.wakeLingering(now+20*time.Millisecond, now) // of a briefer grant
	eventually(t, "the second timer has fired", func() bool { return k.timed.Load() == 0 })
	next := p.now() + time.Hour
	k.wakeLingering(next, p.now())
	time.Sleep(100 * time.Millisecond)
	if got := Moment(k.timed.Load()); got != next {
		t.Errorf("a timer is set for %v, and the key says %v", next, got)
	}
	mustRelease(t, o)
}

// An answer that was on its way when the subscription came back knows nothing of what was said meanwhile.
func TestLinger_AnAnswerOlderThanTheSubscription(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	c, f := client(), &holdUp{}
	c.AddHook(f)
	p := newParty(t, c, func(s *Settings) { s.Linger, s.Timeout = time.Hour, pace.Scale(5*time.Second) })
	p.wire.Subscribe()
	<-p.up
	mustRelease(t, p.mustAcquire(t, "another")) // the scripts are loaded
	rdb := client()
	q := newParty(t, client(), nil)
	end := f.hold(&f.answers)
	got := make(chan *Owner, 1)
	go func() { got <- p.mustAcquire(t, "k") }()
	eventually(t, "p has it", func() bool { return rdb.Exists(t.Context(), "k").Val() == 1 })
	p.unsubscribed.Store(true) // the connection is down
	in := make(chan *Owner, 1)
	go func() { in <- q.mustAcquire(t, "k") }()
	awaitPlace(t, rdb, 1)
	time.Sleep(20 * time.Millisecond)
	p.unsubscribed.Store(false)
	p.Resubscribed()
	end()
	mustRelease(t, <-got)
	begin := time.Now()
	o := <-in
	if d := time.Since(begin); !pace.Within(d, 300*time.Millisecond) {
		t.Errorf("the other one waited for %v", d)
	}
	mustRelease(t, o)
}

// A grant that was lost on its way from one owner to the next is reported, with Linger as without.
func TestLinger_ALossBetweenTwoOwners(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{0, time.Hour} {
		_, client := fresh(t)
		p := newParty(t, client(), func(s *Settings) { s.Linger, s.Fair = d, false })
		p.wire.Subscribe()
		<-p.up
		o := p.mustAcquire(t, "k")
		k := o.g.k
		time.Sleep(50 * time.Millisecond)
		w := &queue.Waiter{Stay: &queue.Stay{Kind: queue.Refusable, Need: 1}, Note: &Owner{}}
		if _, _, err := k.q.Acquire(w); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, o)
		if s := k.q.Word().State(); s != queue.Granted {
			t.Fatal(s)
		}
		o.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonGone})
		eventually(t, "the loss is reported", func() bool {
			p.rep.mu.Lock()
			defer p.rep.mu.Unlock()
			return len(p.rep.losses) > 0
		})
		p.rep.mu.Lock()
		if n := len(p.rep.losses); n != 1 {
			t.Errorf("Linger %v: %d losses are reported", d, n)
		}
		p.rep.mu.Unlock()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		order, _ := k.q.Park(ctx, w)
		k.carryOut(order)
	}
}

// A try that finds a lock that lingered, and was removed, gets a new one: what became of that is not its own.
func TestLinger_ATryWithAFixedLease(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := lingers(t, client(), time.Hour)
	mustRelease(t, p.mustAcquire(t, "k"))
	rdb.Del(t.Context(), "k")
	k := p.Key("k", p.set)
	defer k.Done()
	o := &Owner{Stay: queue.Stay{Kind: queue.Try | queue.Refusable}, Holder: notify(func(*Loss) {})}
	if err := k.Acquire(t.Context(), o, &Lease{For: time.Minute, Period: -1, Margin: time.Second}); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, o)
}

// A key that has lingered and is forgotten is not kept in memory until Linger ends.
func TestLinger_AForgottenKeyIsNotKept(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := lingers(t, client(), time.Hour, longLease)
	o := p.mustAcquire(t, "k")
	eventually(t, "it has its whole lease", func() bool { return o.g.Lease().Renewals() > 0 })
	k := weak.Make(o.g.k)
	mustRelease(t, o) // it would linger for half of the lease, 14 s
	k.Value().endLinger()
	o = nil
	begin := time.Now()
	eventually(t, "nothing keeps it", func() bool { runtime.GC(); return k.Value() == nil })
	if d := time.Since(begin); d > beforeTheLease {
		t.Errorf("after %v", d)
	}
}
