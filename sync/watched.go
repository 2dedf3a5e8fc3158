package anteroom

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/watchdog"
)

// source tells the watchdog what this process knows about its holds.
type source struct{ m *Manager }

func (s source) Changes() (came, went []uint64) { return s.m.watched.take(s.m) }

func (s source) Lookup(id uint64) (watchdog.Facts, bool) {
	s.m.mu.Lock()
	g := s.m.listed(id)
	s.m.mu.Unlock()
	if g == nil {
		return watchdog.Facts{}, false
	}
	return g.facts(time.Now())
}

// LookupAll goes through the grants step by step: each step reads, of every one, a place in
// memory that the one before has led to. The processor then waits for several at once, where
// facts would wait for one after the other: with 100,000 holds none of it is in a cache.
func (s source) LookupAll(ids []uint64, facts []watchdog.Facts) {
	grants := make([]*grant, 0, 32)
	s.m.mu.Lock()
	for _, id := range ids {
		grants = append(grants, s.m.listed(id))
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
	now := time.Now()
	for i, g := range grants {
		if facts[i] = (watchdog.Facts{}); g != nil {
			facts[i], _ = g.facts(now)
		}
	}
}

// listed returns the grant of that number that the watchdog looks at, or nil. The caller has
// Manager.mu.
func (m *Manager) listed(id uint64) *grant {
	if g := m.grants[id]; g != nil {
		return g
	}
	return m.stale[id]
}

func (s source) Renewals() watchdog.RenewalStats {
	st := s.m.leases.Stats()
	return watchdog.RenewalStats{
		LoopLastTurn: st.LastTurn, NextDue: st.NextDue,
		SuccessRate: st.SuccessRate(), Window: int(st.Answered + st.Failed),
	}
}

// news is what the watchdog has not heard of yet. Guarded by Manager.mu.
type news struct {
	came []uint64 // listed since it was told last
	went []uint64 // of those that it knows
}

// grown is how many numbers in came may be of grants that have ended, beside as many as
// are listed: short holds come and go by thousands between two looks of the watchdog.
const grown = 1024

// thin takes those out of came that have ended. The caller has Manager.mu.
func (n *news) thin(m *Manager) {
	n.came = slices.DeleteFunc(n.came, func(id uint64) bool { return m.listed(id) == nil })
}

// gone notes that g has left a list. The caller has Manager.mu.
func (n *news) gone(g *grant) {
	if g.watched {
		n.went = append(n.went, g.n)
	}
}

// take returns the news and forgets them.
func (n *news) take(m *Manager) (came, went []uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	came, went = n.came, n.went
	*n = news{}
	for _, id := range came {
		if g := m.listed(id); g != nil {
			g.watched = true
		}
	}
	return came, went
}

// facts describes the grant for the watchdog; false where it has ended.
func (g *grant) facts(now time.Time) (watchdog.Facts, bool) {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	return g.factsLocked(now)
}

func (g *grant) factsLocked(now time.Time) (watchdog.Facts, bool) {
	lease, cfg := g.lease.Load(), &g.e.cfg
	if lease.State() != renewal.StateActive {
		return g.staleFactsLocked()
	}
	times := lease.Times(now)
	f := watchdog.Facts{
		ID: g.n, Key: g.e.key, Class: cfg.Name, Since: g.since,
		Fixed: g.terms.fixed() || g.unrenewed.Load(), Lease: max(g.terms.lease, times.Left), RenewalTime: max(g.terms.period, 0),
		MaxHold: cfg.MaxHold, Period: cfg.WatchdogPeriod, AlertThreshold: cfg.AlertThreshold,
		Strategy: watchdog.Strategy(cfg.Recovery), LastConfirmed: times.Confirmed, Deadline: times.Deadline, NextRenewal: times.NextDue,
		RenewalFailures: lease.Failures(), Reachable: true,
	}
	t := g.current()
	if t == nil {
		// Between two owners nobody holds too long, and nobody is gone.
		f.MaxHold = 0
	} else {
		f.Since, f.CallSite = t.began(), t.callSite
		if t.lock && cfg.Reentrancy == ByGoroutine {
			f.Goroutine = t.goroutine
		}
		f.Reachable = t.reachable()
	}
	return f, true
}

// staleFactsLocked describes a lost tenure whose owner has not unlocked yet; false
// where there is none.
func (g *grant) staleFactsLocked() (watchdog.Facts, bool) {
	cfg := &g.e.cfg
	t := g.current()
	if g.loss == nil || t == nil || !t.lock {
		return watchdog.Facts{}, false
	}
	return watchdog.Facts{
		ID: g.n, Key: g.e.key, Class: cfg.Name, Since: t.began(), Lost: true, Fixed: true,
		Lease: g.terms.lease, Period: cfg.WatchdogPeriod, AlertThreshold: cfg.AlertThreshold,
		Strategy: watchdog.Strategy(cfg.Recovery), Goroutine: t.goroutine, Reachable: true, CallSite: t.callSite,
	}, true
}

// actor carries out what the watchdog decides. It never waits for Redis.
type actor struct{ m *Manager }

func (a actor) RestartRenewal() bool { a.m.leases.Restart(); return true }

func (a actor) Reconnect() bool { a.m.wire.Reconnect(); return true }

func (a actor) HurryRenewal(id uint64) bool {
	g := a.m.grant(id)
	return g != nil && g.lease.Load().Hurry()
}

func (a actor) Lose(id uint64, f watchdog.Finding) bool {
	c := renewal.Cause{Reason: LostGone, By: byWatchdog}
	if f == watchdog.LeaseOver {
		c = renewal.Cause{Reason: LostDeadline}
	}
	g := a.m.grant(id)
	return g != nil && g.lease.Load().Lose(c)
}

// strike acts against the owner that the watchdog accuses, and declines where that one
// does not own the grant any more. The check and the act are one step under the entry's
// mu, in which every owner is admitted too: an owner that comes after the check finds a
// grant that it is not admitted to, so what is held against one never strikes the next.
func (a actor) strike(id uint64, f watchdog.Finding, act func(g *grant) bool) bool {
	g := a.m.grant(id)
	if g == nil {
		return false
	}
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	facts, ok := g.factsLocked(time.Now())
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
	return act(g)
}

func (a actor) StopRenewing(id uint64, f watchdog.Finding) bool {
	return a.strike(id, f, func(g *grant) bool {
		if g.terms.fixed() || g.unrenewed.Swap(true) {
			return false
		}
		g.lease.Load().StopRenewing()
		return true
	})
}

func (a actor) Cancel(id uint64, f watchdog.Finding) bool {
	return a.strike(id, f, giveUp)
}

// giveUp concludes that the grant is lost; it is told by the renewal loop.
func giveUp(g *grant) bool {
	return g.lease.Load().Lose(renewal.Cause{Reason: LostWatchdog})
}

func (a actor) Delete(id uint64, f watchdog.Finding) bool {
	a.m.mu.Lock()
	stale := a.m.stale[id]
	a.m.mu.Unlock()
	if stale != nil {
		stale.e.mu.Lock()
		t := stale.owner
		stale.e.mu.Unlock()
		t.expel()
		return true
	}
	return a.strike(id, f, func(g *grant) bool {
		g.doomed.Store(true)
		return giveUp(g)
	})
}
