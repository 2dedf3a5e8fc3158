package anteroomcertmagic

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLocker_OneHolder(t *testing.T) {
	s := testredis.Start(t)
	a, b, ctx := locker(t, s), locker(t, s), t.Context()
	for _, name := range []string{"issue_cert_*.example.com", "", "anteroom:fence:x", "register_acme_{ä b}\x00\n"} {
		must(t, a.Lock(ctx, name))
		for _, l := range []*Locker{a, b} { // not reentrant
			if got, err := l.TryLock(ctx, name); got || err != nil {
				t.Errorf("%q: TryLock of a held lock says %v, %v", name, got, err)
			}
		}
		if err := b.Unlock(ctx, name); !errors.Is(err, anteroom.ErrNotHeld) {
			t.Errorf("%q: Unlock of another's lock: %v", name, err)
		}
		next := make(chan error, 1)
		go func() { next <- b.Lock(ctx, name) }()
		must(t, a.RenewLockLease(ctx, name, time.Minute))
		must(t, a.Unlock(ctx, name))
		must(t, receive(t, next))
		must(t, b.Unlock(ctx, name))
		if err := b.Unlock(ctx, name); !errors.Is(err, anteroom.ErrNotHeld) {
			t.Errorf("%q: the second Unlock: %v", name, err)
		}
		if err := b.RenewLockLease(ctx, name, time.Minute); !errors.Is(err, anteroom.ErrNotHeld) {
			t.Errorf("%q: RenewLockLease after Unlock: %v", name, err)
		}
	}
}

// A Lock whose context ends has locked nothing, and an Unlock with such a context unlocks.
func TestLocker_ContextThatHasEnded(t *testing.T) {
	s := testredis.Start(t)
	a, b := locker(t, s), locker(t, s)
	must(t, a.Lock(t.Context(), "n"))
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { failed <- b.Lock(ctx, "n") }()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("Lock says %v", err)
	}
	if got, err := b.TryLock(ctx, "m"); got || err == nil {
		t.Errorf("TryLock says %v, %v", got, err)
	}
	must(t, a.Unlock(ctx, "n"))
	must(t, b.Lock(t.Context(), "n"))
	must(t, b.Unlock(t.Context(), "n"))
}

// RenewLockLease after a loss waits for the process that has the lock now. Others of this process wait for the Unlock, which
// would otherwise end their lock.
func TestLocker_RenewAfterALoss(t *testing.T) {
	s := testredis.Start(t)
	a, b, ctx := locker(t, s), locker(t, s), t.Context()
	must(t, a.Lock(ctx, "n"))
	lose(t, a, "n")
	must(t, b.Lock(ctx, "n"))
	if got, err := a.TryLock(ctx, "n"); got || err != nil {
		t.Errorf("TryLock before the Unlock says %v, %v", got, err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := a.Lock(ended, "n"); !errors.Is(err, context.Canceled) {
		t.Errorf("Lock before the Unlock says %v", err)
	}
	if err := a.RenewLockLease(ended, "n", time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("RenewLockLease says %v", err)
	}
	renewed := make(chan error, 1)
	go func() { renewed <- a.RenewLockLease(ctx, "n", time.Minute) }()
	must(t, b.Unlock(ctx, "n"))
	must(t, receive(t, renewed))
	if got, err := b.TryLock(ctx, "n"); got || err != nil {
		t.Errorf("TryLock of a renewed lock says %v, %v", got, err)
	}
	must(t, a.Unlock(ctx, "n"))
	must(t, b.Lock(ctx, "n"))
	must(t, b.Unlock(ctx, "n"))
}

// Unlock of a lost lock says so, and the next goroutine of the process gets the lock.
func TestLocker_UnlockAfterALoss(t *testing.T) {
	l, ctx := locker(t, testredis.Start(t)), t.Context()
	must(t, l.Lock(ctx, "n"))
	lose(t, l, "n")
	next := make(chan error, 1)
	go func() { next <- l.Lock(ctx, "n") }()
	if err := l.Unlock(ctx, "n"); !errors.Is(err, anteroom.ErrLost) {
		t.Errorf("Unlock: %v, want ErrLost", err)
	}
	must(t, receive(t, next))
	must(t, l.Unlock(ctx, "n"))
}

// lose takes the lock from l, and waits until l knows.
func lose(t *testing.T, l *Locker, name string) {
	t.Helper()
	_, hold, err := l.held(name)
	must(t, err)
	if _, err := l.m.ForceRelease(t.Context(), hold.Key()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-hold.Context().Done():
	case <-time.After(pace.Hang):
		t.Fatal("the loss is not noticed")
	}
}

func receive(t *testing.T, from <-chan error) error {
	t.Helper()
	select {
	case err := <-from:
		return err
	case <-time.After(pace.Hang):
		t.Fatal("nothing came")
		return nil
	}
}

func TestLocker_Storage(t *testing.T) {
	s := testredis.Start(t)
	a, b, ctx := locker(t, s), locker(t, s), t.Context()
	files := &certmagic.FileStorage{Path: t.TempDir()}
	mine, other := a.Storage(files), b.Storage(files)
	must(t, mine.Store(ctx, "k", []byte("v")))
	if v, err := other.Load(ctx, "k"); string(v) != "v" {
		t.Errorf("loaded %q, %v", v, err)
	}
	must(t, mine.Lock(ctx, "n"))
	if got, err := other.(certmagic.TryLocker).TryLock(ctx, "n"); got || err != nil {
		t.Errorf("TryLock says %v, %v", got, err)
	}
	must(t, mine.(certmagic.LockLeaseRenewer).RenewLockLease(ctx, "n", time.Minute))
	must(t, mine.Unlock(ctx, "n"))
}

func TestNew_RefusesAConfiguration(t *testing.T) {
	l := locker(t, testredis.Start(t))
	if _, err := New(l.m, anteroom.LockConfig{LeaseTime: time.Millisecond}); !errors.Is(err, anteroom.ErrConfig) {
		t.Errorf("%v, want ErrConfig", err)
	}
}
