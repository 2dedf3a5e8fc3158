package report

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
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
		for _, text := range costs {
			p.cfg.Logger.LogAttrs(context.Background(), slog.LevelDebug, "anteroom: redis client", slog.String("text", text))
		}
	})
}

// renewed is called where no renewal waits for it, as RenewalFailed is: an
// Observer may be slow there, and no lease is renewed, and no owner notified, later for that.
func (p *Reports) renewed(l *renewal.Lease, left time.Duration) {
	p.to.Renewed(classOf(l), observe.OutcomeRenewed, left)
}

func classOf(l *renewal.Lease) string { return l.Owner().(*lock.Held).Settings().Class }

func (p *Reports) RenewalFailed(l *renewal.Lease, failures int, err error) {
	p.to.Renewed(classOf(l), observe.OutcomeFailed, 0)
	g := l.Owner().(*lock.Held)
	outage := isOutage(err)
	if outage && failures >= 2 && !p.cfg.Closing() {
		p.troubles.observed("", "", shown(p.wire.Shard(g.Name())), err, false)
	}
	if failures == 2 {
		ev := eventOf(observe.EventRenewalFailing, g, l.Loss(""))
		ev.Text, ev.Err, ev.Since, ev.Failures = "two renewals in a row have failed", err, l.LastConfirmed(), failures
		p.eventOr(outage, p.cfg.Values(g.AnyOwner()), ev)
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
	ev := observe.Event{Kind: observe.EventSubscriptionDown, Err: err, Text: "waiters ask until the subscription is up again"}
	if up {
		ev.Kind, ev.Text = observe.EventSubscriptionUp, "Redis can call waiters"
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
	p.event(context.Background(), observe.Event{Kind: observe.EventWarning, Text: warningText(w), Err: w.Err})
}

// valuesOf returns the context whose values the hold has that the watchdog speaks of.
func (p *Reports) valuesOf(f watchdog.Facts) context.Context {
	switch g, o := p.locks.OfNumber(f.ID); { // 0, the whole process, is none's number
	case g != nil:
		return p.cfg.Values(g.AnyOwner())
	case o != nil:
		return p.cfg.Values(o)
	}
	return context.Background()
}

func (p *Reports) Checked(_ watchdog.Facts, v watchdog.Verdict) {
	finding := v.Health.String()
	if v.Health == watchdog.Unhealthy {
		finding = v.Finding.String()
	}
	p.to.Checked(v.Check.String(), finding)
	if v.Check == watchdog.Connection && v.Health == watchdog.Healthy && p.troubles.some.Load() {
		p.troubles.pinged()
	}
}

// alert names one: of a hold, or of the process as a whole.
type alert struct {
	id    uint64
	check watchdog.Check
}

func (p *Reports) Alert(f watchdog.Facts, c watchdog.Check, failures int) {
	p.to.Alert(cmp.Or(f.Class, p.cfg.DefaultClass), c.String(), true)
	verdicts := p.dog.Verdicts(f.ID)
	var v watchdog.Verdict // that has raised it
	if i := slices.IndexFunc(verdicts, func(v watchdog.Verdict) bool { return v.Check == c }); i >= 0 {
		v = verdicts[i]
	}
	if v.Finding == watchdog.RedisUnreachable && isOutage(v.Err) && !p.cfg.Closing() {
		p.troubles.observed("", "", "", v.Err, false)
	}
	ev := observe.Event{
		Kind: observe.EventAlert, Key: f.Key, Class: f.Class, Holder: p.fieldOf(f.ID), Check: c.String(), CallSite: f.CallSite, Found: p.found(verdicts),
		Text: alertText(v, failures), Err: v.Err,
	}
	aside := p.said(v.Finding)
	if !aside {
		p.alerts[alert{f.ID, c}] = true
	}
	p.eventOr(aside, p.valuesOf(f), ev)
}

func (p *Reports) AlertCleared(f watchdog.Facts, c watchdog.Check) {
	p.to.Alert(cmp.Or(f.Class, p.cfg.DefaultClass), c.String(), false)
	ev := observe.Event{
		Kind: observe.EventAlertCleared, Key: f.Key, Class: f.Class, Holder: p.fieldOf(f.ID), Check: c.String(), Text: "the check passes again, or the hold has ended",
	}
	of := alert{f.ID, c}
	shown := p.alerts[of]
	delete(p.alerts, of)
	p.eventOr(!shown, p.valuesOf(f), ev)
}

// said reports whether another record says f: EventLost, or EventUnavailable of which it is a consequence. Renewals that
// failed in an outage count for a while after it.
func (p *Reports) said(f watchdog.Finding) bool {
	switch f {
	case watchdog.FieldGone, watchdog.LeaseOver:
		return true
	case watchdog.RedisUnreachable, watchdog.DeliveryDead:
		return p.troubles.outage(0)
	case watchdog.RenewalLate, watchdog.RenewalFailing, watchdog.RecoveryFailed:
		return p.troubles.outage(outageForgotten)
	}
	return false
}

func (p *Reports) Recovery(f watchdog.Facts, v watchdog.Verdict, action string, o watchdog.RecoveryOutcome) {
	if o != watchdog.Acted { // counted when it is known what came of it
		p.to.Recovered(v.Check.String(), action, o.String())
	}
	if o == watchdog.Unsettled {
		return // no news
	}
	kind := observe.EventRecovery
	if v.Finding == watchdog.HolderUnreachable && (o == watchdog.Reported || o == watchdog.Acted) {
		kind = observe.EventAbandoned
	}
	ev := observe.Event{
		Kind: kind, Key: f.Key, Class: f.Class, Holder: p.fieldOf(f.ID), Check: v.Check.String(), CallSite: f.CallSite,
		Text: recoveryText(v.Reason, action, o), Err: v.Err,
	}
	aside := kind == observe.EventRecovery && (!concerns(action, o) || p.said(v.Finding))
	p.eventOr(aside, p.valuesOf(f), ev)
}

// fieldOf returns the field in Redis of what the watchdog knows by that number.
func (p *Reports) fieldOf(id uint64) string {
	if lock.OfUnits(id) {
		return p.cfg.ClientID
	}
	return p.locks.Field(id)
}

// concerns reports whether a person has to know of an action: it ends a hold some day, or it was in vain. A finding
// that lasts has an alert, and a hold that is found lost has its loss.
func concerns(action string, o watchdog.RecoveryOutcome) bool {
	switch o {
	case watchdog.NotHelped, watchdog.GaveUp:
		return true
	case watchdog.Acted:
		return action == watchdog.ActionStopRenewing || action == watchdog.ActionCancel || action == watchdog.ActionDelete
	}
	return false
}
