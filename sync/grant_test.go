package anteroom

import (
	"context"
	"errors"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// granted returns an entry whose grant was sent at sent, without a queue or a driver.
func granted(t *testing.T, cfg LockConfig, sent time.Time, token int64) (*entry, *grant) {
	t.Helper()
	m := insideManager(t, Config{})
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // the grants of these tests are released by nobody
		_ = m.Close(ctx)
	})
	e, err := m.use(insideConfig(t, m, cfg))
	if err != nil {
		t.Fatal(err)
	}
	g := &grant{e: e, n: m.nextGrant.Add(1), terms: &e.terms}
	if !g.begin(sent, g.terms.lease, token, false) {
		return e, nil
	}
	return e, g
}

// Whoever is woken looks at the clock before it comes in, and not at what was told.
func TestGrant_IsNotTakenAtItsDeadline(t *testing.T) {
	e, g := granted(t, LockConfig{Key: "k"}, time.Now(), 0)
	last, now := g.deadline().Sub(e.m.leases.Zero()), e.m.leases.Now()
	if g.admit(new(tenure), &request{terms: &e.terms}, last) {
		t.Error("a grant was taken at its deadline")
	}
	if !g.admit(new(tenure), &request{terms: &e.terms}, last-1) {
		t.Error("a grant was not taken just before its deadline")
	}
	other := e.terms
	other.period = -1
	if g.admit(new(tenure), &request{terms: &other}, now) {
		t.Error("a waiter who wants a fixed lease took a renewed one")
	}
	g.unrenewed.Store(true)
	if g.admit(new(tenure), &request{terms: &e.terms}, now) {
		t.Error("a grant whose renewal was stopped was taken")
	}
}

// The lease counts from before the acquire was sent, and an answer that comes after its
// deadline is no grant.
func TestGrant_CountsFromTheSend(t *testing.T) {
	sent := time.Now().Add(-5 * time.Second)
	_, g := granted(t, LockConfig{Key: "k", LeaseTime: 30 * time.Second, Margin: time.Second}, sent, 0)
	if got := g.deadline().Sub(sent); got < 29*time.Second-time.Millisecond || got > 29*time.Second+time.Millisecond {
		t.Errorf("the deadline is %v after the send, want 29s", got)
	}
	if _, g := granted(t, LockConfig{Key: "k", LeaseTime: 30 * time.Second, Margin: time.Second}, time.Now().Add(-29*time.Second), 0); g != nil {
		t.Error("an answer after the deadline is a grant")
	}
}

// Each reason for which a grant is not passed on, alone.
func TestGrant_MayHandOff(t *testing.T) {
	cfg := LockConfig{Key: "k", LeaseTime: 30 * time.Second, MaxHandoffs: 10, MaxHandoffTime: time.Second}
	fresh := func(change func(*LockConfig), token int64) *grant {
		c := cfg
		if change != nil {
			change(&c)
		}
		_, g := granted(t, c, time.Now(), token)
		return g
	}
	check := func(what string, g *grant, handOffs int, after time.Duration, want bool) {
		t.Helper()
		if got := g.mayHandOff(handOffs, g.turn+after); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	g := fresh(nil, 0)
	check("a healthy grant", g, 9, 999*time.Millisecond, true)
	check("the budget is used up", g, 10, 0, false)
	check("the time is over", g, 0, time.Second, false)
	g = fresh(nil, 0)
	g.e.metStranger(g.turn)
	check("beside strangers", g, strangerHandOffs-1, 0, true)
	check("beside strangers, often enough", g, strangerHandOffs, 0, false)
	g.turn += strangerTime + time.Second
	check("strangers of long ago", g, strangerHandOffs, 0, true)
	g.unrenewed.Store(true)
	check("the renewal was stopped", g, 0, 0, false)
	check("a fixed lease", fresh(func(c *LockConfig) { c.RenewalTime = -1 }, 0), 0, 0, false)
	g = fresh(func(c *LockConfig) { c.MinHold = 100 * time.Millisecond }, 0)
	check("before MinHold is over", g, 0, 99*time.Millisecond, false)
	check("after MinHold", g, 0, 101*time.Millisecond, true)
	g = fresh(func(c *LockConfig) { c.MaxHandoffTime = time.Hour }, 0)
	check("half of the lease is left", g, 0, 13*time.Second, true)
	check("less than half is left", g, 0, 14*time.Second, false)
	g = fresh(nil, 1)
	check("tokens behind the clock", g, 9, 10*time.Microsecond, true)
	check("tokens as fast as the clock", g, 9, 9*time.Microsecond, false)
	g = fresh(nil, 0)
	g.lease.Load().Lose(renewal.Cause{Reason: renewal.ReasonGone})
	check("lost", g, 0, 0, false)
	g = fresh(nil, 0)
	g.e.m.closing.Store(true)
	check("the Manager closes", g, 0, 0, false)
	g.e.m.closing.Store(false)
}

// A notice that comes before the grant's own answer is kept for it.
func TestGrant_ForcedBeforeItsAnswer(t *testing.T) {
	e, g := granted(t, LockConfig{Key: "k"}, time.Now(), 0)
	next := g.n + 1
	e.m.forced("k", lettucecompat.NewField(e.m.cfg.ClientID, next))
	forced := &grant{e: e, n: next, terms: &e.terms}
	if !forced.begin(time.Now(), forced.terms.lease, 0, false) || forced.valid(e.m.leases.Now()) {
		t.Error("a grant that was released by force is valid")
	}
	if !g.valid(e.m.leases.Now()) {
		t.Error("another grant was struck")
	}
}

// What is lost at its deadline is not removed before the lease that Redis has confirmed.
func TestField_F2_ALostFieldWaitsForItsLease(t *testing.T) {
	now := time.Now()
	over := now.Add(time.Second)
	f := field{lease: 10 * time.Second, timeout: time.Second}
	f.granted(false)
	if !f.lost(LostDeadline, now, over, true, false) {
		t.Fatal("nothing is left to remove")
	}
	if since, left := f.due(now); !left || !since.Equal(over) {
		t.Errorf("removed %v after the loss, want 1s", since.Sub(now))
	}
	if f.droppable(over.Add(-1)) || !f.droppable(over) {
		t.Error("an attempt drops it at another moment")
	}
}

// A release without an answer, sent in time, may have done it: the repeat that finds
// nothing says released. One that was sent too late may not.
func TestField_F4_TheRepeatThatFindsNothing(t *testing.T) {
	now := time.Now()
	for in, want := range map[time.Duration]bool{-time.Second: true, time.Second: false} {
		f := field{lease: 10 * time.Second, timeout: time.Second, deadline: now}
		f.granted(false)
		f.burn(now, now)
		f.released(lettucecompat.ReleaseReply{Outcome: lettucecompat.OutcomeUnknown}, now.Add(in))
		f.released(lettucecompat.ReleaseReply{Outcome: lettucecompat.OutcomeGone}, now.Add(2*time.Second))
		if !f.confirmed || f.ours != want {
			t.Errorf("sent %v after the deadline: released %v, want %v", in, f.ours, want)
		}
	}
}

// An attempt has removed the grant, and its answer comes after that of a release that
// found nothing. An acquire that has no answer yet is not what was removed: it may land.
func TestField_F1_TheFirstRemovalIsTheGrants(t *testing.T) {
	now := time.Now()
	f := field{lease: 10 * time.Second, timeout: time.Second}
	f.unanswered(now)
	f.granted(false)
	f.burn(now, now)
	f.sending() // the attempt that names it
	f.sending() // the release
	f.released(lettucecompat.ReleaseReply{Outcome: lettucecompat.OutcomeGone}, now)
	f.returned()
	f.attempted(true, true, false, now)
	f.returned()
	if _, left := f.due(now); !left {
		t.Error("forgotten, although an acquire of it may land")
	}
}

// Attempts wait until the turn of other processes is over.
func TestDriver_HoldsBack(t *testing.T) {
	m := insideManager(t, Config{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	defer func() { _ = m.Close(ctx) }()
	e, err := m.use("k", m.defaults)
	if err != nil {
		t.Fatal(err)
	}
	e.q.Enter(&queue.Waiter{})
	until := time.Now().Add(50 * time.Millisecond)
	e.notBefore = e.m.leases.Glance() + time.Until(until)
	e.beginJob()
	e.drive()
	if e.q.Word().State() != queue.Granted || time.Now().Before(until) {
		t.Error("an attempt was made in the turn of others")
	}
}

// A driver listens for those who wait, and not for one who only tries: its subscription would count as a program that
// waits, and a release would leave the lock to it for a moment, so that the next try would be refused beside a free
// lock.
func TestDriver_ATryDoesNotListen(t *testing.T) {
	m, s := insideServer(t, Config{})
	ctx := context.Background()
	defer func() { _ = m.Close(ctx) }()
	s.HSet("k", "somebody:1", "1")
	for kind, listens := range map[queue.Kind]bool{queue.Try | queue.Refusable: false, queue.Refusable: true} {
		e, err := m.use("k", m.defaults)
		if err != nil {
			t.Fatal(err)
		}
		w := &queue.Waiter{Kind: kind}
		e.q.Enter(w)
		e.beginJob()
		d := newDriver(e)
		if d.try(ctx) {
			t.Fatal("two hold it")
		}
		if got := d.watch != nil; got != listens {
			t.Errorf("%v: listens: %v", kind, got)
		}
		e.q.Fail(ErrClosed)
		_, _ = e.q.Wait(ctx, w)
		if !d.done() {
			t.Error("somebody waits still")
		}
		d.end()
		e.unref()
	}
}

// What an earlier attempt has said of when to ask again ends with the next one, also where that
// was made before its time, for a head with another lease that only tried.
func TestDriver_AnAttemptForgetsTheOneBefore(t *testing.T) {
	m, s := insideServer(t, Config{})
	ctx := context.Background()
	defer func() { _ = m.Close(ctx) }()
	s.HSet("k", "somebody:1", "1")
	e, err := m.use("k", m.defaults)
	if err != nil {
		t.Fatal(err)
	}
	other := e.terms
	other.lease = time.Minute
	try := &queue.Waiter{Kind: queue.Try | queue.Refusable, Note: &other}
	e.q.Enter(try)
	e.beginJob()
	d := newDriver(e)
	d.g = e.newGrant(&e.terms) // of a head that has given up
	d.refused, d.next = true, time.Now().Add(lastPoll)
	if d.fits() || d.try(ctx) {
		t.Fatal("the head has other terms, and the lock is held")
	}
	if d.refused {
		t.Error("who waits behind the try would wait for what another one was told")
	}
	if _, err := e.q.Wait(ctx, try); !errors.Is(err, queue.ErrRefused) || !d.done() {
		t.Errorf("the try: %v", err)
	}
	d.end()
	e.unref()
}

// A try that queues behind a waiter which was given back, while a turn ends, is owed an answer, too.
func TestDriver_AskedForATryBehindTheHead(t *testing.T) {
	for tries, asks := range map[bool]bool{false: false, true: true} {
		m := insideManager(t, Config{})
		ctx := context.Background()
		e, err := m.use("k", m.defaults)
		if err != nil {
			t.Fatal(err)
		}
		first := &queue.Waiter{Kind: queue.Refusable, Note: &e.terms}
		e.q.Enter(first) // Acquiring, by a driver that this test plays
		e.q.Granted(7)
		if _, err := e.q.Wait(ctx, first); err != nil {
			t.Fatal(err)
		}
		e.q.Lose(7)
		second := &queue.Waiter{Kind: queue.Refusable, Note: &e.terms}
		if tries {
			second.Kind |= queue.Try
		}
		e.q.Enter(second)
		e.q.GiveBack(first) // before it
		g := e.newGrant(&e.terms)
		a := m.want(g)
		e.mu.Lock()
		g.stands(a, 1, "somebody:1000000000000001", time.Minute)
		e.mu.Unlock()
		e.follow(g)
		e.beginJob()
		d := newDriver(e)
		if d.refused == asks {
			t.Errorf("a try behind the head: %v, it asks at once: %v", tries, !d.refused)
		}
		e.q.Fail(ErrClosed)
		_, _ = e.q.Wait(ctx, first)
		_, _ = e.q.Wait(ctx, second)
		d.done()
		d.end()
		e.unref()
		_ = m.Close(ctx)
	}
}

// An attempt removes burnt fields of this process in its own script.
func TestDriver_OwnLeftoversAreDropped(t *testing.T) {
	e, _ := granted(t, LockConfig{Key: "k"}, time.Now(), 0)
	ctx := context.Background()
	left := lettucecompat.NewField(e.m.cfg.ClientID, 99)
	got := e.m.wire.TryAcquire(ctx, lettucecompat.AcquireRequest{Key: "k", Field: left, Lease: time.Minute})
	if got.Outcome != lettucecompat.OutcomeOK {
		t.Fatal(got.Err)
	}
	f := field{lease: time.Minute, timeout: time.Second}
	f.granted(false)
	f.burn(time.Now(), time.Now())
	e.mu.Lock()
	e.burnt = map[uint64]*grant{99: {e: e, n: 99, field: &f}}
	e.mu.Unlock()
	if reply, _ := (&driver{e: e}).send(e.m.ctx); reply.Outcome != lettucecompat.OutcomeOK {
		t.Errorf("the attempt was answered %v, by a leftover of our own", reply.Outcome)
	}
}

// A context that belongs to a hold is asked after the deadline, before anybody has told.
func TestHold_ItsContextComparesWithTheClock(t *testing.T) {
	e, g := granted(t, LockConfig{Key: "k", LeaseTime: 200 * time.Millisecond, RenewalTime: -1}, time.Now(), 0)
	e.m.leases.Stop() // nobody tells
	h := &Hold{values: context.Background()}
	h.begin().g = g
	ctx := h.Context()
	if err := ctx.Err(); err != nil && time.Now().Before(g.deadline()) {
		t.Errorf("before the deadline: %v", err)
	}
	<-time.After(time.Until(g.deadline()))
	if ctx.Err() == nil {
		t.Error("the context of a lock that is over goes on")
	}
}

// The renewal loop may conclude a loss before install has put the lease into the grant:
// the goroutine that installs it lost its processor there until the deadline had passed.
func TestALossBeforeTheLeaseIsInTheGrant(t *testing.T) {
	m := insideManager(t, Config{})
	defer func() { _ = m.Close(context.Background()) }()
	e, err := m.use(insideConfig(t, m, LockConfig{Key: "k"}))
	if err != nil {
		t.Fatal(err)
	}
	defer e.unref()
	g := &grant{e: e, n: 1, terms: &e.terms, since: m.leases.Now()}
	e.ref() // the grant's own
	now := time.Now()
	g.Lost(renewal.Cause{Reason: renewal.ReasonDeadline, At: now, Deadline: now}) // it panics with the program
	if l := g.lossNow(); l == nil || l.Reason != LostDeadline {
		t.Errorf("the loss: %+v", l)
	}
}
