package anteroom

import (
	"context"
	"errors"
	"time"
)

// Tracer is told where acquiring and releasing begin and end, so that it can make spans of
// them. The metrics/otel module has one for OpenTelemetry. Implementations embed NopTracer,
// so that new methods do not break them.
//
// Every method, and every function that one returns, may be called concurrently, from
// goroutines that hold or wait for locks: it must return at once and must not call back
// into the Manager. Nothing is said of renewals, which no caller waits for.
//
// Errors and texts that a Tracer is given name neither keys nor holders; errors.Is sees
// through that. Keys and holders have fields of their own.
type Tracer interface {
	// StartAcquire is called when a caller begins to acquire a lock, and the function that
	// it returns when that has ended; nil: nothing is to be told. ctx is the caller's, and
	// context.Background() for Lock, TryLock and TryLockFor, which have none.
	//
	// The hold takes the values of the context that is returned for those of ctx: they
	// come back in ReleaseStart.Acquired and with Lost, and Hold.Context has them. It must
	// be ctx or made of it, with the same end.
	StartAcquire(ctx context.Context, a AcquireStart) (context.Context, func(AcquireEnd))

	// StartRelease is called when the owner begins to release, and the function that it
	// returns when that has ended; nil: nothing is to be told. ctx is that of
	// Hold.Release; for Do it is ReleaseStart.Acquired, and context.Background() for
	// Unlock.
	StartRelease(ctx context.Context, r ReleaseStart) func(ReleaseEnd)

	// Lost is called for a hold that was lost while somebody had it, after its owner was
	// told and the loss was logged. ctx has the values of the hold's context and does not
	// end; it is context.Background() for a lock by Lock.
	Lost(ctx context.Context, e Event)
}

// AcquireStart says what is about to be acquired.
type AcquireStart struct {
	Key   string
	Class string
	// Op is "acquire", "try acquire", "do", "lock" or "try lock" (also TryLockFor).
	Op   string
	Fair bool
	// Lock: by Lock, TryLock or TryLockFor, which have no context.
	Lock bool
}

// AcquireEnd says how acquiring ended.
type AcquireEnd struct {
	Outcome Outcome // one of AcquireOutcomes
	// HandOffs is how many local owners the lock had before this one since Redis
	// granted it; 0 where it was not acquired.
	HandOffs int
	// Holder is the field in Redis, "" where it was not acquired.
	Holder string
	// Err is why it was not acquired.
	Err error
}

// ReleaseStart says what is about to be released.
type ReleaseStart struct {
	Key   string
	Class string
	Op    string // "release", "do" or "unlock"
	Fair  bool
	Lock  bool // by Unlock, which has no context
	// Acquired is the context that StartAcquire returned for this hold, without its end.
	// It is context.Background() where there was none.
	Acquired context.Context
}

// ReleaseEnd says how releasing ended.
type ReleaseEnd struct {
	Outcome Outcome       // one of ReleaseOutcomes; "" where Unlock is about to panic: another goroutine has unlocked it
	Held    time.Duration // how long it was held
	Err     error         // as Release returns it; for Unlock, what it could not return
}

// NopTracer traces nothing. Embed it to implement a part of Tracer.
type NopTracer struct{}

// StartAcquire returns ctx and nil.
func (NopTracer) StartAcquire(ctx context.Context, _ AcquireStart) (context.Context, func(AcquireEnd)) {
	return ctx, nil
}

// StartRelease returns nil.
func (NopTracer) StartRelease(context.Context, ReleaseStart) func(ReleaseEnd) { return nil }

// Lost does nothing.
func (NopTracer) Lost(context.Context, Event) {}

var _ Tracer = NopTracer{}

// traceAcquire tells the Tracer, which is there, that r begins, and returns the context in
// place of ctx.
func (mu *Mutex) traceAcquire(ctx context.Context, r *request) context.Context {
	ctx, r.ended = mu.m.cfg.Tracer.StartAcquire(ctx, AcquireStart{Key: mu.key, Class: mu.cfg.Name, Op: r.op, Fair: mu.cfg.Fair, Lock: r.waiter.Kind.IsDeaf()})
	return ctx
}

// traceEntered tells that the caller of r has come in with t.
func (r *request) traceEntered(t *tenure, outcome Outcome) {
	if ended := r.ended; ended != nil {
		r.ended = nil // r may serve another caller
		ended(AcquireEnd{Outcome: outcome, HandOffs: int(t.handOffs), Holder: t.g.name()})
	}
}

// traceReentered tells that the caller of r, who has t already, has entered again, or why
// it has not.
func (r *request) traceReentered(t *tenure, err error) {
	if r.ended == nil {
		return
	}
	if err != nil {
		r.traceFailed(t.g.e.m, t.g.e.key, err)
		return
	}
	r.traceEntered(t, OutcomeNested)
}

// traceFailed tells that the caller of r has not come in.
func (r *request) traceFailed(m *Manager, key string, err error) {
	if ended := r.ended; ended != nil {
		r.ended = nil
		_, outcome := outcomes(err)
		ended(AcquireEnd{Outcome: outcome, Err: m.events.publicErr(reason(err), &Event{Key: key})})
	}
}

// traceRelease tells the Tracer, which is there, that a release begins of t, or of the hold
// with these values. ctx is nil where the caller has none.
func (t *tenure) traceRelease(op string, ctx, values context.Context) func(ReleaseEnd) {
	e := t.g.e
	r := ReleaseStart{Key: e.key, Class: e.cfg.Name, Op: op, Fair: e.cfg.Fair, Lock: t.lock, Acquired: context.WithoutCancel(values)}
	if ctx == nil {
		ctx = r.Acquired
	}
	return e.m.cfg.Tracer.StartRelease(ctx, r)
}

// traceReleased tells how the release of a lock of e ended, where report is not nil.
func (e *entry) traceReleased(report func(ReleaseEnd), outcome Outcome, held time.Duration, err error) {
	if report != nil {
		report(ReleaseEnd{Outcome: outcome, Held: held, Err: e.m.events.publicErr(reason(err), &Event{Key: e.key})})
	}
}

// reason returns what an *Error wraps, whose own text begins with the key.
func reason(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Err
	}
	return err
}
