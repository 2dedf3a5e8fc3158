package anteroom

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/anteroom/anteroom/internal/waits"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/watchdog"
)

// services is all that the watchdog sees of a Manager: its Source, Prober and Actor.
type services struct {
	m       *Manager
	answers []watchdog.Status // to the last question, which is over when the next one is put
}

// Status asks Redis about holds.
func (s *services) Status(ctx context.Context, holds []watchdog.Facts) []watchdog.Status {
	s.answers = slices.Grow(s.answers[:0], len(holds))[:len(holds)] // each is written by one goroutine
	numbers := make([]uint64, len(holds))
	for i := range holds {
		numbers[i] = holds[i].ID
		s.answers[i] = watchdog.Status{Answered: true, Gone: true} // it has ended here
	}
	s.m.locks.Status(ctx, s.m.locks.HeldAll(numbers), func(i int, r lettucecompat.StatusReply) {
		is, gone := r.Outcome == lettucecompat.OutcomeOK, r.Outcome == lettucecompat.OutcomeGone
		s.answers[i] = watchdog.Status{
			Answered: is || gone, Present: is, Gone: gone, Count: r.Count, Fields: r.Fields, TTL: r.TTL, Err: r.Err,
		}
	})
	return s.answers
}

// Ping asks whether Redis answers.
func (s *services) Ping(ctx context.Context) error { return s.m.wire.Ping(ctx, 0) }

// ProbeDelivery asks whether messages arrive.
func (s *services) ProbeDelivery(ctx context.Context) error { return s.m.wire.Probe(ctx) }

// byWatchdog is renewal.Cause.By of what the watchdog has found.
const byWatchdog = "by the watchdog"

// Changes returns which grants the watchdog has not heard of, and which of those that it
// knows have ended.
func (s *services) Changes() (came, went []uint64) { return s.m.locks.Changes() }

// Lookup describes a grant; false where it has ended.
func (s *services) Lookup(id uint64) (watchdog.Facts, bool) {
	switch g, o := s.m.locks.OfNumber(id); {
	case g != nil: // of units the owners are watched one by one
		return facts(g, g.Current(), s.m.leases.Now())
	case o != nil:
		return shareFacts(o), true
	}
	return watchdog.Facts{}, false
}

// LookupAll goes through the grants step by step: each step reads, of every one, a place in
// memory that the one before has led to. The processor then waits for several together, where
// facts would wait for one after the other: with 100,000 holds none of it is in a cache.
func (s *services) LookupAll(list []watchdog.Facts) {
	ids := make([]uint64, 0, 32)
	for i := range list {
		ids = append(ids, list[i].ID)
	}
	grants := s.m.locks.HeldAll(ids)
	for _, g := range grants {
		if g != nil {
			g.Lease()
			g.Unrenewed()
		}
	}
	for _, g := range grants {
		if g != nil {
			g.Lease().State()
			g.Key().Queue().Owner()
		}
	}
	now := s.m.leases.Now()
	for i, g := range grants {
		if g != nil {
			list[i], _ = facts(g, g.Current(), now)
		} else {
			list[i], _ = s.Lookup(list[i].ID)
		}
	}
}

// Renewals returns what the renewals say about themselves.
func (s *services) Renewals() watchdog.RenewalStats {
	st := s.m.leases.Stats()
	return watchdog.RenewalStats{
		LoopLastRound: st.LastRound, NextDue: st.NextDue,
		SuccessRate: st.SuccessRate(), Window: int(st.Answered + st.Failed),
	}
}

// factsOf begins the facts of what the watchdog knows by the number id.
func factsOf(id uint64, k *lock.Key, since lock.Moment) (watchdog.Facts, *settings) {
	set := settingsOf(k)
	cfg := &set.cfg
	return watchdog.Facts{
		ID: id, Key: k.Name(), Class: cfg.Name, Since: set.m.leases.Zero().Add(since), Lease: cfg.LeaseTime, Reachable: true,
		Period: cfg.WatchdogPeriod, AlertThreshold: cfg.AlertThreshold, Strategy: watchdog.Strategy(cfg.Recovery),
	}, set
}

// facts describes a grant, which o has, for the watchdog; false where it has ended. Of one that is lost there is
// something to report if the owner by Lock has not unlocked yet.
func facts(g *lock.Held, o *lock.Owner, now time.Duration) (watchdog.Facts, bool) {
	lease, terms := g.Lease(), g.Terms()
	f, set := factsOf(g.Number(), g.Key(), g.Since())
	m, cfg := set.m, &set.cfg
	granted := f.Since
	byLock := o != nil && !o.Kind.CanNotify()
	if o != nil {
		f.Since, f.CallSite = m.leases.Zero().Add(o.Since()), o.CallSite
		if byLock && cfg.Reentrant {
			f.Goroutine = int64(o.Goroutine)
		}
	}
	if lease.State() != renewal.StateActive {
		if !byLock || g.Loss() == nil {
			return watchdog.Facts{}, false
		}
		f.Lost, f.Fixed = true, true
		return f, true
	}
	times := lease.Times(now)
	f.Lease, f.RenewalTime = max(terms.For, times.Left), max(terms.Period, 0)
	f.LastConfirmed, f.Deadline, f.NextRenewal = times.Confirmed, times.Deadline, times.NextDue
	if lease.Renewals() == 0 && granted.After(f.LastConfirmed) {
		f.LastConfirmed = granted // of a call: the lease counts from a command of long before it
	}
	f.Fixed, f.RenewalFailures = terms.Fixed() || g.Unrenewed() || o == nil && cfg.Linger > 0, lease.Failures() // what lingers is not renewed
	f.Stretched = g.Stretched()
	if o != nil && cfg.Linger > 0 && f.LastConfirmed.Before(f.Since) && now-o.Since() < terms.Period {
		f.Fixed = true // it was not renewed before its owner came, and need not have been yet
	}
	if o != nil { // between two owners nobody holds for too long, and nobody is gone
		f.MaxHold = cfg.MaxHold
		if t, is := o.Holder.(*tenure); is && !terms.Fixed() {
			f.Reachable = t.reachable()
		}
	}
	return f, true
}

// Act carries out what the watchdog decides. It never waits for Redis.
func (s *services) Act(id uint64, action string, f watchdog.Finding) bool {
	switch action {
	case watchdog.ActionRestartRenewal:
		s.m.leases.Restart()
		return true
	case watchdog.ActionReconnect:
		s.m.wire.Reconnect()
		return true
	}
	g, o := s.m.locks.OfNumber(id)
	switch {
	case g == nil:
		return endShare(o, action, f)
	case g.Loss() != nil && action == watchdog.ActionDelete:
		g.Expel()
		return true
	case action == watchdog.ActionHurryRenewal:
		return g.Lease().Hurry()
	case action == watchdog.ActionLose && f == watchdog.LeaseOver:
		return g.Lease().Lose(renewal.Cause{Reason: renewal.ReasonDeadline})
	case action == watchdog.ActionLose:
		return g.Lease().Lose(renewal.Cause{Reason: renewal.ReasonGone, By: byWatchdog})
	}
	return strike(g, action, f, s.m.leases.Now())
}

// strike acts against the owner that the watchdog accuses, and declines where the accusation is not true of the present
// one. What is true of an owner stays true, so it is enough that the lock is taken from the owner that was checked.
func strike(g *lock.Held, action string, f watchdog.Finding, now time.Duration) bool {
	o := g.Current()
	is, ok := facts(g, o, now)
	if o == nil || !ok || refuted(&is, f) {
		return false
	}
	if action == watchdog.ActionStopRenewing {
		return g.StopRenewing(o)
	}
	// An owner that has ended cannot have passed the lock on.
	return g.Revoke(o, renewal.ReasonWatchdog, f == watchdog.HolderGone, action == watchdog.ActionDelete)
}

// refuted reports whether f is not true of the hold, which the facts are of.
func refuted(is *watchdog.Facts, f watchdog.Finding) bool {
	return f == watchdog.OverMaxHold && (is.MaxHold == 0 || time.Since(is.Since) < is.MaxHold) || f == watchdog.HolderUnreachable && is.Reachable
}

// waitedFor yields the live keys that have waiters.
func (m *Manager) waitedFor() iter.Seq[waits.Key] {
	return func(yield func(waits.Key) bool) {
		for _, k := range m.locks.All() {
			cfg := &settingsOf(k).cfg
			if k.Queue().Len() > 0 && !yield(waits.Key{
				Name: k.Name(), Queue: k.Queue(), Limit: cmp.Or(cfg.LongWait, m.cfg.LongWait),
				OwnerUnlocks: cfg.Reentrant, Of: k,
			}) {
				return
			}
		}
	}
}
