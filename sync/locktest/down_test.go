package locktest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

func TestLocktest_I3_DownRefusesAndUpRemembers(t *testing.T) {
	everywhere(t, func(t *testing.T, lt *locktest.Manager) {
		other := lt.Another(anteroom.Config{})
		h := acquire(t, lt.Mutex("k"))
		lt.Down()
		lt.Down()
		for _, m := range []*locktest.Manager{lt, other} {
			_, err := m.Mutex("free").TryAcquire(bg)
			wantErr(t, err, anteroom.ErrUnavailable)
		}
		lt.Up()
		lt.Up()
		_, err := other.Mutex("k").TryAcquire(bg)
		wantErr(t, err, anteroom.ErrNotAcquired)
		if err := h.Err(); err != nil {
			t.Errorf("the holder, within its lease: %v", err)
		}
		release(t, h)
	})
}

// Nothing was sent, so no outcome is unknown; and no connection that Down has cut is used afterwards.
func TestLocktest_I3_RefusedIsNotUnknownAndTheFirstCommandAfterUpWorks(t *testing.T) {
	everywhere(t, func(t *testing.T, lt *locktest.Manager) {
		release(t, acquire(t, lt.Mutex("k"))) // leaves a connection in the pool
		lt.Down()
		lt.Up()
		h, err := lt.Mutex("k").TryAcquire(bg)
		if err != nil {
			t.Fatalf("the first command after Up: %v", err)
		}
		release(t, h)
		lt.Down()
		for range 100 { // more often than a pool has patience
			_, err := lt.Mutex("k").TryAcquire(bg)
			wantErr(t, err, anteroom.ErrUnavailable)
			if errors.Is(err, anteroom.ErrUnknown) {
				t.Fatalf("refused, and yet unknown: %v", err)
			}
		}
		lt.Up()
		h, err = lt.Mutex("k").TryAcquire(bg)
		if err != nil {
			t.Fatalf("the first command after a long Down: %v", err)
		}
		release(t, h)
	})
}

func TestAcquireWaitsUntilTheServerIsBack(t *testing.T) {
	inBubble(t, func(t *testing.T, lt *locktest.Manager) {
		lt.Down()
		time.AfterFunc(time.Minute, lt.Up)
		began := time.Now()
		h := acquire(t, lt.Mutex("k"))
		if took := time.Since(began); took < time.Minute || took > time.Minute+2*time.Second {
			t.Errorf("acquired after %v, want soon after a minute", took)
		}
		release(t, h)
	})
}

func TestHoldIsLostAtItsDeadlineWhileDown(t *testing.T) {
	inBubble(t, func(t *testing.T, lt *locktest.Manager) {
		h := acquire(t, lt.Mutex("k"))
		deadline := h.Deadline()
		lt.Down()
		<-h.Context().Done()
		if late := time.Since(deadline); late != 0 {
			t.Errorf("notified %v after the deadline", late)
		}
		wantErr(t, context.Cause(h.Context()), anteroom.ErrLost)
		time.Sleep(2 * time.Second) // the lease itself
		lt.Up()
		release(t, acquire(t, lt.Another(anteroom.Config{}).Mutex("k")))
		wantErr(t, h.Release(bg), anteroom.ErrLost)
	})
}

func TestShortDownLosesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, lt *locktest.Manager) {
		h := acquire(t, lt.Mutex("k"))
		for range 10 {
			time.Sleep(20 * time.Second)
			lt.Down()
			time.Sleep(10 * time.Second)
			lt.Up()
		}
		if err := h.Err(); err != nil {
			t.Error(err)
		}
		release(t, h)
	})
}

func TestLoseAndTakeByWhileDownShowAfterwards(t *testing.T) {
	inBubble(t, func(t *testing.T, lt *locktest.Manager) {
		h := acquire(t, lt.Mutex("k"))
		lt.Down()
		if !lt.Lose("k") {
			t.Error("nobody had the lock")
		}
		leave := lt.TakeBy("k")
		if err := h.Err(); err != nil {
			t.Errorf("notified while the server is down: %v", err)
		}
		lt.Up()
		began := time.Now()
		<-h.Context().Done()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("notified %v after Up, want by the next renewal", took)
		}
		wantErr(t, h.Release(bg), anteroom.ErrLost)
		_, err := lt.Mutex("k").TryAcquire(bg)
		wantErr(t, err, anteroom.ErrNotAcquired)
		leave()
	})
}
