package report

import (
	"context"
	"fmt"
	"time"

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

// sharedEvent is eventOf for units.
func sharedEvent(kind observe.EventKind, g *lock.SharedHeld, c renewal.Cause) observe.Event {
	k := g.Key()
	return observe.Event{
		Kind: kind, Key: k.Name(), Class: k.Settings().Class, Holder: g.Field(),
		LastConfirmed: c.LastConfirmed, Deadline: c.Deadline, Failures: c.Failures, Lease: k.Settings().Lease.For,
	}
}
