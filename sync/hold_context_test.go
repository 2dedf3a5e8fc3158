package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
	"github.com/anteroom/anteroom/sync/observe"
)

func TestHoldFrom(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		type key struct{}
		m, _ := manager(t, s.client(), anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		if h, found := anteroom.HoldFrom(bg); found || h != nil {
			t.Fatal("a context without a Hold has one")
		}
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Fencing: true})
		outer := acquire(t, mu)
		ctx, cancel := context.WithTimeout(context.WithValue(outer.Context(), key{}, "v"), time.Hour)
		defer cancel()
		if h, found := anteroom.HoldFrom(ctx); !found || h != outer {
			t.Fatal("a context made of the Hold's does not lead to it")
		}
		ok(t, other.Mutex("other").Do(ctx, func(ctx context.Context) error {
			theirs, found := anteroom.HoldFrom(ctx)
			if !found || theirs.Key() != "other" || ctx.Value(key{}) != "v" {
				t.Error("in Do it is not the innermost, or the values are not those of the caller")
			}
			// The outer one is entered again from within, past the other Manager's.
			inner := must[*anteroom.Hold](t)(mu.TryAcquire(ctx))
			if h, _ := anteroom.HoldFrom(inner.Context()); h != inner || inner.Holder() != outer.Holder() || tokenOf(inner) != tokenOf(outer) {
				t.Error("the inner Hold is not the outer one's")
			}
			ok(t, inner.Release(ctx))
			// So it is with what is left of a Hold that was released.
			again := must[*anteroom.Hold](t)(mu.TryAcquire(context.WithoutCancel(inner.Context())))
			if again.Holder() != outer.Holder() {
				t.Error("it was acquired from Redis, beside the outer Hold")
			}
			return again.Release(ctx)
		}))
		ok(t, outer.Release(bg))
		if h, found := anteroom.HoldFrom(ctx); !found || h.Held() {
			t.Error("a released Hold is gone from its context, or held")
		}
	})
}

// So it is also with one that another goroutine is just releasing.
func TestHoldFrom_BesideARelease(t *testing.T) {
	s := newEmbedded(t)
	m, _ := manager(t, s.client(), anteroom.Config{})
	mu := m.Mutex("k")
	outer := acquire(t, mu)
	for range 20_000 {
		inner := must[*anteroom.Hold](t)(mu.Acquire(outer.Context()))
		ctx := context.WithoutCancel(inner.Context())
		done := make(chan struct{})
		go func() { _ = inner.Release(bg); close(done) }()
		again, err := mu.TryAcquire(ctx)
		<-done
		ok(t, err)
		ok(t, again.Release(bg))
	}
	ok(t, outer.Release(bg))
}

// Work that has done what needed the lock may let others in before it has ended.
func TestDoWhoseWorkReleases(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		err := m.Mutex("k").Do(bg, func(ctx context.Context) error {
			h, _ := anteroom.HoldFrom(ctx)
			ok(t, h.Release(ctx))
			if ctx.Err() == nil || !errors.Is(context.Cause(ctx), anteroom.ErrNotHeld) {
				t.Errorf("the context after the release: %v", context.Cause(ctx))
			}
			return acquire(t, m.Mutex("k")).Release(bg)
		})
		if err != nil || s.Exists("k") {
			t.Errorf("Do: %v; the key is there: %v", err, s.Exists("k"))
		}
	})
}

// An option is honoured or refused, never passed over.
func TestOptionsThatCannotBeHonoured(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		refused := func(what, field string, h *anteroom.Hold, err error) {
			t.Helper()
			var e *anteroom.Error
			if h != nil || !errors.As(err, &e) || e.Outcome != observe.OutcomeMistake || !errors.Is(err, anteroom.ErrConfig) {
				t.Errorf("%s: %v, want ErrConfig for %s", what, err, field)
			}
		}
		h, err := mu.TryAcquire(bg, anteroom.Wait(time.Second))
		refused("TryAcquire with Wait", "Wait", h, err)
		outer := acquire(t, mu)
		h, err = mu.Acquire(outer.Context(), anteroom.Lease(time.Minute))
		refused("Lease of an inner Hold", "Lease", h, err)
		inner := acquireIn(t, mu, outer, anteroom.Wait(time.Second)) // it has not to wait
		ok(t, outer.Release(bg))
		if !inner.Held() {
			t.Error("the inner Hold has gone with the outer one")
		}
		ok(t, inner.Release(bg))
		if len(m.Snapshot()) != 0 {
			t.Error("a refused acquisition has left something behind")
		}
	})
}

func acquireIn(t testing.TB, mu *anteroom.Mutex, outer *anteroom.Hold, opts ...anteroom.AcquireOption) *anteroom.Hold {
	t.Helper()
	return must[*anteroom.Hold](t)(mu.Acquire(outer.Context(), opts...))
}

func ExampleHoldFrom() {
	m := locktest.Start(anteroom.Config{})
	defer m.Stop()
	mu, err := m.NewMutex(anteroom.LockConfig{Key: "account:7", Fencing: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	// write is deep in the program and is given nothing but a context.
	write := func(ctx context.Context) error {
		hold, ok := anteroom.HoldFrom(ctx)
		if !ok {
			return errors.New("called without the lock")
		}
		token, fenced := hold.Token()
		fmt.Println("held:", hold.Held(), "with a token for the resource:", fenced && token > 0)
		return nil
	}
	fmt.Println(mu.Do(context.Background(), write))
	fmt.Println(write(context.Background()))
	// Output:
	// held: true with a token for the resource: true
	// <nil>
	// called without the lock
}

// Past the deadline the context of Do has ended with ErrLost, while Redis keeps the lock for the margin still. Do says
// the same as its context, although its release finds the lock.
func TestDo_SaysWhatItsContextSaid(t *testing.T) {
	for range 20 { // the renewal's own check of the deadline comes before the release or after it
		bubble(t, func(t *testing.T, s *embedded) {
			m, _ := manager(t, s.client(), anteroom.Config{})
			var cause error
			err := mutex(t, m, anteroom.LockConfig{Key: "k", RenewalTime: -1}).Do(bg, func(ctx context.Context) error {
				h, _ := anteroom.HoldFrom(ctx)
				time.Sleep(time.Until(h.Deadline()))
				if ctx.Err() != nil {
					cause = context.Cause(ctx)
				}
				return nil
			})
			if !errors.Is(cause, anteroom.ErrLost) || !errors.Is(err, anteroom.ErrLost) {
				t.Fatalf("the context said %v, and Do %v: want ErrLost of both", cause, err)
			}
			// The work has run, whichever of the two found the loss.
			if e, is := errors.AsType[*anteroom.Error](err); !is || e.Op != "release" {
				t.Fatalf("Do says %v, want an Error whose Op is release", err)
			}
		})
	}
}

// A loss that has been reported stays one, also where Redis answers no release. The loop may find it first, or the release.
func TestLoss_ANoticeIsNotTakenBackByAnOutage(t *testing.T) {
	for range 20 {
		bubble(t, func(t *testing.T, s *embedded) {
			m, rec := manager(t, s.client(), anteroom.Config{})
			h := acquire(t, m.Mutex("k"), anteroom.Lease(5*time.Second))
			s.net.BlackHole()
			time.Sleep(time.Until(h.Deadline()))
			cause := h.Err()
			err := h.Release(bg)
			if !errors.Is(cause, anteroom.ErrLost) || !errors.Is(err, anteroom.ErrLost) {
				t.Fatalf("Err said %v, and Release %v: want ErrLost of both", cause, err)
			}
			s.net.Heal()
			time.Sleep(time.Minute)
			if n := len(rec.of(observe.EventLost)); n != 1 {
				t.Fatalf("%d events report the loss", n)
			}
		})
	}
}

// Whose context ends while its release is under way, past the deadline, is notified of the loss. The release then finds the
// key gone, which is the same loss.
func TestLoss_FoundTwiceIsReportedOnce(t *testing.T) {
	for range 20 { // the loop may find it first
		bubble(t, func(t *testing.T, s *embedded) {
			m, rec := manager(t, s.client(), anteroom.Config{})
			h := acquire(t, mutex(t, m, anteroom.LockConfig{Key: "k", WatchdogPeriod: never}), anteroom.Lease(5*time.Second))
			s.Del("k")
			s.net.Delay(50 * time.Millisecond)
			time.Sleep(time.Until(h.Deadline()))
			ctx, cancel := context.WithTimeout(bg, 10*time.Millisecond)
			defer cancel()
			if err := h.Release(ctx); !errors.Is(err, anteroom.ErrLost) {
				t.Fatalf("Release: %v, want ErrLost", err)
			}
			time.Sleep(time.Minute)
			if n := len(rec.of(observe.EventLost)); n != 1 {
				t.Fatalf("%d events report the loss", n)
			}
		})
	}
}
