package anteroom_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// nestedUnits counts the inner holds that begin and that end.
type nestedUnits struct {
	began, ended atomic.Int64
}

func (n *nestedUnits) Acquired(_ string, o observe.Outcome, _ time.Duration) {
	if o == observe.OutcomeNested {
		n.began.Add(1)
	}
}

func (n *nestedUnits) Released(_ string, o observe.Outcome, _ time.Duration) {
	if o == observe.OutcomeNested {
		n.ended.Add(1)
	}
}

// An inner Acquire beside the outer Release: the Manager never forgets a held key, and the
// outer one is an inner exit only where there is a Hold that has the last.
func TestReenteringBesideTheOuterRelease_Lab(t *testing.T) {
	s := newEmbedded(t)
	units := new(nestedUnits)
	m, _ := manager(t, s.client(), anteroom.Config{Observer: hooks(units)})
	stop := make(chan struct{})
	var busy sync.WaitGroup
	for range 8 { // keep the mutexes of the Manager and of the entry contended
		busy.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					m.Snapshot()
				}
			}
		})
	}
	defer busy.Wait()
	defer close(stop)
	mu := m.Mutex("k")
	deadline := time.Now().Add(3 * time.Second)
	for i := 0; time.Now().Before(deadline); i++ {
		outer := acquire(t, mu)
		ctx := outer.Context()
		var inner *anteroom.Hold
		var wg sync.WaitGroup
		wg.Go(func() { inner, _ = mu.Acquire(context.WithoutCancel(ctx)) })
		wg.Go(func() { _ = outer.Release(bg) })
		wg.Wait()
		if inner != nil {
			if inner.Held() && len(m.Snapshot()) == 0 {
				t.Fatalf("round %d: held, and the Manager knows nothing of the key", i)
			}
			_ = inner.Release(bg)
		}
		if began, ended := units.began.Load(), units.ended.Load(); began != ended {
			t.Fatalf("round %d: %d inner holds began and %d ended", i, began, ended)
		}
	}
}

// TryLockFor may say no, so it does not enter a lost lock as Lock has to.
func TestTryLockForOfALostLockIsFalse(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		mu.Lock()
		_, err := m.ForceRelease(bg, "k")
		ok(t, err)
		synctest.Wait()
		if mu.TryLock() {
			t.Error("TryLock: true")
		}
		if mu.TryLockFor(time.Second) {
			t.Error("TryLockFor: true for a lock that is lost")
			mu.Unlock()
		}
		mu.Unlock()
	})
}

// The lock is lost before the watchdog knows that its goroutine has ended: the local
// queue must not stop for good.
func TestForceReleaseOfALockWhoseGoroutineHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Reentrant: true})
		var wg sync.WaitGroup
		wg.Go(mu.Lock)
		wg.Wait()
		time.Sleep(time.Second)
		_, err := m.ForceRelease(bg, "k")
		ok(t, err)
		if !mu.TryLockFor(time.Hour) {
			t.Fatalf("an hour later: %+v", m.Snapshot())
		}
		mu.Unlock()
	})
}

// Redis never answered: that is not "held by another".
func TestNoAnswerIsNotARefusal(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		ok(t, acquire(t, mu).Release(bg))
		s.net.BlackHole()
		ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
		defer cancel()
		_, err := mu.Acquire(ctx)
		var e *anteroom.Error
		errors.As(err, &e)
		if errors.Is(err, anteroom.ErrNotAcquired) || e.Outcome != observe.OutcomeUnknown {
			t.Errorf("Redis never answered, and a command may take effect: %v (%v)", err, e.Outcome)
		}
		s.net.Heal()
		time.Sleep(time.Minute)
	})
}

// A panic inside Do must not wait for the clean-up of its release.
func TestAPanicInDoComesOutSoon(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		var start time.Time
		func() {
			defer func() { _ = recover() }()
			_ = mu.Do(bg, func(context.Context) error {
				s.net.BlackHole()
				start = time.Now()
				panic("x")
			})
		}()
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("the panic came out after %v", d)
		}
		s.net.Heal()
		time.Sleep(time.Minute)
	})
}

// Extend beside Release: the hold is released then, not lost.
func TestExtendBesideReleaseIsNoLoss(t *testing.T) {
	for range 20 {
		bubble(t, func(t *testing.T, s *embedded) {
			m, _ := manager(t, s.client(), anteroom.Config{})
			var wg sync.WaitGroup
			for i := range 8 { // so many connections are open and idle then
				wg.Go(func() { ok(t, acquire(t, m.Mutex(strconv.Itoa(i))).Release(bg)) })
			}
			wg.Wait()
			h := acquire(t, m.Mutex("k"))
			ok(t, h.Extend(bg, 40*time.Second))
			time.Sleep(time.Second)
			s.net.BlackHole()
			extended := make(chan error, 1)
			go func() { extended <- h.Extend(bg, 50*time.Second) }()
			synctest.Wait()
			released := make(chan error, 1)
			go func() { released <- h.Release(bg) }()
			synctest.Wait()
			s.net.Heal()
			ok(t, <-released)
			if err := <-extended; errors.Is(err, anteroom.ErrLost) {
				t.Errorf("released, and Extend says: %v", err)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// A lock of any kind is held 255 times over at most.
func TestReentering_TheLimitIsThatOfAllKinds(t *testing.T) {
	s := newEmbedded(t)
	m, _ := manager(t, s.client(), anteroom.Config{})
	for name, acquire := range map[string]func(context.Context) (*anteroom.Hold, error){
		"Mutex":   func(ctx context.Context) (*anteroom.Hold, error) { return m.Mutex("mutex").Acquire(ctx) },
		"writer":  func(ctx context.Context) (*anteroom.Hold, error) { return m.RWMutex("writes").Acquire(ctx) },
		"readers": func(ctx context.Context) (*anteroom.Hold, error) { return m.RWMutex("reads").RAcquire(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			var holds []*anteroom.Hold
			ctx := t.Context()
			for range 255 {
				h, err := acquire(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if len(holds) == 0 {
					ctx = h.Context()
				}
				holds = append(holds, h)
			}
			if h, err := acquire(ctx); h != nil || !errors.Is(err, anteroom.ErrReentryLimit) {
				t.Errorf("the 256th: %v", err)
			}
			for _, h := range holds {
				if err := h.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
