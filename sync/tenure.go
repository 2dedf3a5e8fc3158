package anteroom

import (
	"context"
	"time"
	"weak"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// tenure is one local owner's possession of a grant, from its admission to its last exit.
// One by Lock has its place in the grant, where the next one by Lock overwrites it, so that
// handing on allocates nothing. One by Acquire belongs to its Holds. It must not refer to
// them: the garbage collector tells when nobody can release it.
type tenure struct {
	g         *grant
	number    uint64        // the queue's
	goroutine int64         // that acquired it
	handOffs  int32         // since the turn began
	holds     int16         // that are not released; guarded by entry.mu
	lock      bool          // by Lock or TryLock: its owner cannot be told. It never changes
	since     time.Duration // when it began, as renewal.Manager.Now counts
	token     int64
	callSite  string

	// Of one by Acquire; sentinel and values are written before its owner is admitted.
	sentinel weak.Pointer[sentinel]
	values   context.Context // of the first Hold; nil: they lead to another Hold, and the sentinel has them
	ctx      *holdContext    // parent of the Holds' contexts, which a loss ends; on demand, guarded by entry.mu
}

// placeOfLocks returns where the owners by Lock stand, one after the other. Only the waiter
// that the queue has admitted asks for it; a grant that comes to Holds has none.
func (g *grant) placeOfLocks() *tenure {
	t := g.byLock.Load()
	if t == nil {
		t = &tenure{g: g, lock: true}
		g.byLock.Store(t)
	}
	return t
}

// admit begins the tenure t for the caller of r, if the grant is still worth having and is
// what the caller asked for. A grant whose renewal the watchdog has stopped is not: that was
// held against the owner before, who had decided to pass it on already.
func (g *grant) admit(t *tenure, r *request, now time.Duration) bool {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	if g.loss != nil || !g.lease.Load().Valid(now) || g.unrenewed.Load() || !g.terms.sameLease(r.terms) {
		return false
	}
	if !t.lock { // others read a Lock's place without mu
		t.g = g
	}
	w := &r.waiter
	t.number, t.goroutine, t.handOffs = w.Number, int64(w.Owner), int32(w.HandOffs)
	t.since, t.callSite = now, r.terms.callSite
	if g.token > 0 {
		t.token = g.token + int64(t.handOffs)
	}
	g.owner = t
	return true
}

// began returns when the tenure began.
func (t *tenure) began() time.Time { return t.g.e.m.leases.Zero().Add(t.since) }

// current returns the tenure of g that has not ended, or nil. The caller has entry.mu.
func (g *grant) current() *tenure {
	if g == nil || g.owner == nil || !g.owner.live() {
		return nil
	}
	return g.owner
}

// live reports whether t has not ended. It stays the grant's owner until the next one is
// admitted.
func (t *tenure) live() bool { return t.g.e.q.Current().Number == t.number }

// reachable reports whether anybody can still release t. The caller has entry.mu.
func (t *tenure) reachable() bool {
	return t.lock || t.holds == 0 || t.g.terms.fixed() || t.sentinel.Value() != nil
}

// reportContext returns the context with whose values t was acquired, for reports about it.
// It has none where t is nil or by Lock.
func (t *tenure) reportContext() context.Context {
	switch {
	case t == nil || t.lock:
	case t.values != nil:
		return t.values
	default:
		if s := t.sentinel.Value(); s != nil {
			return s.values
		}
	}
	return context.Background()
}

// end ends the contexts of all Holds of t; the first cause stays. When it returns they have
// ended, also where another goroutine is just about to end them. It does no I/O and calls
// nobody but the contexts' own functions.
func (t *tenure) end(cause error) {
	t.g.e.mu.Lock()
	ctx := t.ctx
	t.g.e.mu.Unlock()
	if ctx != nil {
		ctx.end(cause)
	}
}

// add makes h one of the Holds of t beside outer, whose sentinel it shares. It does nothing
// where the lock is lost, which is the error, or outer was released.
func (t *tenure) add(h, outer *Hold, op string) error {
	t.g.e.mu.Lock()
	defer t.g.e.mu.Unlock()
	if l := t.g.loss; l != nil {
		return t.g.lossError(op, l)
	}
	if outer.sentinel != nil {
		h.sentinel = outer.sentinel
		t.holds++
	}
	return nil
}

// remove takes h out of the Holds of t. It returns its sentinel, nil where h was taken out
// before, and its context, nil where nobody has asked for it.
func (t *tenure) remove(h *Hold) (*sentinel, *holdContext) {
	t.g.e.mu.Lock()
	defer t.g.e.mu.Unlock()
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

// exit ends one unit of t: an Unlock or a Hold's Release. It returns an error as Hold.Release
// documents. wait bounds how long the caller waits for Redis; nil, or ended: for the first
// answer only. values is the context with which the unit was acquired, for a Tracer; nil:
// it hears nothing. exit gives back one reference on the entry.
func (t *tenure) exit(op string, wait, values context.Context) error {
	g, e := t.g, t.g.e
	var ended func(Outcome, time.Duration, error)
	if e.m.reports.observed && values != nil {
		ended = e.m.reports.releasing(op, t, wait, values)
	}
	// Of a NotReentrant lock several goroutines may try to unlock at once, of which one is
	// right.
	shared := t.lock && e.cfg.Reentrancy == NotReentrant
	if shared {
		e.mu.Lock()
	}
	// Both clocks are read, however short the tenure seems to be: a process that was stopped
	// or suspended in it learns here that the lock is lost, before the renewal loop runs. And
	// t is read before the exit, after which the next owner by Lock overwrites it.
	now := e.m.leases.Now()
	held, number, handOffs := now-t.since, t.number, int(t.handOffs)
	mayHandOff := g.mayHandOff(handOffs, now)
	over := !g.lease.Load().Valid(now)
	if shared {
		e.mu.Unlock()
	}
	exit, order := e.q.Exit(number, mayHandOff)
	if exit == queue.Stale && t.lock {
		// A tenure by Lock ends by its own Unlock only, so another one has ended it.
		err := &Error{Op: op, Key: e.key, Outcome: OutcomeMistake, Err: ErrNotHeld}
		e.m.reports.released(e, "", 0, err, ended)
		return err
	}
	defer e.unref()
	var outcome Outcome
	var err error
	switch exit {
	case queue.HandedOff:
		outcome = OutcomeHandedOff
	case queue.Final:
		var failed *Error
		// One that has ended bounds nothing any more, and the first answer is worth the wait.
		if wait != nil && wait.Err() == nil {
			outcome, failed = g.releaseWithin(wait, handOffs)
		} else {
			outcome, failed = g.releaseByOwner(handOffs, t.lock)
		}
		if failed != nil && over && outcome != OutcomeLost {
			// Its context has said so, or would have. That no release is confirmed makes it no better.
			l := &loss{Cause: g.lease.Load().Loss(LostDeadline), owners: 1, owner: t}
			g.tell(l)
			outcome, failed = OutcomeLost, g.lossError(op, l)
		}
		if failed != nil {
			failed.Op = op
			err = failed
		}
	case queue.Nested:
		outcome = OutcomeNested
		if err = g.err(op, now); err != nil {
			outcome = OutcomeLost
		}
	default:
		e.do(order)
		outcome, err = OutcomeLost, t.exitLost(op, exit == queue.WasLost, now)
	}
	if e.m.reports.observed {
		e.m.reports.released(e, outcome, held, err, ended)
	}
	return err
}

// exitLost is what remains of an exit of a tenure that was lost before, and returns the
// loss. Nothing is to be released but a lock that was given up here and may still be in
// Redis: that is removed with the last unit, since work under an outer Hold may still run.
func (t *tenure) exitLost(op string, last bool, now time.Duration) error {
	g, e := t.g, t.g.e
	if last {
		e.m.unlistLost(g)
	}
	err := g.err(op, now)
	if err == nil {
		err = g.lossError(op, &loss{Cause: renewal.Cause{Reason: LostGone, At: time.Now()}})
	}
	if !t.lock {
		e.mu.Lock()
		last = t.holds == 0
		e.mu.Unlock()
	}
	if last {
		g.burnLost()
	}
	return err
}

// expel ends a lost tenure by Lock whose goroutine has ended: nobody else could unlock it,
// and the local queue would stand still for good.
func (t *tenure) expel() {
	e := t.g.e
	for {
		exit, order := e.q.Exit(t.number, false)
		if exit != queue.Nested && exit != queue.WasLost {
			return
		}
		if exit == queue.WasLost {
			e.m.unlistLost(t.g)
		}
		e.do(order)
		e.unref()
	}
}

// listLost lists a lost tenure by Lock for the watchdog until its last exit: should its
// goroutine end, nobody else would unlock it.
func (m *Manager) listLost(g *grant, t *tenure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.live() { // its last exit may have come a moment ago
		m.lost[g.n] = g
	}
}

func (m *Manager) unlistLost(g *grant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.lost, g.n)
	if g.watched {
		m.went = append(m.went, g.n)
	}
}
