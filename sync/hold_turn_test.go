package anteroom_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// late holds the reply of the next script back until it is let go.
type late struct {
	*redis.Client
	armed atomic.Bool
	at    chan struct{} // Redis has answered
	let   chan struct{}
}

func (l *late) Process(ctx context.Context, cmd redis.Cmder) error {
	err := l.Client.Process(ctx, cmd)
	if (cmd.Name() == "evalsha" || cmd.Name() == "eval") && err == nil && l.armed.CompareAndSwap(true, false) {
		close(l.at)
		<-l.let
	}
	return err
}

// The watchdog stopped the renewal because one owner held too long: the next one gets
// a grant that lives.
func TestAStoppedRenewalDoesNotStrikeTheNextOwner(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{Defaults: anteroom.LockConfig{WatchdogPeriod: time.Second}})
		mu := mutex(t, m, anteroom.LockConfig{
			Key: "k", LeaseTime: 30 * time.Second, MaxHold: time.Minute,
			WatchdogPeriod: time.Second, MaxHandoffTime: time.Hour,
		})
		a := acquire(t, mu)
		got := make(chan *anteroom.Hold)
		go func() { h, _ := mu.Acquire(bg); got <- h }()
		time.Sleep(62 * time.Second)
		if len(rec.of(observe.EventRecovery)) == 0 {
			t.Fatal("the watchdog has not acted")
		}
		ok(t, a.Release(bg))
		b := <-got
		time.Sleep(40 * time.Second) // below MaxHold
		if err := b.Err(); err != nil {
			t.Errorf("B has held for 40s of its 60s, and Redis is well: %v", err)
		}
		_ = b.Release(bg)
	})
}

// And the next one has a MaxHold of its own.
func TestEachOwnerHasItsOwnMaxHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{Defaults: anteroom.LockConfig{WatchdogPeriod: time.Second}})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", MaxHold: 20 * time.Second, WatchdogPeriod: time.Second})
		a := acquire(t, mu)
		got := make(chan *anteroom.Hold)
		go func() { h, _ := mu.Acquire(bg); got <- h }()
		time.Sleep(25 * time.Second)
		synctest.Wait()
		if len(rec.of(observe.EventRecovery)) == 0 {
			t.Fatal("the watchdog has not acted")
		}
		ok(t, a.Release(bg))
		b := <-got
		time.Sleep(5 * time.Minute)
		if b.Held() {
			t.Errorf("held for 5 minutes with MaxHold 20s, recoveries %d: %+v", len(rec.of(observe.EventRecovery)), m.Snapshot()[0].Verdicts)
		}
		_ = b.Release(bg)
	})
}

// The message of ForceRelease arrives while the turn is being extended.
func TestForceReleaseWhileATurnIsExtended(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := &late{Client: s.client(), at: make(chan struct{}), let: make(chan struct{})}
		m, _ := manager(t, l, anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		a := acquire(t, mu)
		got := make(chan *anteroom.Hold)
		go func() { h, _ := mu.Acquire(bg); got <- h }()
		time.Sleep(time.Second)
		l.armed.Store(true)
		go func() { _ = a.Release(bg) }() // the budget is over: the turn ends, and is extended
		<-l.at
		if broken, err := other.ForceRelease(bg, "k"); err != nil || len(broken) != 1 {
			t.Fatal(broken, err)
		}
		synctest.Wait()
		close(l.let)
		h := <-got
		time.Sleep(time.Second)
		if h.Held() && s.HGet("k", h.Holder()) == "" {
			t.Errorf("released by force, and still held a second later; deadline in %v", time.Until(h.Deadline()))
		}
		_ = h.Release(bg)
	})
}

// Acquires that wait for replicas must not keep releases of other locks from being sent.
func TestWaitingForReplicasDelaysNoRelease(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	m, _ := manager(t, s.Client(t, func(o *redis.Options) { o.ReadTimeout = 2 * pace.Hang }), anteroom.Config{})
	plain := m.Mutex("plain")
	h := acquire(t, plain)
	replicaTimeout := pace.Scale(3 * time.Second)
	ctx, cancel := context.WithTimeout(bg, 3*replicaTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 16 {
		mu := mutex(t, m, anteroom.LockConfig{Key: "r" + strconv.Itoa(i), Replicas: 1, LeaseTime: 20 * time.Minute, ReplicaTimeout: replicaTimeout})
		wg.Go(func() {
			if h, err := mu.Acquire(ctx); err == nil {
				_ = h.Release(bg)
			}
		})
	}
	time.Sleep(200 * time.Millisecond)
	start := time.Now()
	err := h.Release(ctx)
	if d := time.Since(start); d > replicaTimeout/2 || err != nil {
		t.Errorf("on a healthy server the release took %v: %v", d, err)
	}
	cancel()
	wg.Wait()
}
