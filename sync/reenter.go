package anteroom

import (
	"context"

	"github.com/anteroom/anteroom/queue"
)

// outer returns the Hold of this lock that ctx carries, nil where there is none or it
// does not matter.
func (mu *Mutex) outer(ctx context.Context) *Hold {
	if mu.cfg.Reentrancy == NotReentrant {
		return nil
	}
	h, _ := HoldFrom(ctx)
	for ; h != nil; h, _ = HoldFrom(h.values) {
		if e := h.t.g.e; e.m == mu.m && e.key == mu.key {
			return h
		}
	}
	return nil
}

// reenter makes a further Hold of the tenure of h. It returns nil, nil where h is not live
// any more, so that the caller queues like everybody else.
func (h *Hold) reenter(ctx context.Context, r *request) (*Hold, error) {
	t, e := h.t, h.t.g.e
	if !e.tryRef() {
		return nil, nil
	}
	entered := false
	defer func() {
		if !entered {
			e.unref()
		}
	}()
	fail := func(o Outcome, err error) (*Hold, error) {
		return nil, &Error{Op: r.op, Key: e.key, Outcome: o, Err: err}
	}
	if released, loss := h.look(r.op); released || loss != nil {
		return nil, loss
	}
	if ctx.Err() != nil {
		return fail(OutcomeCancelled, joined(ErrNotAcquired, ctx.Err(), otherCause(ctx)))
	}
	if r.terms != &r.settings.terms {
		return fail(OutcomeMistake, configError("Lease", "cannot be given to a Hold inside another one, with which it shares the lease; use Extend"))
	}
	if field := e.differs(r.settings); field != "" {
		return fail(OutcomeMistake, e.contradicts(field))
	}
	// Its place among the Holds comes first: where the unit is added, a Release of h beside
	// this one is an inner exit, and the last one is the new Hold's.
	inner := &Hold{t: t, by: h.by, values: ctx}
	if err := t.add(inner, h, r.op); err != nil || inner.sentinel == nil {
		return nil, err
	}
	switch e.q.ReenterTenure(t.number) {
	case nil:
		entered = true
		return inner, nil
	case queue.ErrCountLimit:
		t.remove(inner)
		return fail(OutcomeFailed, ErrReentryLimit)
	}
	t.remove(inner)
	if l := t.g.lossNow(); l != nil {
		return nil, t.exitLost(r.op, false, e.m.leases.Now()) // h may have been released meanwhile
	}
	if released, _ := h.look(r.op); released {
		return nil, nil
	}
	return nil, t.g.lossError(r.op, t.g.lossOr(LostGone))
}

// reenter enters again, with the caller's reference, for the goroutine that has the
// lock by Lock or TryLock already. Only itself can end that. Of a lost lock Lock gets one
// unit more, since it would wait for itself, and TryLock the loss.
func (mu *Mutex) reenter(e *entry, r *request) error {
	valid, try := e.cur.Load().valid(mu.m.leases.Now()), r.waiter.Kind.IsRefusable()
	err := queue.ErrWasLost
	if valid || !try {
		_, err = e.q.ReenterOwner(r.waiter.Owner, !try)
	}
	switch err {
	case nil:
	case queue.ErrCountLimit:
		return mu.mistake(r.op, ErrReentryLimit)
	default:
		return &Error{Op: r.op, Key: e.key, Outcome: OutcomeLost, Err: ErrLost}
	}
	if !valid {
		mu.m.reports.reentryLost(e)
	}
	return nil
}
