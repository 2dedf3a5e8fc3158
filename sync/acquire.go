package anteroom

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/internal/report"
	"github.com/anteroom/anteroom/sync/observe"
)

// enter brings o, the caller of r, in, or returns an *Error.
func (m *Manager) enter(ctx context.Context, k *lock.Key, r *request, o *lock.Owner) error {
	err := ctx.Err()
	if err == nil {
		err = k.Acquire(ctx, o, r.lease)
	}
	if err != nil {
		err := newError(r.op, k.Name(), notGranted(ctx, err))
		if errors.Is(err, ErrNotAcquired) {
			err.Holder, err.Note = heldBy(k)
		}
		m.notAcquired(k.Name(), r, err)
		return err
	}
	if m.reports.Observed() {
		m.reports.Acquired(&r.attempt, o)
	}
	return nil
}

// notGranted says why the caller has not come in.
func notGranted(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, lock.ErrRefused):
		return ErrNotAcquired
	case errors.Is(err, lock.ErrClosed):
		return ErrClosed
	case errors.Is(err, lock.ErrNotThere):
		return joined(ErrNotHeld, ownText("the ticket is over, was resumed before, or the lock was taken from it"))
	}
	reason := ErrNotAcquired
	if failed, is := err.(*lock.AnswerError); is { //nolint:errorlint // as lock gives it
		reason = reasonOf(failed)
	}
	return joined(reason, ctx.Err(), otherCause(ctx))
}

// reasonOf words why Redis is the reason.
func reasonOf(failed *lock.AnswerError) error {
	switch {
	case failed.Unknown:
		return joined(ErrUnknown, failed.Err)
	case failed.Permanent:
		return needsPerson(failed.Err)
	case errors.Is(failed.Err, lettucecompat.ErrReplicas):
		return joined(ErrNotAcquired, failed.Err)
	}
	return joined(ErrUnavailable, failed.Err)
}

// heldBy returns the field that has the lock, and its note, as far as this process has heard.
func heldBy(k *lock.Key) (field, note string) {
	if o := k.Owner(); o != nil {
		return o.Held().Field(), o.Note()
	}
	if a := k.Answer(); a != nil {
		return a.Holder, a.Note
	}
	return "", ""
}

// notEntered counts a failure and makes it an *Error.
func (m *Manager) notEntered(key string, r *request, err error) error {
	m.notAcquired(key, r, err)
	return newError(r.op, key, err)
}

// acquiring reports that the caller of r begins, and returns the context that takes the place of ctx.
func (m *Manager) acquiring(ctx context.Context, key string, r *request) context.Context {
	if !m.reports.Observed() {
		return ctx
	}
	cfg := &r.settings.cfg
	start := observe.AcquireStart{Key: key, Class: cfg.Name, Op: r.op, Fair: cfg.Fair, Lock: !r.kind.CanNotify()}
	ctx, r.attempt = m.reports.Acquiring(ctx, start)
	return ctx
}

// notAcquired reports that the caller of r has not come in.
func (m *Manager) notAcquired(key string, r *request, err error) {
	if !m.reports.Observed() {
		return
	}
	outcome := outcomeOf(err)
	if own, ok := errors.AsType[*Error](err); ok {
		err = own.Err // its own text begins with the key
	}
	m.reports.NotAcquired(&r.attempt, key, outcome, err)
}

// reentered reports that the caller of r, who is o already, has entered again, or why it has not.
func (m *Manager) reentered(r *request, o *lock.Owner, err error) {
	if err != nil {
		m.notAcquired(o.Held().Key().Name(), r, err)
	} else {
		m.reports.Reentered(&r.attempt, o)
	}
}

// needsPerson is the error of an answer of the server that no repetition will change: a key
// of another type, a missing permission. It is ErrConfig, because a person has to change
// something.
func needsPerson(err error) error {
	if remedy := report.Remedy(err); remedy != "" {
		return joined(ErrConfig, err, ownText(remedy))
	}
	return joined(ErrConfig, err)
}

// otherCause returns the context's cause where it says more than its error.
func otherCause(ctx context.Context) error {
	if c := context.Cause(ctx); c != ctx.Err() { //nolint:errorlint // identity is meant
		return c
	}
	return nil
}

// joined makes one error of several, in one line: errors.Join breaks lines, which
// a log record or a table can't show.
func joined(errs ...error) error {
	var list joinedErrors
	for _, err := range errs {
		if err != nil {
			list = append(list, err)
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return list
}

type joinedErrors []error

func (l joinedErrors) Error() string { return plain.of(l) }

func (l joinedErrors) Unwrap() []error { return l }

// callSite names the caller outside this package, if call sites are recorded.
func (m *Manager) callSite() string {
	if !m.cfg.RecordCallSites {
		return ""
	}
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		if f.Function != "" && !ours(f.Function) {
			return f.File + ":" + strconv.Itoa(f.Line)
		}
		if !more {
			return ""
		}
	}
}

// ours reports whether a function is one of this package or of its inner ones, so that the caller of Lock, Do or
// sync.Locker is what gets recorded.
func ours(function string) bool {
	const pkg = "github.com/anteroom/anteroom/sync"
	return strings.HasPrefix(function, pkg+".") || strings.HasPrefix(function, pkg+"/internal/")
}
