package anteroom

import (
	"context"
	"errors"

	"github.com/anteroom/anteroom/queue"
)

// Do acquires the lock, runs fn and releases the lock. fn's context carries the
// Hold (so that fn may enter again), has ctx's values and deadline, and ends when
// ctx ends or the lock is lost. context.Cause is ctx's, but for a deadline's, which is
// context.DeadlineExceeded.
//
// It returns Acquire's error if fn did not run. Otherwise fn's error, joined with
// ErrLost if the lock was lost while fn ran, also if fn returned nil; an
// unconfirmed release is joined too, as an *Error whose Op is "release". If fn panics or calls runtime.Goexit, the
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
			_, _ = h.exit("do", nil)
		}
	}()
	// Its Err compares with the clock, as that of the hold's own context does: work that
	// was stopped past the deadline has nothing else to ask.
	err = fn(&holdContext{Context: inner, h: h})
	returned = true
	stop()
	cancel(nil)
	_, lost := h.look("release")
	// The release is awaited as long as the first answer takes, also where ctx has
	// ended: its outcome says whether the work was protected to the end.
	_, released := h.exit("do", nil)    // nil where fn has released the Hold itself
	if e, is := released.(*Error); is { //nolint:errorlint // as exit gives it
		e.Op = "release" // the work is done: that tells it from an acquire that failed
	}
	if released == nil {
		released = lost // past its deadline, of which ctx has told: Redis may have kept the lock for the margin
	}
	if err == nil {
		return released
	}
	if released != nil {
		return &workError{err, released}
	}
	return err
}
