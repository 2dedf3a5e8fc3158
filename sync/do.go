package anteroom

import (
	"context"
	"errors"
	"strings"

	"github.com/anteroom/anteroom/queue"
)

// Do acquires the lock, runs fn and releases the lock. fn's context carries the
// Hold (so that fn may enter again), has ctx's values and deadline, and ends when
// ctx ends or the lock is lost.
//
// It returns Acquire's error if fn did not run. Otherwise fn's error, joined with
// ErrLost if the lock was lost while fn ran, also if fn returned nil; an
// unconfirmed release is joined too. If fn panics or calls runtime.Goexit, the
// lock is released on the way out.
func (mu *Mutex) Do(ctx context.Context, fn func(ctx context.Context) error, opts ...AcquireOption) error {
	h, err := mu.acquire(ctx, "do", queue.Refusable, opts)
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancelCause(h.Context())
	// A deadline is inherited as such, below, so that fn sees DeadlineExceeded.
	stop := context.AfterFunc(ctx, func() {
		if _, has := ctx.Deadline(); !has || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			cancel(context.Cause(ctx))
		}
	})
	if deadline, ok := ctx.Deadline(); ok {
		var release context.CancelFunc
		inner, release = context.WithDeadline(inner, deadline)
		defer release()
	}
	returned := false
	defer func() {
		if !returned { // a panic or Goexit goes on after this
			stop()
			cancel(nil)
			_ = h.releaseOnce("do")
		}
	}()
	// Its Err compares with the clock, as that of the hold's own context does: work that
	// was stopped past the deadline has nothing else to ask.
	err = fn(&holdContext{inner, h})
	returned = true
	stop()
	cancel(nil)
	// The release is awaited as long as the first answer takes, also where ctx has
	// ended: its outcome tells whether the work was protected to the end.
	released := h.releaseOnce("do")
	if err == nil {
		return released
	}
	if released != nil {
		return &workError{err, released}
	}
	return err
}

// releaseOnce is Release that waits for the first answer only.
func (h *Hold) releaseOnce(op string) error {
	if !h.s.released.CompareAndSwap(false, true) {
		return nil // fn released it itself through the Hold's methods; nothing is left to do
	}
	return h.exit(op, nil)
}

// workError is the error of what ran under a lock, and that of its release.
type workError struct{ work, release error }

// Error is the work's own text, and why the release failed, unless the work has told that
// already: it was told of the same loss.
func (e *workError) Error() string {
	text := e.work.Error()
	switch {
	case e.tells():
		return text
	case strings.Contains(text, prefix):
		return text + ": " + plain.of(e.release)
	}
	return text + ": " + e.release.Error()
}

func (e *workError) tells() bool {
	return errors.Is(e.work, ErrLost) && errors.Is(e.release, ErrLost)
}

func (e *workError) words(w words) string {
	if e.tells() {
		return w.of(e.work)
	}
	return w.of(e.work) + ": " + w.of(e.release)
}

func (e *workError) Unwrap() []error { return []error{e.work, e.release} }
