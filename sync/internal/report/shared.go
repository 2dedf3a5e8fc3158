package report

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/waits"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/observe"
)

// This file reports locks in units: it is lock.SharedReporter.

// Stated notes that a statement for k was answered, or had no usable answer.
func (p *Reports) Stated(k *lock.SharedKey, err error) {
	shard := shown(p.wire.Shard(k.Name()))
	switch {
	case err == nil && p.troubles.some.Load():
		p.troubles.answered(k.Name(), shard, &shard)
	case err != nil && !p.cfg.Closing():
		p.troubles.observed(k.Name(), k.Settings().Class, shard, err, true)
	}
}

// Capacity reports that those who hold the Semaphore count with so many units in all.
func (p *Reports) Capacity(k *lock.SharedKey, least int64) {
	own := k.Settings().Capacity
	text := fmt.Sprintf("the capacity is %d here, and another holder counts with %d: the lesser one counts", own, least)
	if least == own {
		text = fmt.Sprintf("the capacity that counts is %d again, as here", own)
	}
	p.event(context.Background(), observe.Event{Kind: observe.EventCapacity, Key: k.Name(), Class: k.Settings().Class, Text: text})
}

// LostShared reports a loss. Its owners were notified before: this is for others.
func (p *Reports) LostShared(g *lock.SharedHeld, l *lock.Loss) {
	class := g.Key().Settings().Class
	if l.By == renewal.ByRenewal {
		p.to.Renewed(class, observe.OutcomeRefused, 0)
	}
	p.to.Lost(class, observe.LossReason(l.Reason))
	ev := sharedEvent(observe.EventLost, g, l.Cause)
	ev.Reason, ev.Since, ev.Err, ev.Owners = observe.LossReason(l.Reason), l.At, l.Err, len(l.Shares)
	ev.Text = LossText(l.Reason, false)
	if l.By != "" {
		ev.Text += ", found " + l.By
	}
	if len(l.Shares) > 0 {
		ev.CallSite = l.Shares[0].CallSite
	}
	p.event(p.cfg.SharedValues(l.Shares), ev)
}

// UnlockLostShared is UnlockLost for an RWMutex.
func (p *Reports) UnlockLostShared(s *lock.Share, c renewal.Cause, since time.Time, why error) {
	ev := sharedEvent(observe.EventUnlockLost, s.Held(), c)
	ev.Text = "Unlock of a lock that had been lost"
	ev.Reason, ev.Since, ev.Err, ev.CallSite = observe.LossReason(c.Reason), since, why, s.CallSite
	p.event(context.Background(), ev)
}

func (p *Reports) sharedWaitInfo(k *lock.SharedKey, w waits.Wait) observe.WaitInfo {
	info := observe.WaitInfo{
		Key: k.Name(), Class: k.Settings().Class, Goroutine: int64(w.Waiter.Owner), Kind: KindName(w.Waiter.Kind),
		Since: p.leases.Dated(w.Waiter.Since), CallSite: CallSiteOf(w.Waiter), Owner: int64(w.Current.Owner),
	}
	if o := k.State().Writes; o != nil && o.Number() == w.Current.Number {
		info.OwnerKind, info.OwnerSince, info.OwnerSite = KindName(o.Kind), p.leases.Dated(p.leases.Zero().Add(o.Since())), o.CallSite
	}
	return info
}

// describeShared is describeHolder for units.
func (p *Reports) describeShared(ev *observe.Event, k *lock.SharedKey) {
	is := k.State()
	switch {
	case is.Writes != nil:
	case is.Demand.Lost:
		ev.Text = "callers of this process have lost it and not unlocked"
	case is.Readers > 0:
		ev.Text = "read by " + Plural(int(is.Readers), "caller") + " of this process" + sites(is.Held)
	case is.Used > 0:
		ev.Text = Plural(int(is.Used), "unit") + " of it held by callers of this process" + sites(is.Held)
	default:
		ev.Text = "held by other processes, or by other Managers of this one"
	}
	if is.Used > 0 {
		ev.Holder = p.cfg.ClientID
	}
	a := k.Answer()
	switch {
	case a == nil:
	case a.Err != nil:
		ev.Text, ev.Err = "acquire is failing", a.Err
	case is.Standing:
		ev.Text += fmt.Sprintf("; %d in line before this one", a.Ahead)
	}
}

// sites names where some of those who are known by name came in, if that was recorded.
func sites(g *lock.SharedHeld) string {
	var list []string
	for _, o := range g.Owners() {
		if o.CallSite != "" && len(list) < shownLinks {
			list = append(list, o.CallSite)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return ", taken at " + strings.Join(list, ", ")
}

// sharedEvent is eventOf for units.
func sharedEvent(kind observe.EventKind, g *lock.SharedHeld, c renewal.Cause) observe.Event {
	k := g.Key()
	return observe.Event{
		Kind: kind, Key: k.Name(), Class: k.Settings().Class, Holder: g.Field(),
		LastConfirmed: c.LastConfirmed, Deadline: c.Deadline, Failures: c.Failures, Lease: k.Settings().Lease.For,
	}
}
