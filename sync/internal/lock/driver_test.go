package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// Each test here is a sequence in which a Key once went wrong.

// eventually waits until ok, and fails the test if that does not come.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(pace.Hang); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", pace.Hang, what)
		}
	}
}

// enter brings an owner in that is notified of a loss by the channel.
func enter(t testing.TB, p *party, k *Key) (*Owner, chan *Loss) {
	t.Helper()
	lost := make(chan *Loss, 1)
	o := &Owner{Stay: queue.Stay{Kind: queue.Refusable}, Holder: notify(func(l *Loss) { lost <- l })}
	if err := k.Acquire(context.Background(), o, nil); err != nil {
		t.Fatal(err)
	}
	return o, lost
}

// behind lets another goroutine of p wait for o's key, which o then cannot hand off.
func behind(t testing.TB, p *party, o *Owner) (got chan *Owner) {
	t.Helper()
	got = make(chan *Owner, 1)
	go func() {
		o, _ := p.acquire(context.Background(), "k", 0)
		got <- o
	}()
	eventually(t, "somebody waits", func() bool { return o.g.k.q.Len() == 1 })
	o.g.set(unrenewed)
	return got
}

// exits has o leave the queue, as Owner.Exit does first.
func exits(t testing.TB, o *Owner, may bool, want queue.Exit) {
	t.Helper()
	next := queue.EndTurn
	if may {
		next = queue.HandOff
	}
	if exit, _ := o.g.k.q.Release(&o.Stay, next); exit != want {
		t.Errorf("exit: %v, want %v", exit, want)
	}
}

// busyLoop holds up the goroutine that notifies of losses, until open is called.
func busyLoop(t testing.TB, p *party) (open func()) {
	t.Helper()
	set := &Settings{Lease: p.set.Lease, Timeout: p.set.Timeout}
	set.Prepare()
	k := p.Key("other", set)
	busy, opened := make(chan struct{}), make(chan struct{})
	o := &Owner{Stay: queue.Stay{Kind: queue.Refusable}, Holder: notify(func(*Loss) { close(busy); <-opened })}
	if err := k.Acquire(context.Background(), o, nil); err != nil {
		t.Fatal(err)
	}
	o.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonWatchdog})
	<-busy
	return func() {
		close(opened)
		o.Exit(context.Background())
		k.Done()
	}
}

// A loss and an exit at one moment give the owner's reference back once.
func TestDriver_ALossBesideAnExit(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), nil)
	k := p.Key("k", p.set)
	defer k.Done()
	for range 3 {
		o, _ := enter(t, p, k)
		k.mu.Lock() // holds up Held.Lost
		o.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonWatchdog})
		done := make(chan struct{})
		go func() { o.Exit(context.Background()); close(done) }()
		k.mu.Unlock()
		<-done
		eventually(t, "its reference is the only one", func() bool { return k.refs.Load() == 1 })
	}
}

// A key is in use while a grant that nobody wants is given back: a second Key of that name, beside it, would lose its
// unit to a repetition of that release.
func TestDriver_AKeyIsInUseWhileItReleases(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), nil)
	for range 50 {
		k := p.Key("k", p.set)
		w := &queue.Waiter{Stay: &queue.Stay{Need: 1}}
		_, order, _ := k.q.Acquire(w)
		k.carryOut(order)
		eventually(t, "granted", func() bool { return k.q.Word().State() == queue.Owned })
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		order, err := k.q.Park(ctx, w)
		if err == nil {
			t.Fatal("admitted")
		}
		k.carryOut(order)
		k.Done()
		p.mu.Lock()
		forgotten := p.keys["k"] != k
		p.mu.Unlock()
		if forgotten && k.q.Word().State() == queue.Releasing {
			t.Fatal("it is forgotten while it releases")
		}
		eventually(t, "nothing is left", func() bool { return k.refs.Load() == 0 })
	}
}

// P9: while one of several units of an owner may still work, the exit of another one frees nothing.
func TestDriver_P9_OneOfTwoUnitsExits(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), nil)
	k := p.Key("k", p.set)
	defer k.Done()
	o, lost := enter(t, p, k)
	if err := o.Reenter(false); err != nil {
		t.Fatal(err)
	}
	o.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonWatchdog})
	<-lost
	eventually(t, "the loss is known", func() bool { k.mu.Lock(); defer k.mu.Unlock(); return k.unitsLocked() == 0 && !k.conv.InLine })
	if r := o.Exit(context.Background()); r.Lost == nil {
		t.Errorf("%+v", r)
	}
	if k.mu.Lock(); k.conv.SilentUntil() <= k.l.moment() {
		t.Error("it may state something while the second unit works")
	}
	k.mu.Unlock()
	if rdb.Exists(t.Context(), "k").Val() == 0 {
		t.Error("it is free while the second unit works")
	}
	o.Exit(context.Background())
	eventually(t, "it is free", func() bool { return rdb.Exists(t.Context(), "k").Val() == 0 })
	eventually(t, "the test's reference is the only one", func() bool { return k.refs.Load() <= 1 })
	if n := k.refs.Load(); n != 1 {
		t.Errorf("%d references: the owner's was given back twice", n)
	}
}

// P13: a try waits for no owner that was notified of its loss.
func TestDriver_P13_ATryWithinP9(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), longLease)
	k := p.Key("k", p.set)
	defer k.Done()
	o, lost := enter(t, p, k)
	o.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonWatchdog})
	<-lost
	eventually(t, "the queue moves on", func() bool { return k.q.Word().State() == queue.Free })
	begin := time.Now()
	if _, err := p.acquire(context.Background(), "k", queue.Try); !errors.Is(err, ErrRefused) {
		t.Errorf("%v", err)
	}
	if d := time.Since(begin); d > beforeTheLease {
		t.Errorf("after %v", d)
	}
	o.Exit(context.Background())
}

// P13: a try does not inherit the place of a waiter that has just given up.
func TestDriver_P13_ATryInheritsNoPlace(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	a, b := newParty(t, client(), nil), newParty(t, client(), nil)
	o := a.mustAcquire(t, "k")
	k := b.Key("k", b.set)
	defer k.Done()
	w := &queue.Waiter{Stay: &queue.Stay{Need: 1}}
	_, order, _ := k.q.Acquire(w)
	k.carryOut(order)
	awaitPlace(t, client(), 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	order, _ = k.q.Park(ctx, w)
	got := make(chan error, 1)
	go func() { // before that order is carried out
		_, err := b.acquire(context.Background(), "k", queue.Try)
		got <- err
	}()
	select {
	case err := <-got:
		if !errors.Is(err, ErrRefused) {
			t.Errorf("%v", err)
		}
	case <-time.After(pace.Hang):
		t.Error("the try waits in the line")
	}
	k.carryOut(order)
	mustRelease(t, o)
}

// P8: a turn whose answer is lost, and then that of its repetition says that the unit was given back.
func TestDriver_P8_AYieldWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	c, f := client(), &faults{}
	c.AddHook(f)
	p := newParty(t, c, nil)
	o := p.mustAcquire(t, "k")
	got := behind(t, p, o)
	f.lose.Store(1000)
	go func() {
		for f.lost.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		f.lose.Store(0)
	}()
	if r := o.Exit(t.Context()); r.Err != nil || r.Lost != nil {
		t.Errorf("%+v", r)
	}
	mustRelease(t, <-got)
}

// P8: what was never sent has released nothing.
func TestDriver_P8_ATurnThatIsNeverSent(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb, c, f := client(), client(), &faults{}
	c.AddHook(f)
	p := newParty(t, c, nil)
	o := p.mustAcquire(t, "k")
	got := behind(t, p, o)
	f.refuse.Store(1000)
	if r := o.Exit(t.Context()); r.Err == nil && rdb.HLen(t.Context(), "k").Val() == 1 {
		t.Errorf("released, it says: %+v", r)
	}
	f.refuse.Store(0)
	mustRelease(t, <-got)
}

// P12: the repetition of a release that was never sent leaves the mark of MinHold.
func TestDriver_P12_TheMarkIsRepeated(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb, c, f := client(), client(), &faults{}
	c.AddHook(f)
	p := newParty(t, c, func(s *Settings) { s.MinHold = time.Minute })
	o := p.mustAcquire(t, "k")
	f.refuse.Store(1000)
	time.AfterFunc(30*time.Millisecond, func() { f.refuse.Store(0) })
	o.Exit(t.Context())
	if rdb.Exists(t.Context(), "k").Val() == 0 {
		t.Error("it is free immediately")
	}
	rdb.Del(t.Context(), "k")
}

// A turn makes a place, which goes when its waiter leaves before the answer.
func TestDriver_AWaiterLeavesDuringATurn(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	a, b := newParty(t, client(), nil), newParty(t, client(), nil)
	o := a.mustAcquire(t, "k")
	next := make(chan *Owner, 1)
	go func() { next <- b.mustAcquire(t, "k") }()
	awaitPlace(t, rdb, 1)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() { _, _ = a.acquire(ctx, "k", 0); close(gone) }()
	k := o.g.k
	eventually(t, "somebody waits", func() bool { return k.q.Len() == 1 })
	o.g.set(unrenewed)
	go func() {
		for k.q.Word().State() == queue.Owned {
			time.Sleep(10 * time.Microsecond)
		}
		cancel()
	}()
	mustRelease(t, o)
	<-gone
	last := <-next
	awaitPlace(t, rdb, 0)
	mustRelease(t, last)
}

// Close does not wait for who is parked and cannot be notified.
func TestDriver_CloseBesideAParkedCaller(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	a, b := newParty(t, client(), nil), newParty(t, client(), nil)
	o := a.mustAcquire(t, "k")
	k := b.Key("k", b.set)
	defer k.Done()
	ctx, stop := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = k.Acquire(ctx, &Owner{Stay: queue.Stay{Kind: queue.NoNotify}}, nil)
	}()
	awaitPlace(t, client(), 1)
	limit, cancel := context.WithTimeout(t.Context(), pace.Hang)
	defer cancel()
	if b.close(limit); limit.Err() != nil {
		t.Error("Close has waited for it")
	}
	stop()
	<-gone
	mustRelease(t, o)
}

// Who loses the lock while its lease is made a fixed one acquires again.
func TestDriver_ALossWhileTheLeaseIsFixed(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), nil)
	k := p.Key("k", p.set)
	defer k.Done()
	o, _ := enter(t, p, k)
	o.lease = &Lease{For: time.Second, Period: -1, Margin: 10 * time.Millisecond}
	o.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonForced})
	if err := k.secure(t.Context(), o.g, o); err != errAgain {
		t.Errorf("%v", err)
	}
	o.Exit(t.Context())
}

// The watchdog expels an owner whose loss is just being reported: the queue continues.
func TestDriver_ExpelBesideLost(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), nil)
	k := p.Key("k", p.set)
	defer k.Done()
	o := &Owner{Stay: queue.Stay{Goroutine: 7, Kind: queue.NoNotify}, Holder: notify(func(*Loss) { k.Held().Expel() })}
	if err := k.Acquire(t.Context(), o, nil); err != nil {
		t.Fatal(err)
	}
	o.g.Lease().Lose(renewal.Cause{Reason: renewal.ReasonGone})
	ctx, cancel := context.WithTimeout(t.Context(), pace.Hang)
	defer cancel()
	next := &Owner{Stay: queue.Stay{Kind: queue.Refusable}}
	if err := k.Acquire(ctx, next, nil); err != nil {
		t.Fatalf("%v, state %v", err, k.q.Word().State())
	}
	mustRelease(t, next)
}
