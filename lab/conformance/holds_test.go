package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// keptHold is a hold that the failover must not end.
type keptHold struct {
	t *testing.T
	h *anteroom.Hold
	d target
}

// survives checks that the hold lives on, on the new master, and is renewed there.
func (k *keptHold) survives(now *testredis.Server) {
	k.t.Helper()
	deadline := k.h.Deadline()
	eventually(k.t, stuck, "a renewal on the new master", func() bool { return k.h.Deadline().After(deadline) || k.h.Err() != nil })
	if err := k.h.Err(); err != nil {
		k.t.Fatalf("a hold that every replica had confirmed: %v", err)
	}
	if ok, err := k.d.raw[now].HExists(context.Background(), k.h.Key(), k.h.Holder()).Result(); err != nil || !ok {
		k.t.Fatalf("the new master does not have it: %v, %v", ok, err)
	}
	if err := k.h.Release(context.Background()); err != nil {
		k.t.Fatal(err)
	}
}

// lostHold is a hold that no replica can know of, and the next owner of its lock.
type lostHold struct {
	t        *testing.T
	mu, next *anteroom.Mutex // of two parties
	reg      *register
	lease    time.Duration
	h        *anteroom.Hold
	token    int64
	at       chan time.Time // when its context ended
	rival    chan rival
}

// rival is the owner of the lock on the new master.
type rival struct {
	at  time.Time
	err error
}

// take acquires the lock, and starts work in the register under it.
func (l *lostHold) take() {
	l.t.Helper()
	h, err := l.mu.Acquire(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	l.h, l.token, l.at = h, tokenOf(h), make(chan time.Time, 1)
	if _, ok := l.reg.read(l.mu.Key(), l.token); !ok {
		l.t.Fatalf("token %d of a lock that nobody else holds is refused", l.token)
	}
	go func() {
		<-h.Context().Done()
		l.at <- time.Now()
	}()
}

// follow makes the rival try, starting now, and work in the register. The lost hold tries to write afterwards, like a
// program that does not check its hold.
func (l *lostHold) follow() {
	l.rival = make(chan rival, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), stuck)
		defer cancel()
		h, err := l.next.Acquire(ctx)
		at := time.Now()
		if err == nil {
			err = l.work(tokenOf(h))
			err = errors.Join(err, h.Release(ctx))
		}
		l.rival <- rival{at, err}
	}()
}

func (l *lostHold) work(token int64) error {
	value, ok := l.reg.read(l.mu.Key(), token)
	if !ok || token <= l.token || !l.reg.write(l.mu.Key(), token, value+1) {
		return fmt.Errorf("the rival has the token %d, the lost hold %d", token, l.token)
	}
	if l.reg.write(l.mu.Key(), l.token, value+1) {
		return errors.New("the lost hold wrote after its rival")
	}
	return nil
}

// told checks that the holder was notified: at the latest W + 2 C after the new master has admitted the rival (an
// earlier query may be open for one C), and never after its deadline.
func (l *lostHold) told() {
	l.t.Helper()
	r := <-l.rival
	if r.err != nil {
		l.t.Fatalf("%s on the new master: %v", l.mu.Key(), r.err)
	}
	// For the machine: it is busy with the load, the failover, and other tests.
	const slack = 2 * time.Second
	bound := r.at.Add(watch + 2*commandTimeout)
	if until := l.h.Deadline(); until.Before(bound) { // by the last renewal that the old master has answered
		bound = until
	}
	timer := time.NewTimer(stuck)
	defer timer.Stop()
	select {
	case at := <-l.at:
		l.t.Logf("lease %v: told %v after the rival was let in, bound %v; %v", l.lease,
			at.Sub(r.at).Round(time.Millisecond), bound.Sub(r.at).Round(time.Millisecond), context.Cause(l.h.Context()))
		if at.After(bound.Add(slack)) {
			l.t.Errorf("told %v after the bound", at.Sub(bound))
		}
		if !errors.Is(context.Cause(l.h.Context()), anteroom.ErrLost) {
			l.t.Errorf("its context ended because of %v", context.Cause(l.h.Context()))
		}
	case <-timer.C:
		l.t.Fatal("the holder of a lock that the failover lost is never notified")
	}
	if err := l.h.Release(context.Background()); !errors.Is(err, anteroom.ErrLost) {
		l.t.Errorf("its release: %v", err)
	}
}
