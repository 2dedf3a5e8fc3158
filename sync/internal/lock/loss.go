package lock

import (
	"cmp"
	"context"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// What finds that Redis no longer has a lock, beside renewal.ByRenewal: see renewal.Cause.By.
const (
	ByRelease = "when it was released"
	ByExtend  = "by Extend"

	byCommand = "by a command"
)

// Loss says when and why a lock was lost.
type Loss struct {
	renewal.Cause
	Of      []*Owner // whose it was, as far as they are known by name
	Unnamed bool     // there are others inside, or on their way out
	Note    any      // of the Holder
}

// Holder is notified of a loss.
type Holder interface {
	// Lost is called once when what o has is lost, before anybody else can get it, by a goroutine that must not be held up: it
	// does no I/O and calls nobody. It may set Loss.Note.
	Lost(o *Owner, l *Loss)
}

// of is whose it was where that is o, which may be nil.
func of(o *Owner) []*Owner {
	if o == nil {
		return nil
	}
	return []*Owner{o}
}

// AnyOwner returns one of those whose it was, or nil.
func (l *Loss) AnyOwner() *Owner {
	if len(l.Of) == 0 {
		return nil
	}
	return l.Of[0]
}

// Error returns the reason.
func (l *Loss) Error() string { return "lock lost: " + string(l.Reason) }

// Loss returns why the grant is lost, nil while nobody has concluded that.
func (g *Held) Loss() *Loss {
	g.k.mu.Lock()
	defer g.k.mu.Unlock()
	return g.loss
}

// LossOr returns why the grant is lost, or, where nobody has concluded that yet, that it is over for the reason.
func (g *Held) LossOr(reason renewal.Reason) *Loss {
	if l := g.Loss(); l != nil {
		return l
	}
	return &Loss{Cause: g.lease.Loss(reason), Of: of(g.Owner())}
}

// report reports a loss. What is lost while it lingers, or units while nobody uses them, nobody has lost.
func (g *Held) report(l *Loss) {
	if len(l.Of) > 0 || !g.is(kept) && (g.u == nil || l.Unnamed) {
		g.k.l.cfg.Reporter.Lost(g, l)
	}
}

// Lost is called by package renewal, once, when it concludes that the lease is lost. It notifies the owner first and
// lets others in afterwards, and does no I/O.
func (g *Held) Lost(c renewal.Cause) {
	if g.u != nil {
		g.lostUnits(c)
		return
	}
	k, gone := g.k, c.Reason == renewal.ReasonGone
	if gone && g.said() {
		c.Reason, c.By = renewal.ReasonForced, ""
	}
	l := &Loss{Cause: c}
	k.mu.Lock()
	o := g.Current()
	l.Of, g.loss = of(cmp.Or(o, g.by)), l // whose exit has overtaken this is notified by that
	unowned := !gone && g.unownedLocked()
	k.mu.Unlock()
	if unowned {
		return // whom it was granted for finds the loss
	}
	if o != nil {
		if o.Holder != nil {
			o.Holder.Lost(o, l)
		}
		if o.Kind.CanNotify() {
			defer o.abandon() // a fixed lease that nobody releases must not keep its key in use
		}
	}
	// Until the confirmed lease is over the owner has the margin to react, unless Redis has said that the lock is gone.
	var left time.Duration
	if !gone && !g.is(deleteOnLoss) {
		left = g.leaseLeft(c.Deadline)
	}
	k.handle(conversation.Event{Kind: conversation.Ended, N: g.n, Lease: left})
	who, _ := k.q.Lose(g.n)
	switch {
	case o == nil, who != &o.Stay:
		g.exited() // nobody is in who would exit
	case !o.Kind.CanNotify() && g.is(ownerEnded):
		o.expel()
	}
	k.sendAsync()
	if who == nil || who.Kind.CanNotify() {
		o = nil
	}
	k.l.unregister(g, o)
}

// expire concludes that the lease is over, if it is.
func (g *Held) expire(now Moment) {
	if !g.lease.Valid(now) {
		g.lease.Lose(renewal.Cause{Reason: renewal.ReasonDeadline})
	}
}

// forced takes in a message, which anybody can send: record n was deleted on purpose.
func (k *Key) forced(n uint64) {
	if k.u != nil {
		k.unitsForced(n)
		return
	}
	k.l.newest(&k.deleted, n) // newGrantLocked asks if it comes first
	if g := k.cur.Load(); g != nil && g.n == n {
		g.forced()
	}
}

// forced handles the message, which anybody can send, that somebody has deleted the lock. A renewal asks Redis whether
// that is so, or verify for a fixed lease, which has none. Without an answer it is believed to be lost, and nothing is
// sent while its owner may work.
func (g *Held) forced() {
	asked := g.said()
	g.force.Store(int64(g.k.l.now()))
	if g.k.endLinger() {
		return // it lingered: nothing renews it, and the release shows whether it was there
	}
	if !g.lease.Hurry() && !asked {
		g.ask()
	}
}

// said reports whether somebody has said that g was deleted on purpose, and no command that was sent since has found it.
func (g *Held) said() bool {
	at := g.force.Load()
	return at > 0 && !g.lease.LastConfirmed().After(g.k.l.zero.Add(Moment(at)))
}

// ask verifies in the background that a fixed lease was forced.
func (g *Held) ask() {
	l := g.lease
	go func() { // Close waits for the command, not for what it means: the lease is lost or ended by then
		if o := g.verify(context.Background()); o != lettucecompat.OutcomeOK && o != lettucecompat.OutcomeGone {
			l.Lose(renewal.Cause{Reason: renewal.ReasonForced})
		}
	}()
}

// verify asks Redis whether the grant is there, by a renewal for as long as its owner counts with anyway. Where it is
// not, the loss is concluded.
func (g *Held) verify(ctx context.Context) lettucecompat.Outcome {
	l := g.lease
	left := max(g.leaseLeft(l.Deadline()), time.Millisecond)
	r := g.k.l.wire.Extend(ctx, lettucecompat.Renewal{Key: g.k.name, Field: g.Field(), Lease: left}, g.k.set.Timeout)
	switch r.Outcome {
	case lettucecompat.OutcomeOK:
		g.force.Store(0)
	case lettucecompat.OutcomeGone:
		l.Lose(renewal.Cause{Reason: renewal.ReasonGone, Err: r.Err})
	}
	return r.Outcome
}

// StopRenewing lets the lease of o end by itself, if o is still the owner.
func (g *Held) StopRenewing(o *Owner) bool {
	g.k.mu.Lock()
	defer g.k.mu.Unlock()
	if g.Current() != o || o.lease.Fixed() || g.set(unrenewed) {
		return false
	}
	g.lease.StopRenewing()
	return true
}

// Revoke takes the lock from o, if o is still the owner: every owner is admitted under Key.mu, too, so what is held
// against one never strikes the next. ended: the goroutine of o has ended, so that Lost exits for it. remove: nothing waits
// for o to react.
func (g *Held) Revoke(o *Owner, reason renewal.Reason, ended, remove bool) bool {
	g.k.mu.Lock()
	defer g.k.mu.Unlock()
	if g.Current() != o {
		return false
	}
	if ended {
		g.set(ownerEnded)
	}
	if remove {
		g.set(deleteOnLoss)
	}
	return g.lease.Lose(renewal.Cause{Reason: reason})
}
