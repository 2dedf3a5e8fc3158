package anteroom_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// mindful makes a client on which an uncontended Lock stays on its caller's goroutine.
func mindful(o *redis.Options) { o.ContextTimeoutEnabled = true }

// mindfulClient is client with that option.
func (s *embedded) mindfulClient() *redis.Client {
	o := *s.client().Options()
	mindful(&o)
	c := redis.NewClient(&o)
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestUncontendedLockCosts: exactly two commands and a bounded number of allocations.
func TestUncontendedLockCosts(t *testing.T) {
	s := testredis.Start(t)
	var renewals atomic.Int64 // a hold that a loaded machine makes old is renewed, and tracked
	m, _ := manager(t, s.Client(t, mindful), anteroom.Config{
		Observer: &observe.Observer{Renewed: func(string, observe.Outcome, time.Duration) { renewals.Add(1) }},
	})
	mu := m.Mutex("k")
	pass(mu)
	const runs, tries = 200, 5
	before := s.Stats(t)["evalsha"]
	allocs := math.Inf(1)
	for range tries { // others of the process allocate, too
		allocs = min(allocs, testing.AllocsPerRun(runs, func() { pass(mu) }))
	}
	if got := s.Stats(t)["evalsha"] - before; got != 2*tries*(runs+1)+renewals.Load() {
		t.Errorf("%d commands for %d pairs, and %d renewals", got, tries*(runs+1), renewals.Load())
	}
	if n := renewals.Load(); n > runs { // a loaded machine renews one now and then
		t.Errorf("%d renewals of %d holds", n, tries*(runs+1))
	}
	t.Logf("%.0f allocations a pair", allocs)
	if allocs > 16 { // 7, and what a sync.Pool drops with -race
		t.Errorf("%.0f allocations a pair", allocs)
	}
}

// TestFirstAttemptOfItsCaller_NoAnswer: the caller's own attempt ends at the command's
// limit, and others follow until there is an answer.
func TestFirstAttemptOfItsCaller_NoAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.mindfulClient(), anteroom.Config{})
		pass(m.Mutex("warm"))
		s.net.BlackHole()
		start := time.Now()
		in := make(chan struct{})
		mu := m.Mutex("k")
		go func() { mu.Lock(); close(in); mu.Unlock() }()
		time.Sleep(5 * time.Second)
		if n := len(rec.of(observe.EventUnavailable)); n != 1 {
			t.Errorf("%d events of an outage", n)
		}
		if mu.TryLock() {
			t.Error("another came in meanwhile")
		}
		s.net.Heal()
		<-in
		if waited := time.Since(start); waited > 10*time.Second {
			t.Errorf("it took %v", waited)
		}
		synctest.Wait()
		if s.Exists("k") {
			t.Error("the lock is left behind")
		}
	})
}

// TestFirstAttemptOfItsCaller_Refused: what follows a refusal is no longer the caller's.
func TestFirstAttemptOfItsCaller_Refused(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		one, _ := manager(t, s.mindfulClient(), anteroom.Config{})
		two, _ := manager(t, s.mindfulClient(), anteroom.Config{})
		one.Mutex("k").Lock()
		if two.Mutex("k").TryLock() {
			t.Fatal("two hold it")
		}
		in := make(chan struct{})
		go func() { two.Mutex("k").Lock(); close(in); two.Mutex("k").Unlock() }()
		time.Sleep(time.Minute)
		select {
		case <-in:
			t.Fatal("two hold it")
		default:
		}
		start := time.Now()
		one.Mutex("k").Unlock()
		<-in
		if waited := time.Since(start); waited > 100*time.Millisecond {
			t.Errorf("notified of the release only after %v", waited)
		}
		synctest.Wait()
	})
}

// TestFirstAttemptOfItsCaller_Close: Close cannot call the attempt off, but it ends by
// itself within a command's limit, and its caller does not come in.
func TestFirstAttemptOfItsCaller_Close(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.mindfulClient(), anteroom.Config{})
		pass(m.Mutex("warm"))
		s.net.BlackHole()
		ended := make(chan error, 1)
		go func() { _, err := m.Mutex("k").Acquire(bg); ended <- err }()
		time.Sleep(100 * time.Millisecond)
		ctx, cancel := context.WithTimeout(bg, 10*time.Millisecond)
		defer cancel()
		start := time.Now()
		_ = m.Close(ctx)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("Close took %v", took)
		}
		if err := <-ended; !errors.Is(err, anteroom.ErrClosed) {
			t.Errorf("Acquire: %v", err)
		}
	})
}

// TestLaterAttemptsAreCarriedToo: what is stated after the release of a foreign client needs no
// further goroutine on its way either, since a hand-over waits for it.
func TestLaterAttemptsAreCarriedToo(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		s.HSet("k", "foreign", "1") // who calls nobody
		s.SetTTL("k", time.Hour)
		seen := &stacks{}
		o := *s.client().Options()
		o.Dialer = seen.dialer(s.net.Dial)
		rdb := redis.NewClient(&o)
		t.Cleanup(func() { _ = rdb.Close() })
		m, _ := manager(t, rdb, anteroom.Config{})
		mu := m.Mutex("k")
		done := make(chan struct{})
		go func() { defer close(done); pass(mu) }()
		time.Sleep(100 * time.Millisecond) // it is in line, and listens for the foreign holder's release
		seen.forget()
		s.Del("k")
		s.Publish("lock:release:k", `{"lockKey":"k","releaseTime":1,"holder":"foreign"}`)
		<-done
		if got := seen.forget(); len(got) == 0 || !strings.Contains(got[0], "(*Key).sendNext(") {
			t.Errorf("the command after the release was not sent by who has heard of it: %q", got)
		}
	})
}

// stacks notes who writes scripts to connections.
type stacks struct {
	mu   sync.Mutex
	list []string // guarded by mu
}

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

func (s *stacks) dialer(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return noted{c, s}, err
	}
}

type noted struct {
	net.Conn
	by *stacks
}

func (n noted) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("evalsha")) {
		n.by.mu.Lock()
		n.by.list = append(n.by.list, string(debug.Stack()))
		n.by.mu.Unlock()
	}
	return n.Conn.Write(b)
}

func (s *stacks) forget() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.list = nil
	return list
}
