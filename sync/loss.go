package anteroom

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/watchdog"
)

// loss says when and why a grant was lost.
type loss struct {
	renewal.Cause

	// Of a loss that was told, when it is reported: to how many holds, whose they were, and
	// what the watchdog had said of the hold, which it forgets when the grant is unlisted.
	owners   int
	owner    *tenure
	verdicts []watchdog.Verdict
}

// What can find that Redis no longer has a lock, beside renewal.ByRenewal: see Cause.By.
const (
	byRelease  = "when it was released"
	byExtend   = "by Extend"
	byWatchdog = "by the watchdog"
)

// Lost is called by the renewal.Manager, once, when it concludes that the lease is
// lost. It tells first and lets others in afterwards, and does no I/O. It calls nothing
// that is the user's: reports.lost tells others after it, on another goroutine.
func (g *grant) Lost(c renewal.Cause) {
	defer g.e.unref()     // the grant's own reference
	defer g.e.m.unlist(g) // after its clean-up is counted: Close waits for both
	l := &loss{Cause: c}
	t := g.markLost(l)
	met, order := g.e.q.Lose(g.n)
	g.e.do(order)
	l.verdicts = g.verdicts(t)
	if met == queue.Lost && t != nil { // nil: its waiter is just coming in, and finds the loss
		if g.ownerGone.Load() {
			t.expel()
		} else if g.e.cfg.Reentrancy == ByGoroutine {
			g.e.m.listLost(g, t)
		}
	}
	// The cause's deadline, since begin may not have put the lease into the grant yet.
	doomed, over := g.doomed.Load(), c.Deadline.Add(g.terms.margin)
	g.burn(doomed, func(f *field, now time.Time) bool {
		return f.lost(l.Reason, now, over, !g.terms.fixed(), doomed)
	})
	if met == queue.Granted {
		g.burnLost() // its last owner has passed it on, and the next had not come in yet
	}
}

// verdicts are those of the watchdog on the hold of t, the last owner of g. What it had to
// say of an earlier owner is not among them. It takes the watchdog's mutex and allocates one
// slice: the renewal loop calls it, once for each grant that is lost.
func (g *grant) verdicts(t *tenure) []watchdog.Verdict {
	list := g.e.m.dog.Verdicts(g.n)
	if t == nil {
		return list
	}
	return slices.DeleteFunc(list, func(v watchdog.Verdict) bool { return v.Check == watchdog.Holder && v.At.Before(t.began()) })
}

// markLost notes the loss l, ends the contexts of the last owner, and counts who had the
// lock. It returns that owner, whose tenure may have ended.
func (g *grant) markLost(l *loss) *tenure {
	g.e.mu.Lock()
	g.loss = l
	t := g.owner
	if t != nil {
		l.owners = int(t.holds)
	}
	g.e.mu.Unlock()
	if t != nil {
		t.end(g.lossError("hold", l))
		if t.lock && t.live() {
			l.owners = 1
		}
	}
	l.owner = t
	return t
}

// lossNow returns why the grant was lost, nil while nobody has concluded that.
func (g *grant) lossNow() *loss {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	return g.loss
}

// lossOr returns why the grant was lost, where that is certain but may not have been
// told yet. Where the loss was concluded and only its telling is on its way, that is what
// counts: the deadline of such a lease may lie far ahead.
func (g *grant) lossOr(reason LossReason) *loss {
	if l := g.lossNow(); l != nil {
		return l
	}
	return &loss{Cause: g.lease.Load().Loss(reason)}
}

// lossError makes the error that reports l.
func (g *grant) lossError(op string, l *loss) *Error {
	return &Error{Op: op, Key: g.e.key, Outcome: OutcomeLost, Since: l.At, Err: l}
}

// err returns nil while the grant is valid, and otherwise why it is not.
func (g *grant) err(op string, now time.Duration) error {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	return g.errLocked(op, now)
}

func (g *grant) errLocked(op string, now time.Duration) error {
	if g.loss != nil {
		return g.lossError(op, g.loss)
	}
	if lease := g.lease.Load(); !lease.Valid(now) {
		return g.lossError(op, &loss{Cause: lease.Loss(LostDeadline)})
	}
	return nil
}
