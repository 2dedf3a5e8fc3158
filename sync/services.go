package anteroom

import (
	"context"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/watchdog"
)

// This file joins the services: it gives renewal and watchdog the small interfaces
// that they ask for, and turns what they report into events and figures.

// sender lets the RenewalManager talk to Redis.
type sender struct{ m *Manager }

func (s sender) RenewBatch(ctx context.Context, shard string, items []renewal.Item) []renewal.Result {
	batch := make([]lettucecompat.Renewal, len(items))
	timeout := maxCommandTimeout
	for i, it := range items {
		batch[i] = lettucecompat.Renewal{Key: it.Key, Field: it.Field, Lease: it.Lease, Reacquire: it.Reacquire}
		timeout = min(timeout, s.m.cfg.commandTimeout(it.Lease))
	}
	results := make([]renewal.Result, len(items))
	for i, r := range s.m.wire.Renew(ctx, shard, batch, timeout) {
		results[i] = renewal.Result{Outcome: renewalOutcome(r), SentAt: r.SentAt, Err: r.Err}
	}
	return results
}

func renewalOutcome(r lettucecompat.RenewReply) renewal.Outcome {
	switch {
	case r.Outcome == lettucecompat.OutcomeOK && r.Reacquired:
		return renewal.Reacquired
	case r.Outcome == lettucecompat.OutcomeOK:
		return renewal.Renewed
	case r.Outcome == lettucecompat.OutcomeGone:
		return renewal.Gone
	}
	return renewal.Failed
}

func (m *Manager) renewed(l *renewal.Lease, left time.Duration, reacquired bool) {
	g := l.Data().(*grant)
	outcome := RenewedOK
	if reacquired {
		outcome = Reacquired
	}
	m.obs.Renewed(g.e.cfg.Name, outcome, left)
}

func (m *Manager) renewalFailed(l *renewal.Lease, failures int, err error) {
	g := l.Data().(*grant)
	m.obs.Renewed(g.e.cfg.Name, RenewFailed, 0)
	if failures == 2 {
		ev := g.event(EventRenewalFailing)
		ev.Err, ev.Since = err, l.LastConfirmed()
		m.events.raise(ev)
	}
}

func (m *Manager) jumped(d time.Duration) {
	m.events.raise(Event{Kind: EventClockJump, Text: "wall clock and monotonic clock moved apart by " + d.String() + "; every hold is checked"})
}

func (m *Manager) stalled(late time.Duration) {
	m.events.raise(Event{Kind: EventSelfLate, Since: time.Now().Add(-late), Text: "this process was late by " + late.String()})
}

func (m *Manager) subscription(up bool, err error) {
	m.obs.Subscription(up)
	kind := EventSubscriptionDown
	if up {
		kind = EventSubscriptionUp
	}
	m.events.raise(Event{Kind: kind, Err: err})
}

func (m *Manager) command(s lettucecompat.CommandStat) {
	m.obs.Command(s.Name, s.Outcome.String(), s.Duration)
}

func (m *Manager) warning(w lettucecompat.Warning) {
	m.events.raise(Event{Kind: EventWarning, Text: w.Kind.String() + ": " + plural(w.Count, "occurrence"), Err: w.Err})
}

// source tells the watchdog what this process knows about its holds.
type source struct{ m *Manager }

func (s source) Each(fn func(watchdog.Facts) bool) {
	s.m.mu.Lock()
	grants := make([]*grant, 0, len(s.m.grants))
	for _, g := range s.m.grants {
		grants = append(grants, g)
	}
	s.m.mu.Unlock()
	for _, g := range grants {
		if f, ok := g.facts(); ok && !fn(f) {
			return
		}
	}
}

func (s source) Lookup(id uint64) (watchdog.Facts, bool) {
	g := s.m.grant(id)
	if g == nil {
		return watchdog.Facts{}, false
	}
	return g.facts()
}

func (s source) Renewals() watchdog.RenewalStats {
	st := s.m.leases.Stats()
	return watchdog.RenewalStats{
		LoopLastTurn: st.LastTurn, NextDue: st.NextDue,
		SuccessRate: st.SuccessRate(), Window: int(st.Answered + st.Failed),
	}
}

// facts describes the grant for the watchdog; false where it has ended.
func (g *grant) facts() (watchdog.Facts, bool) {
	lease, cfg := g.lease.Load(), &g.e.cfg
	if lease.State() != renewal.StateActive {
		return watchdog.Facts{}, false
	}
	f := watchdog.Facts{
		ID: g.n, Key: g.e.key, Field: g.field, Class: cfg.Name, Since: g.since,
		Fixed: g.wish.fixed || g.unrenewed.Load(), Lease: max(g.wish.lease, lease.Remaining(time.Now())), RenewalTime: max(cfg.RenewalTime, 0),
		MaxHold: cfg.MaxHold, Period: cfg.WatchdogPeriod, AlertThreshold: cfg.AlertThreshold,
		Strategy: watchdog.Strategy(cfg.Recovery), LastConfirmed: lease.LastConfirmed(), Deadline: lease.Deadline(),
		RenewalFailures: lease.Failures(), Reachable: true,
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.owner
	if t == nil || !t.live() {
		// Between two owners nobody holds too long, and nobody is gone.
		f.MaxHold = 0
	} else {
		f.Since, f.CallSite = t.since, t.callSite
		if t.lock && cfg.Reentrancy == ByGoroutine {
			f.Goroutine = t.goroutine
		}
		f.Reachable = t.reachable()
	}
	return f, true
}

// live tells whether t is still the queue's tenancy; it stays recorded as the owner
// until the next one comes in.
func (t *tenancy) live() bool { return t.g.e.q.Current().Tenure == t.tenure }

// reachable tells whether anybody can still release what t holds. The caller has
// the grant's mu.
func (t *tenancy) reachable() bool {
	live := 0
	for _, h := range t.holds {
		if h.released.Load() {
			continue
		}
		if !h.abandoned.Load() {
			return true
		}
		live++
	}
	return live == 0
}

// prober lets the watchdog ask Redis.
type prober struct{ m *Manager }

func (p prober) Status(ctx context.Context, holds []watchdog.Facts) []watchdog.Status {
	byShard := map[string][]int{}
	for i, f := range holds {
		shard := p.m.wire.Shard(f.Key)
		byShard[shard] = append(byShard[shard], i)
	}
	answers := make([]watchdog.Status, len(holds))
	type part struct {
		at      []int
		replies []lettucecompat.StatusReply
	}
	parts := make(chan part, len(byShard))
	for shard, at := range byShard {
		go func() {
			queries := make([]lettucecompat.Query, len(at))
			for j, i := range at {
				queries[j] = lettucecompat.Query{Key: holds[i].Key, Field: holds[i].Field}
			}
			parts <- part{at, p.m.wire.Status(ctx, shard, queries, 0)}
		}()
	}
	for range byShard {
		got := <-parts
		for j, r := range got.replies {
			answers[got.at[j]] = watchdog.Status{
				Answered: r.Outcome == lettucecompat.OutcomeOK || r.Outcome == lettucecompat.OutcomeGone,
				Present:  r.Outcome == lettucecompat.OutcomeOK, Gone: r.Outcome == lettucecompat.OutcomeGone,
				Count: r.Count, Fields: r.Fields, TTL: r.TTL, Err: r.Err,
			}
		}
	}
	return answers
}

func (p prober) Ping(ctx context.Context) (time.Duration, error) { return p.m.wire.Ping(ctx, 0) }

func (p prober) ProbeDelivery(ctx context.Context) (time.Duration, error) { return p.m.wire.Probe(ctx) }

// actor carries out what the watchdog decides. It never waits for Redis.
type actor struct{ m *Manager }

func (a actor) RestartRenewal() bool { a.m.leases.Restart(); return true }

func (a actor) Reconnect() bool { a.m.wire.Reconnect(); return true }

func (a actor) HurryRenewal(id uint64) bool {
	g := a.m.grant(id)
	return g != nil && g.lease.Load().Hurry()
}

func (a actor) Lose(id uint64, f watchdog.Finding) bool {
	reason := renewal.ReasonTakenOver
	if f == watchdog.LeaseOver {
		reason = renewal.ReasonDeadline
	}
	return a.lose(id, reason)
}

func (a actor) lose(id uint64, reason renewal.Reason) bool {
	g := a.m.grant(id)
	return g != nil && g.lease.Load().Lose(renewal.Cause{Reason: reason, At: time.Now()})
}

// accused returns the grant if the owner that the watchdog looked at still owns it:
// what is held against one owner must not strike the next.
func (a actor) accused(id uint64, f watchdog.Finding) *grant {
	g := a.m.grant(id)
	if g == nil {
		return nil
	}
	facts, ok := g.facts()
	if !ok {
		return nil
	}
	switch f {
	case watchdog.OverMaxHold:
		if facts.MaxHold == 0 || time.Since(facts.Since) < facts.MaxHold {
			return nil
		}
	case watchdog.HolderUnreachable:
		if facts.Reachable {
			return nil
		}
	case watchdog.HolderGone:
		// An owner that has ended cannot have passed the lock on.
		g.ownerGone.Store(true)
	}
	return g
}

func (a actor) StopRenewing(id uint64, f watchdog.Finding) bool {
	g := a.accused(id, f)
	if g == nil || g.wish.fixed || g.unrenewed.Swap(true) {
		return false
	}
	g.lease.Load().StopRenewing()
	return true
}

func (a actor) Cancel(id uint64, f watchdog.Finding) bool {
	return a.accused(id, f) != nil && a.lose(id, renewal.ReasonWatchdog)
}

func (a actor) Delete(id uint64, f watchdog.Finding) bool {
	g := a.accused(id, f)
	if g == nil || !a.lose(id, renewal.ReasonWatchdog) {
		return false
	}
	g.e.burn(&burnt{field: g.field, fenced: g.e.cfg.Fencing, until: time.Now().Add(g.wish.lease), report: true})
	return true
}

func (m *Manager) checked(_ watchdog.Facts, v watchdog.Verdict) {
	finding := v.Finding.String()
	if v.Health != watchdog.Unhealthy {
		finding = v.Health.String()
	}
	m.obs.Checked(v.Check.String(), finding)
}

func (m *Manager) alert(f watchdog.Facts, c watchdog.Check, failures int) {
	m.obs.Alert(className(LockConfig{Name: f.Class}), c.String(), true)
	m.events.raise(Event{Kind: EventAlert, Key: f.Key, Class: f.Class, Holder: f.Field, Check: c.String(), CallSite: f.CallSite, Text: plural(failures, "check") + " in a row failed"})
}

func (m *Manager) alertCleared(f watchdog.Facts, c watchdog.Check) {
	m.obs.Alert(className(LockConfig{Name: f.Class}), c.String(), false)
	m.events.raise(Event{Kind: EventAlertCleared, Key: f.Key, Class: f.Class, Holder: f.Field, Check: c.String()})
}

func (m *Manager) recovery(f watchdog.Facts, v watchdog.Verdict, action string, o watchdog.RecoveryOutcome) {
	m.obs.Recovered(v.Check.String(), action, o.String())
	kind := EventRecovery
	if v.Finding == watchdog.HolderUnreachable && (o == watchdog.Told || o == watchdog.Acted) {
		kind = EventAbandoned
	}
	m.events.raise(Event{
		Kind: kind, Key: f.Key, Class: f.Class, Holder: f.Field, Check: v.Check.String(), CallSite: f.CallSite,
		Text: v.Reason + ": " + action + ": " + o.String(),
	})
}
