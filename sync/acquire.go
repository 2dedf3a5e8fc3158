package anteroom

import (
	"context"
	"errors"
	"runtime"
	"strconv"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
)

// acquire brings the caller in, or returns an *Error. It takes over the caller's
// reference on e: on success the tenure has it.
//
// It queues the caller and returns when it owns a valid grant on its terms. A waiter that
// finds its grant lost or too old goes back to the head of the queue: being woken is a
// ticket to look, not the lock.
//
// Whoever waits sleeps in here. The callers of this function are as few as may be: a
// processor that has switched to another goroutine predicts none of its returns, and a
// hand-off is not much longer than that.
func (e *entry) acquire(ctx context.Context, r *request) error {
	if ctx.Err() != nil {
		return e.failed(r, joined(ErrNotAcquired, ctx.Err(), otherCause(ctx)))
	}
	if r.terms.fixed() && r.terms.lease < e.cfg.MinHold {
		return e.failed(r, configError("Lease", "is %v, shorter than MinHold (%v)", r.terms.lease, e.cfg.MinHold))
	}
	w := &r.waiter
	w.Note = r.terms
	if g := e.cur.Load(); g != nil {
		w.NoBarge = !g.terms.sameLease(r.terms)
	}
	in, order, err := e.q.Enter(w)
	if order == queue.StartAttempt && ctx.Done() == nil {
		e.beginJob()
		e.driveHere(w.Kind == queue.Deaf) // the caller is about to wait in any case, and can't be told to stop
	} else {
		e.do(order)
	}
	if err != nil {
		return e.failed(r, ErrNotAcquired) // somebody of this process is before it; nothing was asked
	}
	for {
		if e.m.closing.Load() {
			// Close may have looked at this queue while we were not in it.
			e.do(e.q.Fail(ErrClosed))
		}
		if !in {
			order, err := e.q.Wait(ctx, w)
			e.do(order)
			if err != nil {
				e.headAfter(r.terms)
				return e.failed(r, e.waitError(ctx, err))
			}
		}
		if e.admit(r) {
			r.recycle(e.m)
			return nil
		}
		in = false
	}
}

// headAfter tells the driver where a waiter with the terms t has gone, and who is head now has others.
func (e *entry) headAfter(t *terms) {
	if f, waited := e.q.Front(); waited {
		if of, is := f.First.Note.(*terms); is && !of.sameLease(t) {
			e.recall.ring()
		}
	}
}

// failed words why the caller of r did not come in.
func (e *entry) failed(r *request, err error) error {
	e.unref()
	return e.m.notEntered(e.key, r, err)
}

// admit makes the admitted waiter the owner of the current grant, or gives its
// place back and returns false. Once Close has begun it admits nobody, also by an attempt, a
// hand-off or a turn's end that was under way: Acquire is told then, and Lock stays parked.
func (e *entry) admit(r *request) bool {
	w := &r.waiter
	if g := e.cur.Load(); g != nil && g.n == w.Grant {
		var t *tenure
		if r.hold != nil {
			t = r.hold.begin()
		} else {
			t = g.placeOfLocks()
		}
		// A glance is enough: a suspension of the machine within a hand-off shows at the
		// owner's first question, as one right after it does.
		now := e.m.leases.Glance()
		if !e.m.closing.Load() && g.admit(t, r, now) {
			if e.m.reports.observed {
				// t may be the next owner's already: any goroutine may unlock a NotReentrant lock.
				outcome := OutcomeGranted
				if w.HandOffs > 0 {
					outcome = OutcomeHandedOff
				}
				e.m.reports.acquired(r, outcome, g, w.HandOffs, now-w.Began)
			}
			return true
		}
		g.burnUnused(w.HandOffs - 1)
	}
	e.do(e.q.GiveBack(w))
	return false
}

// waitError words the end of an unsuccessful wait.
func (e *entry) waitError(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, queue.ErrRefused):
		return ErrNotAcquired
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return e.notGranted(ctx.Err(), otherCause(ctx))
	}
	return err // given to Fail or FailTries by the driver, or ErrClosed
}

// notGranted says why there was no grant before the caller's context ended: by the last
// answer, held by another, or Redis did not serve.
func (e *entry) notGranted(ended ...error) error {
	reason := ErrNotAcquired
	if a := e.answer.Load(); a != nil && a.Err != nil {
		reason = reasonOf(a)
	}
	return joined(append([]error{reason}, ended...)...)
}

// reasonOf words an answer for a caller that does not wait for another one.
func reasonOf(a *lettucecompat.AcquireReply) error {
	switch {
	case a.Outcome == lettucecompat.OutcomeUnknown:
		return joined(ErrUnavailable, ErrUnknown, a.Err)
	case lettucecompat.Permanent(a.Err):
		return needsPerson(a.Err)
	case errors.Is(a.Err, lettucecompat.ErrReplicas):
		return joined(ErrNotAcquired, a.Err)
	}
	return joined(ErrUnavailable, a.Err)
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
