package anteroom

import (
	"context"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/observe"
)

// outer returns the innermost Hold of the key that ctx carries and that is not released, nil
// where there is none.
func (m *Manager) outer(ctx context.Context, key string) *Hold {
	h, _ := HoldFrom(ctx)
	for ; h != nil; h, _ = HoldFrom(h.values) {
		if h.t.m != m || h.Key() != key {
			continue
		}
		if released, _ := h.check(""); !released {
			return h
		}
	}
	return nil
}

// reenter makes a further Hold of the tenure of h. It returns nil, nil where h is not live
// any more.
func (h *Hold) reenter(ctx context.Context, r *request) (*Hold, error) {
	t, o := h.t, &h.t.owner
	fail := func(outcome observe.Outcome, err error) (*Hold, error) {
		return nil, &Error{Op: r.op, Key: h.Key(), Outcome: outcome, Err: err}
	}
	if released, loss := h.check(r.op); released || loss != nil {
		return nil, loss
	}
	if ctx.Err() != nil {
		return fail(observe.OutcomeCancelled, joined(ErrNotAcquired, ctx.Err(), otherCause(ctx)))
	}
	if r.lease != nil {
		return fail(observe.OutcomeMistake, configError("Lease", "cannot be given to a Hold inside another one, with which it shares the lease"))
	}
	if r.note != "" {
		return fail(observe.OutcomeMistake, configError("Note", "cannot be given to a Hold inside another one"))
	}
	if err := t.m.compatible(settingsIn(o), r.settings, o.CallSite); err != nil {
		return fail(observe.OutcomeMistake, err)
	}
	// Its place among the Holds comes first: where the unit is added, a Release of h beside
	// this one is an inner exit, and the last one is the new Hold's.
	inner := &Hold{t: t, values: ctx, writes: r.units == toWrite}
	if !t.add(inner, h) {
		return nil, nil
	}
	var err error
	if inner.writes {
		err = o.AgainToWrite()
	} else {
		err = o.Reenter(false)
	}
	if err == nil {
		return inner, nil
	}
	t.remove(inner)
	if released, _ := h.check(r.op); released { // what kept the new one out may be that
		return nil, nil
	}
	switch err {
	case lock.ErrReads:
		return fail(observe.OutcomeMistake, ErrUpgrade)
	case queue.ErrCountLimit:
		return fail(observe.OutcomeFailed, ErrReentryLimit)
	}
	return nil, t.m.lossError(r.op, h.Key(), o.LossOr(renewal.ReasonGone))
}

// reenter enters again for the goroutine that has the
// lock by Lock or TryLock already. Only itself can end that. Of a lost lock Lock gets one
// unit more, since it would wait for itself, and TryLock the loss.
func (m *Manager) reenter(k *lock.Key, op string, try bool) error {
	valid := k.Held().Owner().Err() == nil
	err := queue.ErrWasLost
	if valid || !try {
		err = k.Held().Owner().Reenter(!try)
	}
	switch err {
	case nil:
	case queue.ErrCountLimit:
		return mistake(op, k.Name(), ErrReentryLimit)
	default:
		return &Error{Op: op, Key: k.Name(), Outcome: observe.OutcomeLost, Err: ErrLost}
	}
	if !valid {
		m.reports.ReentryLost(k)
	}
	return nil
}
