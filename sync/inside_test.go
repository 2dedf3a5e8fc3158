package anteroom

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

func insideManager(t *testing.T, cfg Config) *Manager {
	t.Helper()
	m, _ := insideServer(t, cfg)
	return m
}

func insideServer(t testing.TB, cfg Config) (*Manager, *miniredis.Miniredis) {
	t.Helper()
	s := miniredis.NewMiniRedis()
	gate := faultnet.NewGate(s)
	t.Cleanup(gate.Close)
	rdb := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:6379", DisableIdentity: true, ReadTimeout: 5 * time.Second,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		Dialer:                   gate.Dial,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	cfg.Logger = slog.New(slog.DiscardHandler)
	m, err := NewManager(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m, s
}

func insideConfig(t *testing.T, m *Manager, cfg LockConfig) (string, *settings) {
	t.Helper()
	mu, err := m.NewMutex(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return mu.key, mu.settings
}

// A grant is lost after the queue has admitted a Lock and before settle has made it
// the grant's owner: there is no tenure to tell yet, and the waiter gives its place back.
func TestALossBetweenAdmissionAndOwnership(t *testing.T) {
	m := insideManager(t, Config{})
	defer func() { _ = m.Close(context.Background()) }()
	e, err := m.use(insideConfig(t, m, LockConfig{Key: "k"}))
	if err != nil {
		t.Fatal(err)
	}
	w := &queue.Waiter{Owner: 1, Kind: queue.Deaf, Note: &e.terms}
	_, o, _ := e.q.Enter(w)
	e.do(o)
	if _, err := e.q.Wait(context.Background(), w); err != nil {
		t.Fatal(err)
	}
	// This goroutine is descheduled here, before e.settle; the renewal loop runs:
	g := e.cur.Load()
	g.lease.Load().End() // so that the loop does not tell it a second time
	func() {
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("the renewal loop panics, and the program with it: %v", p)
			}
		}()
		g.Lost(renewal.Cause{Reason: renewal.ReasonForced, At: time.Now()})
	}()
	_, _ = m.wire.ForceRelease(context.Background(), "k") // what made the loss
	e.do(e.q.GiveBack(w))                                 // what settle does
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if o, err := e.q.Wait(ctx, w); err != nil {
		e.do(o)
		t.Fatal(err)
	}
	_, o = e.q.Exit(w.Number, false)
	e.do(o)
	e.unref()
}

// Close begins while an admitted Acquire finds that its grant is not what it
// wished for and goes back into the queue: it still ends with ErrClosed.
func TestCloseEndsAnAcquireThatGoesBack(t *testing.T) {
	m := insideManager(t, Config{})
	mu, err := m.NewMutex(LockConfig{Key: "k", MaxHandoffTime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	a, err := mu.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, err := mu.Acquire(ctx, Lease(time.Minute)) // not what the grant has: retire, GiveBack
		done <- err
	}()
	e := mu.find()
	for e.q.Len() == 0 {
		time.Sleep(time.Millisecond)
	}
	e.mu.Lock() // B stops on its way in, as if it were descheduled there
	if exit, _ := e.q.Exit(a.t.number, true); exit != queue.HandedOff {
		t.Fatalf("the lock was not passed on: %v", exit)
	}
	defer e.unref() // for a's release, which would want the mutex
	for e.q.Len() != 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
	closed := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		closed <- m.Close(ctx)
	}()
	for !m.closing.Load() {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	e.mu.Unlock()
	t.Log("Close:", <-closed)
	select {
	case err := <-done:
		if !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	case <-time.After(2 * time.Second):
		t.Error("Acquire still waits although Close has ended; nothing but its own context will ever end it")
	}
}

type slowAnswer struct {
	NopObserver
	armed atomic.Bool
	at    chan struct{}
	let   chan struct{}
}

func (s *slowAnswer) Command(name, outcome string, _ time.Duration) {
	if name == "acquire" && s.armed.CompareAndSwap(true, false) {
		close(s.at)
		<-s.let
	}
}

// Close begins when the driver of a parked Lock has its answer and has not
// installed it: the Lock must not come in any more.
func TestCloseBesideADriverWithAnAnswer(t *testing.T) {
	t.Parallel()
	obs := &slowAnswer{at: make(chan struct{}), let: make(chan struct{})}
	m := insideManager(t, Config{Observer: obs})
	mu, err := m.NewMutex(LockConfig{Key: "k", Reentrancy: NotReentrant})
	if err != nil {
		t.Fatal(err)
	}
	obs.armed.Store(true)
	in := make(chan bool, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	go func() { in <- LockUntil(ctx, mu) }()
	<-obs.at // the driver has "granted" in its hands
	closed := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		closed <- m.Close(ctx)
	}()
	for m.ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
	close(obs.let)
	err = <-closed
	if <-in { // at the latest when its time is over
		t.Errorf("Close has returned %v, and a Lock came in: held=%v, renewed by nobody", err, mu.Held())
		mu.Unlock()
	}
}

// Whoever finds a loss has ended the contexts of all Holds when it returns, also where the
// goroutine that concludes losses has noted it, or begun to end them, and was not run further.
func TestAHoldsContextHasEndedForWhoeverAsks(t *testing.T) {
	ctx := context.Background()
	m := insideManager(t, Config{})
	defer func() { _ = m.Close(ctx) }()
	mu := m.Mutex("k")
	outer, err := mu.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := mu.Acquire(outer.Context())
	if err != nil {
		t.Fatal(err)
	}
	one, two := outer.Context().(*holdContext).Context, inner.Context().(*holdContext).Context
	g, end := outer.t.g, outer.t.ctx.end
	begun, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	outer.t.ctx.end = func(cause error) {
		if !first.Swap(true) {
			close(begun)
			<-goOn // as if it were descheduled here
		}
		end(cause)
	}
	go func() {
		defer close(done)
		g.markLost(&loss{Cause: renewal.Cause{Reason: LostForced, At: time.Now()}})
	}()
	<-begun
	if inner.Err() == nil {
		t.Error("the loss is not seen")
	}
	if one.Err() == nil || two.Err() == nil {
		t.Error("Err has told the loss, and a context goes on")
	}
	close(goOn)
	<-done
	cause := context.Cause(one)
	outer.t.end(errors.New("another"))
	if !errors.Is(cause, ErrLost) || context.Cause(one) != cause || context.Cause(two) != cause { //nolint:errorlint // identity is meant
		t.Errorf("the causes are %v and %v, want the first one, %v", context.Cause(one), context.Cause(two), cause)
	}
	_, _ = inner.Release(ctx), outer.Release(ctx)
}

// The owner hears of a loss before the queue moves on, so before anybody else can get the lock.
func TestALossIsToldBeforeTheQueueMovesOn(t *testing.T) {
	ctx := context.Background()
	m := insideManager(t, Config{})
	defer func() { _ = m.Close(ctx) }()
	h, err := m.Mutex("k").Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ended := h.Context().Done()
	q, end := &h.t.g.e.q, h.t.ctx.end
	var state queue.State
	h.t.ctx.end = func(cause error) {
		state = q.Word().State()
		end(cause)
	}
	h.t.g.lease.Load().Lose(renewal.Cause{Reason: LostForced})
	<-ended
	if state != queue.Owned {
		t.Errorf("when the owner was told, the queue was %v, want %v", state, queue.Owned)
	}
	_ = h.Release(ctx)
}

// A newcomer with another lease does not take the grant from a waiter who can use it, only to give it up.
func TestANewcomerWithAnotherLeaseSparesTheGrant(t *testing.T) {
	ctx := context.Background()
	m := insideManager(t, Config{})
	defer func() { _ = m.Close(ctx) }()
	mu := m.Mutex("k")
	h, err := mu.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	e, n := h.t.g.e, h.t.g.n
	e.refs.Add(1)
	r := m.newRequest("lock", queue.Deaf, mu.settings)
	w := &r.waiter
	w.Note = r.terms
	if _, order, _ := e.q.Enter(w); order != queue.Nothing {
		t.Fatalf("order %v", order)
	}
	if err := h.Release(ctx); err != nil { // passes the grant on to w, which has not looked yet
		t.Fatal(err)
	}
	if other, err := mu.TryAcquire(ctx, Lease(20*time.Second)); !errors.Is(err, ErrNotAcquired) {
		t.Errorf("a newcomer passed the waiter: %v", err)
		_ = other.Release(ctx)
	}
	if order, err := e.q.Wait(ctx, w); err != nil || order != queue.Nothing || w.Grant != n {
		t.Errorf("the waiter got grant %d, %v, %v, want grant %d", w.Grant, order, err, n)
	}
	if !e.admit(r) {
		t.Fatal("the waiter was not admitted")
	}
	if err := e.cur.Load().placeOfLocks().exit("unlock", nil, ctx); err != nil {
		t.Error(err)
	}
}

// A Hold that was forgotten by its loss is not entered again: that would bring back an
// entry beside which the Manager has a new one.
func TestAnEndedEntryIsNotEnteredAgain(t *testing.T) {
	m := insideManager(t, Config{})
	defer func() { _ = m.Close(context.Background()) }()
	mu := m.Mutex("k")
	h, err := mu.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	e := h.t.g.e
	refs := e.refs.Swap(0) // as at the moment when the last reference has gone
	inner, err := h.reenter(context.Background(), m.newRequest("acquire", queue.Refusable, mu.settings))
	left := e.refs.Load()
	e.refs.Add(refs)
	if inner != nil || err != nil || left != 0 {
		t.Errorf("an ended entry was entered again: %v, %v, %d references", inner, err, left)
		_ = inner.Release(context.Background())
	}
	if err := h.Release(context.Background()); err != nil {
		t.Error(err)
	}
}
