package anteroom

import (
	"context"
	"log/slog"
	"sync"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/watchdog"
)

// This file joins the services: it gives renewal and watchdog the small interfaces
// that they ask for, and turns what they report into events and figures.

// sender lets the RenewalManager talk to Redis.
type sender struct{ m *Manager }

func (s sender) RenewBatch(ctx context.Context, _ string, items []renewal.Item, at time.Time) []renewal.Result {
	// The batch has one time limit (see startLease) and came from one node, but a slot
	// may have moved since a lease was added.
	end := at.Add(s.m.cfg.commandTimeout(items[0].Lease))
	results := make([]renewal.Result, len(items))
	if !s.m.wire.Multi() {
		s.renew(ctx, items, end, results, func(i int) int { return i })
		return results
	}
	groups := map[string][]int{}
	for i, it := range items {
		shard := s.m.wire.Shard(it.Key)
		groups[shard] = append(groups[shard], i)
	}
	var wg sync.WaitGroup
	for _, members := range groups {
		wg.Go(func() {
			some := make([]renewal.Item, len(members))
			for j, i := range members {
				some[j] = items[i]
			}
			s.renew(ctx, some, end, results, func(j int) int { return members[j] })
		})
	}
	wg.Wait()
	return results
}

// renew asks one shard until end, the time limit of its batch, and sends nothing after it:
// how long a renewal may be under way after its lease has ended is what field.burn counts
// on. The result of item j belongs at place(j).
func (s sender) renew(ctx context.Context, items []renewal.Item, end time.Time, results []renewal.Result, place func(j int) int) {
	left := time.Until(end)
	if left <= 0 { // this goroutine has waited for a processor for so long
		for j := range items {
			results[place(j)].Err = lettucecompat.ErrTimeout
		}
		return
	}
	batch := s.m.renewals.take()
	for _, it := range items {
		r := lettucecompat.Renewal{Key: it.Key, Field: it.Field, Lease: it.Lease, Reacquire: it.Reacquire}
		if it.Reacquire {
			r.RecordTime = s.m.recordTime(it.Field)
		}
		*batch = append(*batch, r)
	}
	for j, r := range s.m.wire.Renew(ctx, *batch, left) {
		results[place(j)] = renewal.Result{
			Renewed: r.Outcome == lettucecompat.OutcomeOK, Reacquired: r.Reacquired,
			Gone: r.Outcome == lettucecompat.OutcomeGone, SentAt: r.SentAt, Err: r.Err,
		}
	}
	s.m.renewals.give(batch)
}

// recordTime is FenceRecordTime of the lock that field holds; 0, the default, where the
// grant has ended meanwhile.
func (m *Manager) recordTime(field string) time.Duration {
	if _, n, ok := lettucecompat.ParseField(field); ok {
		if g := m.grant(n); g != nil {
			return g.e.cfg.FenceRecordTime
		}
	}
	return 0
}

// lists are slices that serve one batch after the other. The wire keeps none of them.
type lists[T any] struct{ sync.Pool }

func (l *lists[T]) take() *[]T {
	if list, ok := l.Get().(*[]T); ok {
		return list
	}
	return new([]T)
}

func (l *lists[T]) give(list *[]T) {
	clear(*list)
	*list = (*list)[:0]
	l.Put(list)
}

// The RenewalManager calls renewed, renewalFailed and lost where nothing waits for them:
// an Observer may be slow there, and nobody is renewed or told later for that.

func (m *Manager) renewed(l *renewal.Lease, left time.Duration, reacquired bool) {
	g := l.Owner().(*grant)
	outcome := OutcomeRenewed
	if reacquired {
		outcome = OutcomeReacquired
	}
	m.obs.Renewed(g.e.cfg.Name, outcome, left)
}

func (m *Manager) renewalFailed(l *renewal.Lease, failures int, err error) {
	g := l.Owner().(*grant)
	m.obs.Renewed(g.e.cfg.Name, OutcomeFailed, 0)
	if failures == 2 {
		ev := g.event(EventRenewalFailing)
		ev.Err, ev.Since = err, l.LastConfirmed()
		ev.about(g, l.Loss(""))
		ev.Failures = failures
		m.events.raiseWith(g.lastOwner().reportContext(), ev)
	}
}

// lost reports the loss of a lease, after grant.Lost has told it.
func (m *Manager) lost(lease *renewal.Lease) {
	g, is := lease.Owner().(*grant)
	if !is {
		return
	}
	l := g.lossNow()
	if l.By == renewal.ByRenewal {
		m.obs.Renewed(g.e.cfg.Name, OutcomeRefused, 0)
	}
	m.obs.Lost(g.e.cfg.Name, l.Reason)
	g.raiseLost(l)
}

func (m *Manager) jumped(d time.Duration) {
	m.events.raise(Event{Kind: EventClockJump, Text: "wall clock and monotonic clock moved apart by " + d.String() + "; every hold is checked"})
}

func (m *Manager) stalled(late time.Duration) {
	m.events.raise(Event{Kind: EventSelfLate, Since: time.Now().Add(-late), Text: "this process was late by " + late.String()})
}

func (m *Manager) subscription(up bool, err error) {
	m.obs.Subscription(up)
	if m.closing.Load() {
		return // Close ends it on purpose
	}
	ev := Event{Kind: EventSubscriptionDown, Err: err}
	if up {
		ev.Kind = EventSubscriptionUp
	}
	level := ev.Kind.level()
	if up && !m.subscribed.Swap(true) {
		level = slog.LevelDebug // that of every Manager that works, and nothing has become better
	}
	m.events.raiseAt(level, context.Background(), ev)
}

func (m *Manager) command(s lettucecompat.CommandStat) {
	if s.Name == "renew" { // no lease of its batch is renewed before this returns
		m.reports.Go(func() { m.obs.Command(s.Name, s.Outcome.String(), s.Duration) })
		return
	}
	m.obs.Command(s.Name, s.Outcome.String(), s.Duration)
}

func (m *Manager) warning(w lettucecompat.Warning) {
	m.events.raise(Event{Kind: EventWarning, Text: w.Kind.String() + ": " + plural(w.Count, "occurrence"), Err: w.Err})
}

// field is the name in Redis of the hold that the watchdog speaks of; empty where it speaks
// of the whole process.
func (m *Manager) field(f watchdog.Facts) string {
	if f.ID == 0 {
		return ""
	}
	return lettucecompat.NewField(m.cfg.ClientID, f.ID)
}

// valuesOf returns the context whose values the hold has that the watchdog speaks of.
func (m *Manager) valuesOf(f watchdog.Facts) context.Context {
	if g := m.grant(f.ID); g != nil { // 0, the whole process, is none's number
		return g.lastOwner().reportContext()
	}
	return context.Background()
}

func (m *Manager) checked(_ watchdog.Facts, v watchdog.Verdict) {
	finding := v.Health.String()
	if v.Health == watchdog.Unhealthy {
		finding = v.Finding.String()
	}
	m.obs.Checked(v.Check.String(), finding)
}

func (m *Manager) alert(f watchdog.Facts, c watchdog.Check, failures int) {
	m.obs.Alert(className(LockConfig{Name: f.Class}), c.String(), true)
	m.events.raiseWith(m.valuesOf(f), Event{
		Kind: EventAlert, Key: f.Key, Class: f.Class, Holder: m.field(f), Check: c.String(), CallSite: f.CallSite, Found: m.found(m.dog.Verdicts(f.ID)),
		Text: plural(failures, "check") + " in a row failed",
	})
}

func (m *Manager) alertCleared(f watchdog.Facts, c watchdog.Check) {
	m.obs.Alert(className(LockConfig{Name: f.Class}), c.String(), false)
	m.events.raiseWith(m.valuesOf(f), Event{Kind: EventAlertCleared, Key: f.Key, Class: f.Class, Holder: m.field(f), Check: c.String()})
}

func (m *Manager) recovery(f watchdog.Facts, v watchdog.Verdict, action string, o watchdog.RecoveryOutcome) {
	if o != watchdog.Acted { // counted when it is known what came of it
		m.obs.Recovered(v.Check.String(), action, o.String())
	}
	if o == watchdog.Unsettled {
		return // no news
	}
	kind := EventRecovery
	if v.Finding == watchdog.HolderUnreachable && (o == watchdog.Told || o == watchdog.Acted) {
		kind = EventAbandoned
	}
	m.events.raiseWith(m.valuesOf(f), Event{
		Kind: kind, Key: f.Key, Class: f.Class, Holder: m.field(f), Check: v.Check.String(), CallSite: f.CallSite,
		Text: v.Reason + ": " + action + ": " + o.String(), Err: v.Err,
	})
}
