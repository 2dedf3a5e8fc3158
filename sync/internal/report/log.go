package report

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/sync/observe"
	"github.com/anteroom/anteroom/watchdog"
)

// This file is what the log says. The queue of events writes it alone: after the owner of a lost lock was notified, on
// a goroutine that no lock waits for. There is one record for each thing that a person may have to act on, and none for
// an operation: what it leads to is at Debug.

// levelOf returns the level of e where nothing else says it.
func levelOf(e *observe.Event) slog.Level {
	switch e.Kind {
	case observe.EventReleaseGivenUp, observe.EventSelfDeadlock, observe.EventDeadlock, observe.EventMisconfigured:
		return slog.LevelError
	case observe.EventLost:
		if e.Reason == observe.LostFixed { // as agreed
			return slog.LevelInfo
		}
		return slog.LevelError
	case observe.EventAvailable, observe.EventAlertCleared, observe.EventCapacity:
		return slog.LevelInfo
	case observe.EventReleaseFailed, // EventUnavailable or EventMisconfigured says why
		observe.EventUnlockLost,                                    // EventLost has said it
		observe.EventSubscriptionDown, observe.EventSubscriptionUp: // locks work meanwhile; if it lasts, an alert says so
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// log writes one record: a message that is the same for all events of a kind, and what is
// particular to this one as attributes. docs/observability.md §6 explains them, and a test
// compares. ctx has the values of the context under which the hold was acquired, so that
// a handler finds the trace that it belongs to.
func (p *Reports) log(ctx context.Context, e *queued) {
	keys := p.cfg.LogKeys
	if !p.cfg.Logger.Enabled(ctx, e.level) {
		return
	}
	r := make([]slog.Attr, 0, 20)
	text := func(name, value string) { // what does not apply is left out
		if value != "" {
			r = append(r, slog.String(name, value))
		}
	}
	text("event", string(e.Kind))
	if keys && e.named != "" {
		text("text", e.named)
	} else {
		text("text", e.Text)
	}
	if keys && e.Err != nil {
		text("err", p.cfg.Words(e.Err, true, e.Holder, e.ClientID))
	} else {
		text("err", e.ErrText)
	}
	text("class", e.Class)
	if keys {
		text("key", e.Key)
	} else if e.Key != "" {
		text("key_hash", observe.KeyHash(e.Key))
	}
	if _, n, ok := lettucecompat.ParseField(e.Holder); ok {
		r = append(r, slog.Uint64("grant", n)) // the number alone names neither host nor process
	}
	text("reason", string(e.Reason))
	text("check", e.Check)
	if !e.Since.IsZero() {
		r = append(r, slog.Time("since", e.Since))
	}
	r = append(r, leaseOf(&e.Event)...)
	text("found", e.Found)
	text("call_site", e.CallSite)
	if e.Waiters > 0 {
		r = append(r, slog.Int("waiters", e.Waiters))
	}
	p.cfg.Logger.LogAttrs(ctx, e.level, "anteroom: "+string(e.Kind), r...)
}

// logDropped says how many events were dropped since the last record of that: a log that
// is silent about a lock must not read as if nothing had happened to it.
func (p *Reports) logDropped() {
	if n := p.dropped.Swap(0); n > 0 {
		p.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "anteroom: events dropped", slog.Int64("count", n))
	}
}

// leaseOf returns what was known of the lease: when it was last confirmed and how long that
// was before the loss, or before the event, and how many renewals have failed since.
func leaseOf(e *observe.Event) (r []slog.Attr) {
	if e.Kind == observe.EventLost {
		r = append(r, slog.Int("owners", e.Owners))
	}
	if e.LastConfirmed.IsZero() || e.Reason == observe.LostFixed {
		return r // a fixed lease is not renewed, so nothing has failed
	}
	end := e.At
	if e.Reason != "" && !e.Since.IsZero() {
		end = e.Since
	}
	return append(
		r, slog.Time("last_confirmed", e.LastConfirmed), slog.Duration("unconfirmed_for", end.Sub(e.LastConfirmed).Round(time.Millisecond)), slog.Int("failures", e.Failures),
		slog.Time("deadline", e.Deadline), slog.Duration("lease", e.Lease),
	)
}

// found words what verdicts on a hold and, after them, those on the process as a whole say is
// wrong; not what came of the watchdog's own actions.
func (p *Reports) found(verdicts []watchdog.Verdict) string {
	var found []string
	for _, v := range slices.Concat(verdicts, p.dog.Verdicts(0)) {
		what := v.Check.String() + ":" + v.Finding.String()
		if v.Health == watchdog.Unhealthy && v.Check != watchdog.Recovery && !slices.Contains(found, what) {
			found = append(found, what)
		}
	}
	return strings.Join(found, ",")
}
