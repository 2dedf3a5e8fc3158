package anteroom

import (
	"context"
	"errors"
	"runtime"
	"strconv"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/sync/internal/lock"
)

// enter brings o, the caller of r, in, or returns an *Error.
func (m *Manager) enter(ctx context.Context, k *lock.Key, r *request, o *lock.Owner) error {
	err := ctx.Err()
	if err == nil {
		err = k.Acquire(ctx, o, r.lease)
	}
	if err != nil {
		return m.notEntered(k.Name(), r, notGranted(ctx, err))
	}
	if m.reports.observed {
		m.reports.acquired(r, o)
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
		return joined(ErrUnavailable, ErrUnknown, failed.Err)
	case failed.Permanent:
		return needsPerson(failed.Err)
	case errors.Is(failed.Err, lettucecompat.ErrReplicas):
		return joined(ErrNotAcquired, failed.Err)
	}
	return joined(ErrUnavailable, failed.Err)
}

// notEntered counts a failure and makes it an *Error.
func (m *Manager) notEntered(key string, r *request, err error) error {
	m.reports.notAcquired(key, r, err)
	return newError(r.op, key, err)
}

// needsPerson is the error of an answer of the server that no repetition will change: a key
// of another type, a missing permission. It is ErrConfig, because a person has to change
// something.
func needsPerson(err error) error { return joined(ErrConfig, err, ownText(remedy(err))) }

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

// ours reports whether a function is a method of this package's types, so that the
// caller of Lock, Do or sync.Locker is what gets recorded.
func ours(function string) bool {
	const pkg = "github.com/anteroom/anteroom/sync."
	return len(function) > len(pkg) && function[:len(pkg)] == pkg
}
