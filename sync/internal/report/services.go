package report

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/observe"
	"github.com/anteroom/anteroom/watchdog"
)

// This file is what the services report: renewal, wire and watchdog.

// Figures returns what is to be called for each command and for each renewal: nothing where
// the Observer has no hook for it, so that no clock is read for them.
func (p *Reports) Figures() (command func(lettucecompat.CommandStat), renewed func(*renewal.Lease, time.Duration)) {
	o := p.cfg.Observer
	if o == nil {
		return nil, nil
	}
	if o.Command != nil {
		command = p.command
	}
	if o.Renewed != nil {
		renewed = p.renewed
	}
	return command, renewed
}

// Costs logs what settings of the client cost. A log that hangs holds nobody up.
func (p *Reports) Costs(replicas bool) {
	costs := p.wire.Costs(replicas)
	if len(costs) == 0 {
		return
	}
	p.done.Go(func() {
		p.cfg.Logger.LogAttrs(context.Background(), slog.LevelInfo, "anteroom: redis client", slog.String("text", strings.Join(costs, ". ")))
	})
}

// renewed is called where no renewal waits for it, as RenewalFailed is: an
// Observer may be slow there, and nobody is renewed or told later for that.
func (p *Reports) renewed(l *renewal.Lease, left time.Duration) {
	p.to.Renewed(l.Owner().(*lock.Held).Key().Settings().Class, observe.OutcomeRenewed, left)
}

func (p *Reports) RenewalFailed(l *renewal.Lease, failures int, err error) {
	g := l.Owner().(*lock.Held)
	p.to.Renewed(g.Key().Settings().Class, observe.OutcomeFailed, 0)
	if failures == 2 {
		ev := eventOf(observe.EventRenewalFailing, g, l.Loss(""))
		ev.Err, ev.Since, ev.Failures = err, l.LastConfirmed(), failures
		p.event(p.cfg.Values(g.Owner()), ev)
	}
}

// Called reports that Redis has given k to this process.
func (p *Reports) Called(k *lock.Key, found bool) {
	how := observe.CallEntered
	if found {
		how = observe.CallFound
	}
	p.to.Called(k.Settings().Class, how)
}

func (p *Reports) Jumped(d time.Duration) {
	p.event(context.Background(), observe.Event{Kind: observe.EventClockJump, Text: "wall clock and monotonic clock moved apart by " + d.String() + "; every hold is checked"})
}

func (p *Reports) Stalled(late time.Duration) {
	p.event(context.Background(), observe.Event{Kind: observe.EventSelfLate, Since: time.Now().Add(-late), Text: "this process was late by " + late.String()})
}

func (p *Reports) Subscription(up bool, err error) {
	p.to.Subscription(up)
	if p.cfg.Closing() {
		return // Close ends it on purpose
	}
	ev := observe.Event{Kind: observe.EventSubscriptionDown, Err: err}
	if up {
		ev.Kind = observe.EventSubscriptionUp
	}
	p.event(context.Background(), ev)
}

func (p *Reports) command(s lettucecompat.CommandStat) {
	if s.Name == "renew" { // no lease of its batch is renewed before this returns
		p.batches.Go(func() { p.to.Command(s.Name, s.Outcome.String(), s.Duration) })
		return
	}
	p.to.Command(s.Name, s.Outcome.String(), s.Duration)
}

func (p *Reports) Warning(w lettucecompat.Warning) {
	p.event(context.Background(), observe.Event{Kind: observe.EventWarning, Text: w.Kind.String() + ": " + Plural(w.Count, "occurrence"), Err: w.Err})
}

// field returns the name in Redis of the grant n; empty for 0, which is none's number.
func (p *Reports) field(n uint64) string {
	if n == 0 {
		return ""
	}
	return lettucecompat.NewField(p.cfg.ClientID, n)
}

// valuesOf returns the context whose values the hold has that the watchdog speaks of.
func (p *Reports) valuesOf(f watchdog.Facts) context.Context {
	if g := p.locks.Held(f.ID); g != nil { // 0, the whole process, is none's number
		return p.cfg.Values(g.Owner())
	}
	return context.Background()
}

func (p *Reports) Checked(_ watchdog.Facts, v watchdog.Verdict) {
	finding := v.Health.String()
	if v.Health == watchdog.Unhealthy {
		finding = v.Finding.String()
	}
	p.to.Checked(v.Check.String(), finding)
}

func (p *Reports) Alert(f watchdog.Facts, c watchdog.Check, failures int) {
	p.to.Alert(cmp.Or(f.Class, p.cfg.DefaultClass), c.String(), true)
	p.event(p.valuesOf(f), observe.Event{
		Kind: observe.EventAlert, Key: f.Key, Class: f.Class, Holder: p.field(f.ID), Check: c.String(), CallSite: f.CallSite, Found: p.found(p.dog.Verdicts(f.ID)),
		Text: Plural(failures, "check") + " in a row failed",
	})
}

func (p *Reports) AlertCleared(f watchdog.Facts, c watchdog.Check) {
	p.to.Alert(cmp.Or(f.Class, p.cfg.DefaultClass), c.String(), false)
	p.event(p.valuesOf(f), observe.Event{Kind: observe.EventAlertCleared, Key: f.Key, Class: f.Class, Holder: p.field(f.ID), Check: c.String()})
}

func (p *Reports) Recovery(f watchdog.Facts, v watchdog.Verdict, action string, o watchdog.RecoveryOutcome) {
	if o != watchdog.Acted { // counted when it is known what came of it
		p.to.Recovered(v.Check.String(), action, o.String())
	}
	if o == watchdog.Unsettled {
		return // no news
	}
	kind := observe.EventRecovery
	if v.Finding == watchdog.HolderUnreachable && (o == watchdog.Told || o == watchdog.Acted) {
		kind = observe.EventAbandoned
	}
	p.event(p.valuesOf(f), observe.Event{
		Kind: kind, Key: f.Key, Class: f.Class, Holder: p.field(f.ID), Check: v.Check.String(), CallSite: f.CallSite,
		Text: v.Reason + ": " + action + ": " + o.String(), Err: v.Err,
	})
}
