package locktest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

var bg = context.Background()

// everywhere runs f in a bubble and outside (I5), with a Manager of its own.
func everywhere(t *testing.T, f func(t *testing.T, lt *locktest.Manager)) {
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, locktest.NewManager(t, anteroom.Config{})) })
	})
	t.Run("outside", func(t *testing.T) { f(t, locktest.NewManager(t, anteroom.Config{})) })
}

// inBubble runs f only in a bubble: its waits would be too long in real time.
func inBubble(t *testing.T, f func(t *testing.T, lt *locktest.Manager)) {
	synctest.Test(t, func(t *testing.T) { f(t, locktest.NewManager(t, anteroom.Config{})) })
}

func acquire(t testing.TB, mu *anteroom.Mutex, opts ...anteroom.AcquireOption) *anteroom.Hold {
	t.Helper()
	h, err := mu.Acquire(bg, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func release(t testing.TB, h *anteroom.Hold) {
	t.Helper()
	if err := h.Release(bg); err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, want %v", err, want)
	}
}

// soon fails the test unless done is closed within 10 seconds, real or virtual.
func soon(t testing.TB, what string, done <-chan struct{}) {
	t.Helper()
	timer := time.NewTimer(10 * time.Second)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.Fatalf("not within 10s: %s", what)
	}
}
