package anteroom

import (
	"time"

	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/watchdog"
)

// byWatchdog is renewal.Cause.By of what the watchdog has found.
const byWatchdog = "by the watchdog"

// Changes returns which grants the watchdog has not heard of, and which of those that it
// knows have ended.
func (s *services) Changes() (came, went []uint64) { return s.m.locks.Changes() }

// Lookup describes a grant; false where it has ended.
func (s *services) Lookup(id uint64) (watchdog.Facts, bool) {
	g := s.m.locks.Held(id)
	if g == nil {
		return watchdog.Facts{}, false
	}
	return facts(g, s.m.leases.Now())
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
			g.Key().Queue().Word()
		}
	}
	now := s.m.leases.Now()
	for i, g := range grants {
		if list[i] = (watchdog.Facts{}); g != nil {
			list[i], _ = facts(g, now)
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

// facts describes a grant for the watchdog; false where it has ended. Of one that is lost there is
// something to report if the owner by Lock has not unlocked yet.
func facts(g *lock.Held, now time.Duration) (watchdog.Facts, bool) {
	k, lease, terms, o := g.Key(), g.Lease(), g.Terms(), g.Current()
	set := settingsOf(k)
	m, cfg := set.m, &set.cfg
	zero := m.leases.Zero()
	granted := zero.Add(g.Since())
	f := watchdog.Facts{
		ID: g.Number(), Key: k.Name(), Class: cfg.Name, Since: granted, Lease: terms.For, Reachable: true,
		Period: cfg.WatchdogPeriod, AlertThreshold: cfg.AlertThreshold, Strategy: watchdog.Strategy(cfg.Recovery),
	}
	byLock := o != nil && !o.Kind.CanNotify()
	if o != nil {
		f.Since, f.CallSite = zero.Add(o.Since()), o.CallSite
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
	f.Lease, f.RenewalTime = max(f.Lease, times.Left), max(terms.Period, 0)
	f.LastConfirmed, f.Deadline, f.NextRenewal = times.Confirmed, times.Deadline, times.NextDue
	if lease.Renewals() == 0 && granted.After(f.LastConfirmed) {
		f.LastConfirmed = granted // of a call: the lease counts from a statement of long before it
	}
	f.Fixed, f.RenewalFailures = terms.Fixed() || g.Unrenewed(), lease.Failures()
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
	g := s.m.locks.Held(id)
	switch {
	case g == nil:
		return false
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
	is, ok := facts(g, now)
	switch {
	case o == nil || !ok:
		return false
	case f == watchdog.OverMaxHold && (is.MaxHold == 0 || time.Since(is.Since) < is.MaxHold):
		return false
	case f == watchdog.HolderUnreachable && is.Reachable:
		return false
	}
	if action == watchdog.ActionStopRenewing {
		return g.StopRenewing(o)
	}
	// An owner that has ended cannot have passed the lock on.
	return g.Revoke(o, f == watchdog.HolderGone, action == watchdog.ActionDelete)
}
