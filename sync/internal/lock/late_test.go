package lock

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// lateAnswers is a hook by which each answer takes so long.
type lateAnswers struct{ by atomic.Int64 }

func (*lateAnswers) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *lateAnswers) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer time.Sleep(time.Duration(h.by.Load()))
		return next(ctx, cmd)
	}
}

func (h *lateAnswers) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		defer time.Sleep(time.Duration(h.by.Load()))
		return next(ctx, cmds)
	}
}

// P13: a try is one acquire. Where its answer leaves too little of the lock to rely on, the lock is given back.
func TestLate_P13_ATryIsOneAcquire_Lab(t *testing.T) {
	t.Parallel()
	brief := stretchedBy(Lease{For: 300 * time.Millisecond, Period: 100 * time.Millisecond, Margin: 30 * time.Millisecond})
	fixed := stretchedBy(Lease{For: 100 * time.Millisecond, Period: -1, Margin: 10 * time.Millisecond})
	for name, c := range map[string]struct {
		timeout, late time.Duration
		lease         Lease
		fixed         *Lease
	}{
		"half the call lease":      {timeout: pace.Scale(time.Second), late: 900 * time.Millisecond},
		"more than the call lease": {timeout: pace.Scale(5 * time.Second), late: 2500 * time.Millisecond},
		"nearly a brief lease":     {timeout: brief.For * 10 / 3, late: brief.For - brief.Margin*2/3, lease: brief},
		"more than a fixed lease":  {timeout: fixed.For * 10, late: fixed.For * 12 / 10, fixed: &fixed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, client := fresh(t)
			rdb, h := client(), &lateAnswers{}
			rdb.AddHook(h)
			p := newParty(t, rdb, func(s *Settings) {
				longLease(s)
				s.Timeout = c.timeout
				if c.lease.For > 0 {
					s.Lease = c.lease
				}
			})
			warm := p.mustAcquire(t, "k")
			eventually(t, "renewed", func() bool { return warm.g.lease.Renewals() > 0 })
			mustRelease(t, warm)
			k := p.Key("k", p.set)
			defer k.Done()
			h.by.Store(int64(c.late))
			ctx, cancel := context.WithTimeout(t.Context(), 4*c.late+pace.Scale(time.Second))
			defer cancel()
			begin := time.Now()
			o := &Owner{Stay: queue.Stay{Kind: queue.Try | queue.Refusable}, Holder: notify(func(*Loss) {})}
			err := k.Acquire(ctx, o, c.fixed)
			if d := time.Since(begin); err == nil || !pace.Within(d, 3*c.late+500*time.Millisecond) { // the acquire, the fixed lease, its release
				t.Errorf("%v after %v, each answer after %v", err, d, c.late)
			}
			h.by.Store(0)
			if err == nil {
				o.Exit(t.Context())
			}
			mustRelease(t, p.mustAcquire(t, "k"))
		})
	}
}

// The watchdog takes the lock from an owner in the moment in which that one releases it: nobody waits for anybody then.
func TestLate_AReleaseBesideARevocation(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), longLease)
	o := p.mustAcquire(t, "k")
	k, g := o.g.k, o.g
	k.refs.Add(1)
	defer k.Done()
	// Held.release, whose lease the loss has ended before, up to its sendAsync.
	exits(t, o, false, queue.Final)
	g.lease.End()
	k.q.Shrink(0)
	g.exited()
	g.Lost(renewal.Cause{Reason: renewal.ReasonWatchdog, Deadline: g.lease.Deadline()})
	o.abandon()
	k.sendAsync()
	begin := time.Now()
	eventually(t, "settled", func() bool { return !k.Leaves() })
	if d := time.Since(begin); d > beforeTheLease {
		t.Errorf("nothing was stated for %v", d)
	}
}

// The same while the owner is being notified, which has begun before.
func TestLate_AReleaseBesideANotification(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), longLease)
	k := p.Key("k", p.set)
	defer k.Done()
	o := &Owner{Stay: queue.Stay{Kind: queue.NoNotify}}
	o.Holder = notify(func(*Loss) {
		exits(t, o, false, queue.Final)
		k.q.Shrink(0)
		o.g.exited()
	})
	if err := k.Acquire(t.Context(), o, nil); err != nil {
		t.Fatal(err)
	}
	o.g.lease.End()
	o.g.Lost(renewal.Cause{Reason: renewal.ReasonWatchdog, Deadline: o.g.lease.Deadline()})
	o.abandon()
	k.sendAsync()
	begin := time.Now()
	eventually(t, "settled", func() bool { return !k.Leaves() })
	if d := time.Since(begin); d > beforeTheLease {
		t.Errorf("nothing was stated for %v", d)
	}
}

// A loss that was concluded before an exit, and is notified after it, is that owner's: its release says so.
func TestLate_ALossThatAnExitOvertakes(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), nil)
	for _, d := range []time.Duration{0, time.Minute} { // the exit may leave the lock to somebody
		o := p.mustAcquire(t, "k")
		open := busyLoop(t, p)
		if d > 0 {
			o.Bequeath("ticket", d)
		}
		o.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonWatchdog})
		if r := o.Exit(t.Context()); r.Lost == nil {
			t.Errorf("%+v", r)
		}
		open()
		eventually(t, "the loss is reported", func() bool {
			p.rep.mu.Lock()
			defer p.rep.mu.Unlock()
			return len(p.rep.losses) == 2
		})
		if ttl := client().PTTL(t.Context(), "k").Val(); ttl > p.set.Lease.For {
			t.Errorf("it is left to the ticket for %v", ttl)
		}
		p.rep.mu.Lock()
		if p.rep.losses[1].AnyOwner() != o {
			t.Error("nobody had the lock, though the release of its owner says that it was lost")
		}
		p.rep.losses = nil
		p.rep.mu.Unlock()
	}
}

// Once an exit has returned, the lease has ended, also where its caller has not awaited the release.
func TestLate_AnExitThatIsLeftHasEndedTheLease(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb, h := client(), &lateAnswers{}
	rdb.AddHook(h)
	p := newParty(t, rdb, nil)
	for range 200 {
		o := p.mustAcquire(t, "k")
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for range rand.IntN(300) {
				_ = ctx.Err()
			}
			cancel()
		}()
		if r := o.Exit(ctx); r.Unknown && o.g.lease.State() == renewal.StateActive {
			t.Error("it is still renewed")
		}
		cancel()
	}
}

// What was said of a lock to be gone is verified of the fixed lease, too, that replaces its lease in that moment.
func TestLate_AForcedReleaseBesideAFixedLease(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), nil)
	for _, deleted := range []bool{true, false} {
		o := p.mustAcquire(t, "k")
		if deleted {
			rdb.Del(t.Context(), "k")
		}
		sent := time.Now()
		o.g.force.Store(int64(p.now()))
		if !o.g.fix(&Lease{For: time.Minute, Period: -1}, sent) {
			t.Fatal("lost before")
		}
		lease := o.g.lease
		eventually(t, "verified", func() bool { return !o.g.said() || o.g.Loss() != nil })
		if l := o.g.Loss(); deleted && (l == nil || l.Reason != renewal.ReasonForced) {
			t.Errorf("deleted: %v", l)
		}
		if !deleted && !lease.Valid(p.leases.Now()) {
			t.Error("a message that anybody can send ended it")
		}
		o.Exit(t.Context())
	}
}

// Anybody can say that a lock was deleted on purpose. Once a renewal that was sent since has found it, no later loss is a forced one,
// and it lingers as before.
func TestLate_AForcedReleaseThatARenewalRefutes(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := lingers(t, client(), 10*time.Second)
	k := p.Key("k", p.set)
	defer k.Done()
	o, _ := enter(t, p, k)
	g, renewals := o.g, uint32(0)
	renewed := func() bool { return g.lease.Renewals() > renewals }
	eventually(t, "the call lease was renewed", renewed)
	renewals = g.lease.Renewals()
	p.Heard(lettucecompat.Message{Kind: lettucecompat.MessageForced, Key: "k", N: g.n})
	eventually(t, "it was renewed", renewed)
	o.Exit(t.Context())
	if !g.lingers() {
		t.Error("it does not linger any more")
	}
	o, lost := enter(t, p, k)
	rdb.Del(t.Context(), "k")
	o.g.lease.Hurry()
	if l := <-lost; l.Reason != renewal.ReasonGone {
		t.Errorf("lost: %v", l.Reason)
	}
	o.Exit(t.Context())
}

// A message that a renewal has refuted does not stand for the next one: once nothing renews the lock, that is asked about.
func TestLate_AForcedReleaseAfterOneThatWasRefuted(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), nil)
	o := p.mustAcquire(t, "k")
	g, renewals := o.g, uint32(0)
	renewed := func() bool { return g.lease.Renewals() > renewals }
	eventually(t, "the call lease was renewed", renewed)
	eventually(t, "Redis says when it vanishes", func() bool { return g.k.tracked.Load() != nil })
	untrack(g) // here it does not
	renewals = g.lease.Renewals()
	forced := lettucecompat.Message{Kind: lettucecompat.MessageForced, Key: "k", N: g.n}
	p.Heard(forced)
	eventually(t, "it was renewed", renewed)
	if !g.StopRenewing(o) {
		t.Fatal("it is not renewed")
	}
	rdb.Del(t.Context(), "k")
	p.Heard(forced)
	eventually(t, "it is lost", func() bool { return g.Loss() != nil })
	if l := g.Loss(); l.Reason != renewal.ReasonForced {
		t.Errorf("lost: %v", l.Reason)
	}
	o.Exit(t.Context())
}

// An exit beside a loss that was just concluded leaves no pause for a mark that is not there.
func TestLate_AMarkBesideALoss(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), func(s *Settings) {
		s.MinHold = time.Minute
		s.Lease.Period = s.Lease.For / 2
	})
	k := p.Key("k", p.set)
	defer k.Done()
	done := make(chan struct{})
	o := &Owner{Stay: queue.Stay{Kind: queue.Refusable}}
	o.Holder = notify(func(*Loss) {
		o.Exit(context.Background())
		close(done)
	})
	if err := k.Acquire(t.Context(), o, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "renewed", func() bool { return o.g.lease.Renewals() > 0 })
	rdb.Del(t.Context(), "k")
	o.g.lease.Hurry()
	<-done
	begin := time.Now()
	time.Sleep(50 * time.Millisecond)
	if o, err := p.acquire(t.Context(), "k", queue.Try); err != nil {
		t.Errorf("EXISTS %d, try: %v", rdb.Exists(t.Context(), "k").Val(), err)
	} else {
		o.Exit(t.Context())
		rdb.Del(t.Context(), "k") // its mark
	}
	next := p.mustAcquire(t, "k")
	if d := time.Since(begin); d > beforeTheLease { // its mark, if there were one, ends much later
		t.Errorf("the key was free for %v", d)
	}
	rdb.Del(context.Background(), "k")
	next.Exit(t.Context())
}

// What a waiter that gave up in an outage may have left is no release that nobody confirms.
func TestLate_WhoWaitsGivesNothingUp(t *testing.T) {
	t.Parallel()
	s, client := fresh(t)
	p := newParty(t, client(), func(s *Settings) {
		s.Timeout = pace.Scale(50 * time.Millisecond)
		s.Lease = stretchedBy(Lease{For: 300 * time.Millisecond, Period: 100 * time.Millisecond, Margin: 30 * time.Millisecond})
	})
	mustRelease(t, p.mustAcquire(t, "k"))
	s.Pause()
	ctx, cancel := context.WithTimeout(context.Background(), p.set.Lease.For*10/3)
	defer cancel()
	_, err := p.acquire(ctx, "k", 0)
	for p.unsettled.Load() > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	p.rep.mu.Lock()
	n := p.rep.givenUp
	p.rep.mu.Unlock()
	if err == nil || n > 0 {
		t.Errorf("%v, and %d releases are said to be given up", err, n)
	}
	s.Resume()
}

// The mark of a release that is not stated yet stays, whatever is heard meanwhile.
func TestLate_TheMarkOfAReleaseToCome(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), func(s *Settings) { s.MinHold = time.Minute })
	o := p.mustAcquire(t, "k")
	k := o.g.k
	mark := k.l.now() + time.Minute
	k.mu.Lock() // as Held.release does where the loss has been concluded, before its sendAsync
	o.g.mark = mark
	k.mu.Unlock()
	k.handle(conversation.Event{Kind: conversation.Retry})
	k.mu.Lock()
	got := o.g.mark
	k.mu.Unlock()
	if got != mark {
		t.Errorf("the mark is %v, want %v", got, mark)
	}
	mustRelease(t, o)
}

// gaveUpPlace has p wait for k, which q holds, and give up. It returns k, settled and with a reference, as a message that is
// just coming in has one, and the number of its place.
func gaveUpPlace(t *testing.T) (p *party, k *Key, n uint64) {
	_, client := fresh(t)
	p = newParty(t, client(), longLease)
	q := newParty(t, client(), longLease)
	o := q.mustAcquire(t, "k")
	k = p.Key("k", p.set)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		gone <- k.Acquire(ctx, &Owner{Stay: queue.Stay{Kind: queue.Refusable}, Holder: notify(func(*Loss) {})}, nil)
	}()
	awaitPlace(t, client(), 1)
	eventually(t, "its place is known", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		n = k.conv.LastCommand().N
		return k.conv.State == conversation.Waiting
	})
	cancel()
	if err := <-gone; err == nil {
		t.Fatal("admitted")
	}
	eventually(t, "settled", func() bool { return p.unsettled.Load() == 0 })
	mustRelease(t, o)
	return p, k, n
}

// What Close has seen settled stays so: the call of a place that was given up may come only then.
func TestLate_ACallAfterClose(t *testing.T) {
	p, k, n := gaveUpPlace(t)
	p.BeginClose()
	if lost, unsettled := p.Settle(t.Context()); len(lost)+unsettled > 0 {
		t.Fatalf("%d lost, %d unsettled", len(lost), unsettled)
	}
	number := p.number.Load()
	p.Heard(lettucecompat.Message{Kind: lettucecompat.MessageCalled, Key: "k", N: n, Units: 1})
	if k.Leaves() || p.unsettled.Load() != 0 || p.number.Load() != number {
		t.Errorf("releases %v, %d unsettled, %d commands", k.Leaves(), p.unsettled.Load(), p.number.Load()-number)
	}
	if k.Done(); !k.Over() {
		t.Error("the key stays in use")
	}
}

// A call that is taken in beside Close is cleaned up before that ends, though nothing was stated yet.
func TestLate_ACallBesideClose(t *testing.T) {
	p, k, n := gaveUpPlace(t)
	p.BeginClose()
	k.handle(conversation.Event{Kind: conversation.Called, N: n, Record: n, Units: 1, Lease: k.set.times.Call}) // as Locks.Heard does, before its sendAsync
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if lost, unsettled := p.Settle(ended); len(lost) != 0 || unsettled != 1 {
		t.Errorf("%d lost, %d unsettled", len(lost), unsettled)
	}
	k.sendAsync()
	if lost, unsettled := p.Settle(t.Context()); len(lost)+unsettled > 0 || k.Leaves() {
		t.Errorf("%d lost, %d unsettled, releases %v", len(lost), unsettled, k.Leaves())
	}
	k.Done()
}

// A confirmation finds nothing of what its call has brought, and what nobody wanted any more: the key can be used again.
func TestLate_WhatNobodyTookIsGone(t *testing.T) {
	_, client := fresh(t)
	p, q := newParty(t, client(), longLease), newParty(t, client(), longLease)
	o := q.mustAcquire(t, "k")
	k := p.Key("k", p.set)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := make(chan error, 1)
	go func() {
		gone <- k.Acquire(ctx, &Owner{Stay: queue.Stay{Kind: queue.Refusable}, Holder: notify(func(*Loss) {})}, nil)
	}()
	awaitPlace(t, client(), 1)
	var n uint64
	var cmd conversation.Command // which is not sent
	eventually(t, "its place is confirmed", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.conv.State != conversation.Waiting || k.conv.Unanswered() {
			return false
		}
		n = k.conv.LastCommand().N
		k.conv, _ = k.conv.Handle(conversation.Event{Kind: conversation.Retry}, k.l.moment())
		cmd = k.nextLocked()
		return cmd.N > 0
	})
	cancel()
	if err := <-gone; err == nil {
		t.Fatal("admitted")
	}
	k.handle(conversation.Event{Kind: conversation.Called, N: n, Record: n, Units: 1, Lease: k.set.times.Call})
	k.apply(conversation.Event{Kind: conversation.HasNot, N: cmd.N}, &cmd, &lettucecompat.Answer{Word: lettucecompat.WordGone})
	k.sendAsync()
	p.landed()
	mustRelease(t, o)
	eventually(t, "settled", func() bool { return p.unsettled.Load() == 0 })
	k.Done()
	mustRelease(t, p.mustAcquire(t, "k"))
}

// The pause after a lease that no replica confirms grows up to a bound, however long that lasts.
func TestLate_ThePauseWithoutReplicasIsBounded(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), func(s *Settings) {
		longLease(s)
		s.Replicas, s.ReplicaTimeout = 1, 10*time.Millisecond
	})
	k := p.Key("k", p.set)
	defer k.Done()
	for range 9 {
		k.mu.Lock()
		k.retryAt = 0
		k.mu.Unlock()
		if _, err := p.acquire(t.Context(), "k", queue.Try); err == nil {
			t.Fatal("it was secured")
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.retries < 1 || k.retries > 6 {
		t.Errorf("%d retries", k.retries)
	}
}

// The first renewal of each unit that nobody has entered is a brief one: what the unit before needed is forgotten.
func TestLate_ABriefRenewalForEachUnit(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), longLease)
	k := p.Key("k", p.set)
	defer k.Done()
	k.mu.Lock()
	k.longer = true // as after a renewal of a unit that was not enough
	k.mu.Unlock()
	mustRelease(t, p.mustAcquire(t, "k"))
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.longer {
		t.Error("the next unit would be renewed for a whole lease")
	}
}
