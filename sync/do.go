package anteroom

import (
	"context"
	"errors"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/observe"
)

// Do acquires the lock, runs fn and releases the lock. fn's context carries the
// Hold (so that fn may enter again), has ctx's values and deadline, and ends when
// ctx ends or the lock is lost. context.Cause is ctx's, but for a deadline's, which is
// context.DeadlineExceeded.
//
// It returns Acquire's error if fn did not run. Otherwise fn's error, and with it ErrLost if
// the lock was lost while fn ran, or ErrUnavailable if its release is not confirmed. Error.Ran
// distinguishes the two: an error that is or wraps an *Error of this package has it true if fn
// ran, not for what fn itself has called; any other error is fn's own, as it is. If fn panics or
// calls runtime.Goexit, the lock is released on the way out.
func (mu *Mutex) Do(ctx context.Context, fn func(ctx context.Context) error, opts ...AcquireOption) error {
	if err := mu.unusable("do"); err != nil {
		return err
	}
	return mu.do(ctx, "do", 0, fn, opts)
}

// TryDo is Do that does not wait: ran is false, without an error, if another holds the lock, as
// TryAcquire finds it. If fn ran, err is what Do returns.
func (mu *Mutex) TryDo(ctx context.Context, fn func(ctx context.Context) error, opts ...AcquireOption) (ran bool, err error) {
	h, err := mu.hold(ctx, "try do", queue.Try|queue.Refusable, nil, opts)
	switch {
	case err == nil:
		return true, h.do(ctx, fn)
	case errors.Is(err, ErrNotAcquired) && ctx.Err() == nil:
		return false, nil
	}
	return false, err
}

// Do is Mutex.Do for work that has a result. It is fn's also where an error says that the lock
// was lost, or that its release is not confirmed.
func Do[T any](ctx context.Context, mu *Mutex, fn func(ctx context.Context) (T, error), opts ...AcquireOption) (result T, err error) {
	err = mu.Do(ctx, func(ctx context.Context) (err error) {
		result, err = fn(ctx)
		return err
	}, opts...)
	return result, err
}

// do runs fn under h and releases it.
func (h *Hold) do(ctx context.Context, fn func(ctx context.Context) error) error {
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
		if !returned { // a panic or Goexit continues after this
			stop()
			cancel(nil)
			_, _ = h.exit("do", nil)
		}
	}()
	// Its Err compares with the clock, as that of the hold's own context does: work that
	// was stopped past the deadline has nothing else to ask.
	err := fn(&holdContext{Context: inner, h: h})
	returned = true
	stop()
	cancel(nil)
	_, lost := h.check("release")
	// The release is awaited as long as the first answer takes, also where ctx has
	// ended: its outcome says whether the work was protected to the end.
	_, released := h.exit("do", nil) // nil where fn has released the Hold itself
	if released == nil {
		released = lost // past its deadline, which has ended ctx: Redis may have kept the lock for the margin
	}
	end, _ := released.(*Error) //nolint:errorlint // as exit and check return it
	if end != nil {
		end.Op, end.Ran = "release", true
	}
	var nested *Error
	switch {
	case end != nil && err == nil:
		return end
	case end != nil:
		return &Error{Op: "do", Key: h.Key(), Outcome: end.Outcome, Since: end.Since, Ran: true, Err: &workError{err, end}}
	case errors.As(err, &nested):
		return &Error{Op: "do", Key: h.Key(), Outcome: observe.OutcomeReleased, Ran: true, Err: err}
	}
	return err
}
