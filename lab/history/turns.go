package history

import (
	"context"
	"math"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// acquired is a turn by Acquire or TryAcquire, with all their options.
func (t *turn) acquired() {
	ctx, cancel := context.WithTimeout(t.ctx, 20*time.Millisecond+t.upTo(time.Duration(1+t.rng.IntN(8))*time.Second))
	defer cancel()
	var opts []anteroom.AcquireOption
	acquire := t.mu.Acquire
	switch t.rng.IntN(16) {
	case 0, 1, 2, 3:
		acquire = t.mu.TryAcquire // which has no Wait
	case 4, 5, 6:
		opts = append(opts, anteroom.Wait(time.Millisecond+t.upTo(time.Second)))
	}
	fixed := t.oneIn(8)
	if fixed {
		opts = append(opts, anteroom.Lease(time.Second+t.upTo(time.Second)))
	}
	t.event(Invoke, Now())
	h, err := acquire(ctx, opts...)
	if err != nil {
		t.failed(err)
		return
	}
	stop := t.entered(h, fixed)
	if fixed && t.oneIn(2) {
		_ = h.Extend(ctx, time.Second+t.upTo(2*time.Second))
	}
	if t.cfg.Reentrant && t.oneIn(6) {
		t.again(h)
	}
	t.protected(t.ctx, t.workTime())
	if t.units == AllUnits && t.oneIn(3) {
		t.event(Downgraded, Now())
		_ = h.Downgrade() // an error is a loss
		t.units = 1
		t.protected(t.ctx, t.workTime())
	}
	t.event(Release, Now())
	stop()
	bound, release := context.Background(), func() {}
	if t.oneIn(2) {
		bound, release = context.WithTimeout(bound, t.upTo(time.Second))
	}
	defer release()
	t.released(h.Release(bound))
}

// entered notes that h was acquired just now, and watches its context until stop.
func (t *turn) entered(h *anteroom.Hold, fixed bool) (stop func() bool) {
	now := Now()
	t.by(h)
	t.event(Acquired, now, func(e *Event) { e.Grant, e.Fixed = grantOf(h.Holder()), fixed })
	return t.watch(h.Context())
}

// by uses the answers of a Hold for the turn's.
func (t *turn) by(h *anteroom.Hold) {
	t.token, _ = h.Token() // 0 where the lock is not fenced
	t.held, t.deadline = h.Held, h.Deadline
}

// again enters a second time, through the hold's context. It gets the same tenure; it may fail only because of a
// loss.
func (t *turn) again(h *anteroom.Hold) {
	inner, err := t.mu.Acquire(h.Context())
	if err != nil {
		if h.Held() {
			t.problem("%s was not entered again: %v", t.cfg.Key, err)
		}
		return
	}
	if token, _ := inner.Token(); token != t.token {
		t.problem("the inner hold of %s has token %d, the outer one %d", t.cfg.Key, token, t.token)
	}
	if err := inner.Release(context.Background()); err != nil && h.Held() {
		t.problem("the inner hold of %s was not released: %v", t.cfg.Key, err)
	}
}

// do is a turn by Do. If the lock may be re-entered, an inner hold answers for it; otherwise only the end of the
// context does.
func (t *turn) do() {
	ctx, cancel := context.WithTimeout(t.ctx, 20*time.Millisecond+t.upTo(5*time.Second))
	defer cancel()
	t.event(Invoke, Now())
	ran := false
	err := t.mu.Do(ctx, func(ctx context.Context) error {
		ran = true
		got := Now()
		t.held = func() bool { return ctx.Err() == nil }
		var grant uint64
		if t.cfg.Reentrant {
			if inner, err := t.mu.Acquire(ctx); err == nil {
				t.by(inner)
				grant = grantOf(inner.Holder())
				defer func() { _ = inner.Release(context.Background()) }()
			}
		}
		t.event(Acquired, got, func(e *Event) { e.Grant = grant })
		stop := t.watch(ctx)
		t.protected(ctx, t.workTime())
		stop()
		t.held = nil
		t.event(Release, Now())
		return nil
	})
	if !ran {
		t.failed(err)
		return
	}
	t.released(err)
}

// locked is a turn by Lock, TryLock or TryLockFor. Its holder is not notified of a loss, so it asks; and since Unlock
// returns nothing, its claim ends with its last query.
func (t *turn) locked() {
	t.lock = true
	t.event(Invoke, Now())
	switch t.rng.IntN(4) {
	case 0, 1:
		t.mu.Lock()
	case 2:
		if !t.mu.TryLock() {
			t.event(NotAcquired, Now())
			return
		}
	case 3:
		if !t.mu.TryLockFor(time.Millisecond + t.upTo(time.Second)) {
			t.event(NotAcquired, Now())
			return
		}
	}
	got := Now()
	t.held = t.mu.Held
	if t.units > 0 && !t.held() { // its process was stopped on the way: nobody claims anything
		t.event(NotAcquired, got)
		t.mu.Unlock()
		return
	}
	t.event(Acquired, got)
	if t.cfg.Reentrant && t.oneIn(6) {
		t.mu.Lock()
		defer t.mu.Unlock() // the outer one; the order of the two does not matter
	}
	t.protected(t.ctx, t.workTime())
	t.event(Release, Now())
	t.mu.Unlock()
	t.event(Released, Now())
}

// kept is a turn that holds until the lock is lost or the work ends.
func (t *turn) kept() {
	t.event(Invoke, Now())
	h, err := t.mu.Acquire(t.ctx)
	if err != nil {
		t.failed(err)
		return
	}
	stop := t.entered(h, false)
	defer stop()
	t.protected(t.ctx, math.MaxInt64)
	t.event(Release, Now())
	stop()
	t.released(h.Release(context.Background()))
}
