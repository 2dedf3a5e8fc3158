package lock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/queue"
)

// lingers returns a client whose locks linger for d, and that listens.
func lingers(t testing.TB, rdb *redis.Client, d time.Duration, changes ...func(*Settings)) *party {
	t.Helper()
	p := newParty(t, rdb, func(s *Settings) {
		s.Linger = d
		for _, change := range changes {
			change(s)
		}
	})
	p.wire.Subscribe()
	<-p.up
	return p
}

// commands returns how many do took.
func commands(t testing.TB, p *party, do func()) (n uint64) {
	t.Helper()
	before := p.number.Load()
	do()
	return p.number.Load() - before
}

// Linger: a lock that nobody waits for stays in the process, without a command, and with tokens that grow.
func TestLinger_TheNextOwnerNeedsNoCommand(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := lingers(t, client(), time.Hour, longLease, func(s *Settings) { s.Fencing, s.RecordTime = true, time.Hour })
	first := p.mustAcquire(t, "k")
	eventually(t, "it has its whole lease", func() bool { return first.g.Lease().Renewals() > 0 })
	token := first.Token()
	time.Sleep(time.Millisecond) // tokens stay below the server's clock
	mustRelease(t, first)
	if n := commands(t, p, func() {
		o := p.mustAcquire(t, "k")
		if o.Token() != token+1 {
			t.Errorf("token %d after %d", o.Token(), token)
		}
		mustRelease(t, o)
		if o, err := p.acquire(t.Context(), "k", queue.Try); err != nil {
			t.Error(err)
		} else {
			mustRelease(t, o)
		}
	}); n != 0 {
		t.Errorf("%d commands", n)
	}
}

// acquireUnrenewed acquires and releases k, so fast that it was not renewed, and lingers for half of its call lease. It returns
// the moment of the release.
func acquireUnrenewed(t *testing.T, p *party) (*Owner, time.Time) {
	t.Helper()
	for {
		o := p.mustAcquire(t, "k")
		begin := time.Now()
		mustRelease(t, o)
		if o.g.Lease().Renewals() == 0 {
			return o, begin
		}
		o.g.k.endLinger() // a busy machine
		eventually(t, "it is not there", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.keys["k"] == nil })
	}
}

// A lock that lingers is given back when its time is over, or half of its lease.
func TestLinger_Ends(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	for _, d := range []time.Duration{50 * time.Millisecond, time.Hour} {
		p := lingers(t, client(), d)
		o, begin := acquireUnrenewed(t, p)
		most := min(d, time.Second)
		if rdb.Exists(t.Context(), "k").Val() != 1 && time.Since(begin) < most {
			t.Error("it does not linger")
		}
		eventually(t, "it is free", func() bool { return rdb.Exists(t.Context(), "k").Val() == 0 })
		if l := o.g.Loss(); l != nil {
			t.Errorf("Linger of %v: lost: %v", d, l)
		}
		took := time.Since(begin)
		if took < most*8/10 || !pace.Within(took, most+500*time.Millisecond) {
			t.Errorf("Linger of %v: free after %v", d, took)
		}
	}
}

// Nothing renews a lock that lingers, and what comes in again is renewed.
func TestLinger_IsNotRenewed(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := lingers(t, client(), time.Hour)
	acquireUnrenewed(t, p)
	time.Sleep(300 * time.Millisecond) // a renewal is due after 0.1 s
	if ttl := rdb.PTTL(t.Context(), "k").Val(); ttl > 1800*time.Millisecond {
		t.Errorf("it was renewed: %v", ttl)
	}
	o := p.mustAcquire(t, "k")
	eventually(t, "it is renewed", func() bool { return rdb.PTTL(t.Context(), "k").Val() > 2*time.Second })
	mustRelease(t, o)
}

// Who waits elsewhere has the lock after three messages.
func TestLinger_EndsForAWaiter(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	a, b := lingers(t, client(), time.Hour), lingers(t, client(), time.Hour)
	for i := range 20 {
		key := fmt.Sprint("k", i)
		mustRelease(t, a.mustAcquire(t, key))
		begin := time.Now()
		o := b.mustAcquire(t, key)
		if d := time.Since(begin); !pace.Within(d, 300*time.Millisecond) {
			t.Errorf("the next came in after %v", d)
		}
		mustRelease(t, o)
	}
}

// Processes that take turns end the linger once. Then each finds it free, as without Linger: two commands for each owner, and
// the other process has no part in that. After a pause it lingers again.
func TestLinger_InTurn(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	seldom, always := lingers(t, client(), time.Hour), lingers(t, client(), time.Hour)
	defer always.Key("k", always.set).Done() // it has the key in use all the time, the other process seldom
	pass := func(p *party) { mustRelease(t, p.mustAcquire(t, "k")) }
	pass(seldom)
	begin := time.Now()
	pass(always) // ends the linger
	if rdb.Exists(t.Context(), "k").Val() > 0 && time.Since(begin) < lingerPause {
		t.Error("it lingers though another client was seen")
	}
	a, b := seldom, always
	others := uint64(0)
	for range 10 {
		a, b = b, a
		var own uint64
		other := commands(t, a, func() { own = commands(t, b, func() { pass(b) }) })
		if time.Since(begin) >= lingerPause { // a slow machine: it may linger again
			break
		}
		if others += other; own != 2 {
			t.Errorf("%d commands", own)
		}
	}
	if others > 1 { // one may still come from the linger
		t.Errorf("%d commands of the other process", others)
	}
	time.Sleep(lingerPause + 100*time.Millisecond)
	eventually(t, "no key is kept that nobody uses", func() bool { return len(seldom.All()) == 0 })
	eventually(t, "it lingers again", func() bool { pass(always); return rdb.Exists(t.Context(), "k").Val() > 0 })
}

// A message that comes between the decision and the queue's state still ends the linger.
func TestLinger_EndsAtTheLastMoment(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := lingers(t, client(), time.Hour, longLease)
	k := p.Key("k", p.set)
	defer k.Done()
	o, _ := enter(t, p, k)
	eventually(t, "it has its whole lease", func() bool { return o.g.Lease().Renewals() > 0 })
	if exit, _ := k.q.Release(&o.Stay, queue.Linger); exit != queue.Kept { // as Owner.Exit does
		t.Fatal("it does not linger")
	}
	k.noteContended(o.g.n)
	o.g.checkLinger(k.l.now())
	begin := time.Now()
	eventually(t, "it is free", func() bool { return k.q.Word().State() == queue.Free })
	if d := time.Since(begin); d > beforeTheLease { // the lease ends later
		t.Errorf("after %v", d)
	}
	o.abandon()
}

// A try elsewhere gets a lock that lingers, and is refused one that is owned.
func TestLinger_P13_ATryElsewhere(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	a, b := lingers(t, client(), time.Hour), lingers(t, client(), time.Hour)
	got, tries := 0, int(20*pace.Factor()) // a try waits for no more than a moment
	for i := range tries {
		key := fmt.Sprint("k", i)
		mustRelease(t, a.mustAcquire(t, key))
		if o, err := b.acquire(t.Context(), key, queue.Try); err == nil {
			mustRelease(t, o)
			got++
		} else if !errors.Is(err, ErrRefused) {
			t.Error(err)
		}
	}
	if got < 10 {
		t.Errorf("%d of %d tries got it", got, tries)
	}
	owned := a.mustAcquire(t, "k")
	begin := time.Now()
	if _, err := b.acquire(t.Context(), "k", queue.Try); !errors.Is(err, ErrRefused) {
		t.Errorf("a try beside an owner: %v", err)
	}
	if d := time.Since(begin); !pace.Within(d, 300*time.Millisecond) {
		t.Errorf("refused after %v", d)
	}
	awaitPlace(t, client(), 0)
	mustRelease(t, owned)
}

// A close gives back what lingers.
func TestLinger_Close(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := lingers(t, client(), time.Hour, longLease)
	for _, key := range []string{"k", "l", "m"} {
		o := p.mustAcquire(t, key)
		eventually(t, "it has its whole lease", func() bool { return o.g.Lease().Renewals() > 0 })
		mustRelease(t, o)
	}
	ctx, cancel := context.WithTimeout(t.Context(), beforeTheLease) // by themselves they linger for half of it
	defer cancel()
	if left := p.close(ctx); left > 0 {
		t.Errorf("%d lost", left)
	}
	if n := rdb.Exists(t.Context(), "k", "l", "m").Val(); n > 0 {
		t.Errorf("%d are left", n)
	}
}

// The loss of what lingers ends it, and has nobody to notify.
func TestLinger_ALoss(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := lingers(t, client(), time.Hour)
	k := p.Key("k", p.set)
	defer k.Done()
	o, lost := enter(t, p, k)
	mustRelease(t, o)
	rdb.Del(t.Context(), "k")
	p.Forced(o.g.n)
	eventually(t, "it is free here", func() bool { return k.q.Word().State() == queue.Free })
	select {
	case l := <-lost:
		t.Errorf("notified: %v", l)
	default:
	}
	mustRelease(t, p.mustAcquire(t, "k"))
}

func BenchmarkLinger(b *testing.B) {
	_, client := fresh(b)
	p := lingers(b, client(), time.Second)
	k := p.Key("k", p.set)
	defer k.Done()
	ctx := context.Background()
	for b.Loop() {
		o := &Owner{Stay: queue.Stay{Kind: queue.NoNotify}}
		if err := k.Acquire(ctx, o, nil); err != nil {
			b.Fatal(err)
		}
		o.Exit(ctx)
	}
}

// A lock that is used again and again is given back once that ends: one timer finds so.
func TestLinger_UsedAgain(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	const d = 100 * time.Millisecond
	p := lingers(t, client(), d)
	for begin := time.Now(); time.Since(begin) < 3*d; time.Sleep(5 * time.Millisecond) {
		mustRelease(t, p.mustAcquire(t, "k"))
	}
	begin := time.Now()
	eventually(t, "it is free", func() bool { return rdb.Exists(t.Context(), "k").Val() == 0 })
	if took := time.Since(begin); !pace.Within(took, time.Second) { // its lease ends later
		t.Errorf("free after %v", took)
	}
}

// Where the message is lost that somebody waits elsewhere, a process that locks again and again learns of it when it asks.
func TestLinger_ALostMessage(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	a, b := lingers(t, client(), 50*time.Millisecond), lingers(t, client(), 50*time.Millisecond)
	a.unsubscribed.Store(true)
	mustRelease(t, a.mustAcquire(t, "k"))
	got := make(chan *Owner)
	go func() { got <- b.mustAcquire(t, "k") }()
	begin := time.Now()
	for {
		select {
		case o := <-got:
			mustRelease(t, o)
			a.unsubscribed.Store(false)
			return
		default:
		}
		if time.Since(begin) > pace.Hang {
			t.Fatal("nobody else gets the lock")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if o, err := a.acquire(ctx, "k", 0); err == nil {
			time.Sleep(time.Millisecond) // else it has no room for a count of hand-offs, or is not renewed, before it asks
			mustRelease(t, o)
		}
		cancel()
	}
}

// With Fencing a lock that passes faster than every 2 µs goes back: its tokens would overtake the server's clock.
func TestLinger_TokensStayBelowTheClock(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), func(s *Settings) { s.Linger, s.Fencing, s.RecordTime = time.Second, true, time.Hour })
	o := p.mustAcquire(t, "k")
	o.handOffs = 10
	for us, may := range map[time.Duration]bool{21: false, 22: true} {
		if got := o.g.mayHandOff(o, o.g.since+us*time.Microsecond); got != may {
			t.Errorf("after %d µs and 10 hand-offs it may pass on: %v", us, !may)
		}
	}
	mustRelease(t, o)
}
