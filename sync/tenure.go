package anteroom

import (
	"context"
	"errors"
	"sync"
	"time"
	"weak"

	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/observe"
)

// tenure is what the Holds of one owner share. The library refers to it, and it must not refer to
// them: the garbage collector finds when nobody can release it.
type tenure struct {
	owner lock.Owner
	m     *Manager

	// Written before the owner is admitted.
	sentinel weak.Pointer[sentinel]
	values   context.Context // of the first Hold; nil: they lead to another Hold, and the sentinel has them

	mu    sync.Mutex
	holds int          // that are not released; guarded by mu
	ctx   *holdContext // parent of the Holds' contexts, which a loss ends; on demand, guarded by mu
}

// newHold returns the first Hold of a tenure, which is what r asks for.
func (m *Manager) newHold(ctx context.Context, r *request) *Hold {
	h := &Hold{values: ctx, writes: r.settings.capacity == ofRWMutex && r.units == toWrite}
	if r.settings.capacity == ofMutex {
		h.t = new(tenure)
		h.t.init(m, h)
		return h
	}
	t := new(struct {
		tenure
		share lock.Share
	})
	h.t = &t.tenure
	h.t.init(m, h)
	t.share.Of, t.owner.Need = max(r.settings.capacity, 0), int32(r.units)
	t.owner.Shares(&t.share)
	return h
}

func (t *tenure) init(m *Manager, h *Hold) {
	h.sentinel = newSentinel()
	t.m, t.holds, t.sentinel, t.owner.Holder = m, 1, h.sentinel.weak, t
	if _, nested := HoldFrom(h.values); nested {
		h.sentinel.values = h.values // in the tenure they would keep the outer Hold reachable
	} else {
		t.values = h.values
	}
}

// reachable reports whether anybody can still release t.
func (t *tenure) reachable() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.holds == 0 || t.sentinel.Value() != nil
}

// reportContext returns the context with whose values o was acquired, for reports about it.
// It has none where o is nil or by Lock.
func reportContext(o *lock.Owner) context.Context {
	var t *tenure
	if o != nil {
		t, _ = o.Holder.(*tenure)
	}
	switch {
	case t == nil:
	case t.values != nil:
		return t.values
	default:
		if s := t.sentinel.Value(); s != nil && s.values != nil {
			return s.values
		}
	}
	return context.Background()
}

// end ends the contexts of all Holds of t; the first cause stays. When it returns they have
// ended, also where another goroutine is just about to end them. It does no I/O and calls
// nobody but the contexts' own functions.
func (t *tenure) end(cause error) {
	t.mu.Lock()
	ctx := t.ctx
	t.mu.Unlock()
	if ctx != nil {
		ctx.end(cause)
	}
}

// add makes h one of the Holds of t beside outer, whose sentinel it shares. It does nothing
// where outer was released.
func (t *tenure) add(h, outer *Hold) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if outer.sentinel == nil {
		return false
	}
	h.sentinel = outer.sentinel
	t.holds++
	return true
}

// remove takes h out of the Holds of t. It returns its sentinel, nil where h was taken out
// before, and its context, nil where nobody has asked for it.
func (t *tenure) remove(h *Hold) (*sentinel, *holdContext) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.removeLocked(h)
}

func (t *tenure) removeLocked(h *Hold) (*sentinel, *holdContext) {
	s := h.sentinel
	if s == nil {
		return nil, nil
	}
	h.sentinel = nil
	if t.holds--; t.holds == 0 {
		s.recycle()
	}
	return s, h.ctx
}

// Lost ends the contexts of the Holds of a lock that is lost. It implements lock.Holder.
func (t *tenure) Lost(o *lock.Owner, l *lock.Loss) {
	t.mu.Lock()
	holds := t.holds
	t.mu.Unlock()
	t.end(t.m.lossError("hold", o.Name(), l))
	if l.Note == nil {
		l.Note = t.m.reports.NoteOn(o, holds)
	}
}

// unnotified is the lock.Holder of all owners by Lock.
type unnotified Manager

// Lost notes the loss for its report.
func (u *unnotified) Lost(o *lock.Owner, l *lock.Loss) { l.Note = u.reports.NoteOn(o, 1) }

// loss is why a lock was lost, as an error.
type loss struct{ renewal.Cause }

// lossError makes the error that reports l.
func (m *Manager) lossError(op, key string, l *lock.Loss) *Error {
	return &Error{Op: op, Key: key, Outcome: observe.OutcomeLost, Since: l.At, Err: &loss{l.Cause}}
}

// firstAnswer is for exits that wait for the first answer only.
var firstAnswer = endedBy(errors.New("the first answer is enough"))

// exit ends one unit of o: an Unlock or a Hold's Release. It returns an error as Hold.Release
// documents. wait bounds how long the caller waits for Redis; nil: for the first answer only.
// values is the context with which the unit was acquired, for a Tracer.
func (m *Manager) exit(op string, o *lock.Owner, wait, values context.Context) error {
	key, class := o.Name(), o.Settings().Class
	var ended func(observe.Outcome, time.Duration, error)
	var held time.Duration
	if m.reports.Observed() {
		ended, held = m.reports.Releasing(op, o, wait, values), m.leases.Glance()-o.Since()
	}
	if wait == nil {
		wait = firstAnswer
	}
	r := o.Exit(wait)
	var err *Error
	fail := func(outcome observe.Outcome, kind error) {
		err = &Error{Op: op, Key: key, Outcome: outcome, Err: joined(kind, r.Err, releasedLater)}
	}
	outcome := observe.OutcomeReleased
	switch {
	case r.Stale:
		err := mistake(op, key, ErrNotHeld)
		m.reports.Released(class, "", 0, err.Err, ended)
		return err
	case r.HandedOff:
		outcome = observe.OutcomeHandedOff
	case r.Nested:
		outcome = observe.OutcomeNested
		if l := o.Err(); l != nil {
			err = m.lossError(op, key, l)
		}
	case r.Lost != nil:
		err = m.lossError(op, key, r.Lost)
	case r.Unknown:
		fail(observe.OutcomeUnknown, ErrUnknown)
	case r.Err != nil:
		fail(observe.OutcomeUnavailable, ErrUnavailable)
	}
	var failed, why error
	if err != nil {
		outcome, failed, why = err.Outcome, err, err.Err
	}
	if m.reports.Observed() {
		m.reports.Released(class, outcome, held, why, ended)
	}
	return failed
}
