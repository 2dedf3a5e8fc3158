package anteroom

import (
	"time"

	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/watchdog"
)

// grown is how many numbers in Manager.came may be of grants that have ended, beside as
// many as are listed: short holds come and go by thousands between two looks of the
// watchdog.
const grown = 1024

// Changes returns which grants the watchdog has not heard of, and which of those that it
// knows have ended.
func (s *services) Changes() (came, went []uint64) {
	m := s.m
	m.mu.Lock()
	defer m.mu.Unlock()
	came, went = m.came, m.went
	m.came, m.went = nil, nil
	for _, id := range came {
		if g := m.listed(id); g != nil {
			g.watched = true
		}
	}
	return came, went
}

// listed returns the grant of that number that the watchdog looks at, or nil. The caller has
// Manager.mu.
func (m *Manager) listed(id uint64) *grant {
	if g := m.grants[id]; g != nil {
		return g
	}
	return m.lost[id]
}

// Lookup describes a grant; false where it has ended.
func (s *services) Lookup(id uint64) (watchdog.Facts, bool) {
	s.m.mu.Lock()
	g := s.m.listed(id)
	s.m.mu.Unlock()
	if g == nil {
		return watchdog.Facts{}, false
	}
	return g.facts(s.m.leases.Now())
}

// LookupAll goes through the grants step by step: each step reads, of every one, a place in
// memory that the one before has led to. The processor then waits for several at once, where
// facts would wait for one after the other: with 100,000 holds none of it is in a cache, and
// the process takes 10 % of a core instead of 13 %.
func (s *services) LookupAll(facts []watchdog.Facts) {
	grants := make([]*grant, 0, 32)
	s.m.mu.Lock()
	for i := range facts {
		grants = append(grants, s.m.listed(facts[i].ID))
	}
	s.m.mu.Unlock()
	for _, g := range grants {
		if g != nil {
			g.lease.Load()
			g.doomed.Load()
		}
	}
	for _, g := range grants {
		if g != nil {
			g.lease.Load().State()
			g.e.refs.Load()
		}
	}
	for _, g := range grants {
		if g != nil {
			g.e.q.Word()
		}
	}
	now := s.m.leases.Now()
	for i, g := range grants {
		if facts[i] = (watchdog.Facts{}); g != nil {
			facts[i], _ = g.facts(now)
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

// facts describes the grant for the watchdog; false where it has ended.
func (g *grant) facts(now time.Duration) (watchdog.Facts, bool) {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	return g.factsLocked(now)
}

// factsLocked is facts for whoever has the entry's mu. Of a grant that is lost there is
// something to tell where the owner by Lock has not unlocked yet.
func (g *grant) factsLocked(now time.Duration) (watchdog.Facts, bool) {
	lease, cfg, t := g.lease.Load(), &g.e.cfg, g.current()
	f := watchdog.Facts{
		ID: g.n, Key: g.e.key, Class: cfg.Name, Since: g.granted(), Lease: g.terms.lease, Reachable: true,
		Period: cfg.WatchdogPeriod, AlertThreshold: cfg.AlertThreshold, Strategy: watchdog.Strategy(cfg.Recovery),
	}
	if t != nil {
		f.Since, f.CallSite = t.began(), t.callSite
		if t.lock && cfg.Reentrancy == ByGoroutine {
			f.Goroutine = t.goroutine
		}
	}
	if lease.State() != renewal.StateActive {
		if g.loss == nil || t == nil || !t.lock {
			return watchdog.Facts{}, false
		}
		f.Lost, f.Fixed = true, true
		return f, true
	}
	times := lease.Times(now)
	f.Lease, f.RenewalTime = max(f.Lease, times.Left), max(g.terms.period, 0)
	f.LastConfirmed, f.Deadline, f.NextRenewal = times.Confirmed, times.Deadline, times.NextDue
	if lease.Renewals() == 0 && g.granted().After(f.LastConfirmed) {
		f.LastConfirmed = g.granted() // of a call: the lease counts from an attempt of long before it
	}
	f.Fixed, f.RenewalFailures = g.terms.fixed() || g.unrenewed.Load(), lease.Failures()
	if t != nil { // between two owners nobody holds for too long, and nobody is gone
		f.MaxHold, f.Reachable = cfg.MaxHold, t.reachable()
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
	s.m.mu.Lock()
	g, lost := s.m.grants[id], s.m.lost[id]
	s.m.mu.Unlock()
	switch {
	case lost != nil && action == watchdog.ActionDelete:
		lost.e.mu.Lock()
		t := lost.owner
		lost.e.mu.Unlock()
		t.expel()
		return true
	case g == nil:
		return false
	case action == watchdog.ActionHurryRenewal:
		return g.lease.Load().Hurry()
	case action == watchdog.ActionLose && f == watchdog.LeaseOver:
		return g.lease.Load().Lose(renewal.Cause{Reason: LostDeadline})
	case action == watchdog.ActionLose:
		return g.lease.Load().Lose(renewal.Cause{Reason: LostGone, By: byWatchdog})
	}
	return g.strike(action, f)
}

// strike acts against the owner that the watchdog accuses, and declines where that one
// does not own the grant any more. The check and the act are one step under the entry's
// mu, in which every owner is admitted too: an owner that comes after the check finds a
// grant that it is not admitted to, so what is held against one never strikes the next.
func (g *grant) strike(action string, f watchdog.Finding) bool {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	facts, ok := g.factsLocked(g.e.m.leases.Now())
	if !ok {
		return false
	}
	switch f {
	case watchdog.OverMaxHold:
		if facts.MaxHold == 0 || time.Since(facts.Since) < facts.MaxHold {
			return false
		}
	case watchdog.HolderUnreachable:
		if facts.Reachable {
			return false
		}
	case watchdog.HolderGone:
		// An owner that has ended cannot have passed the lock on.
		g.ownerGone.Store(true)
	}
	if action == watchdog.ActionStopRenewing {
		if g.terms.fixed() || g.unrenewed.Swap(true) {
			return false
		}
		g.lease.Load().StopRenewing()
		return true
	}
	if action == watchdog.ActionDelete {
		g.doomed.Store(true)
	}
	return g.lease.Load().Lose(renewal.Cause{Reason: LostWatchdog})
}
