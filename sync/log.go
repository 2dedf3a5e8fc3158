package anteroom

import (
	"context"
	"hash/fnv"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/watchdog"
)

// This file is what the log says. It is written by the queue of events alone: after
// whoever lost a lock was told, by a goroutine that no lock waits for, one record for each
// change of state and none for an operation.

// level is that of a record: losses, releases that came to nothing and mistakes in the
// program are errors, what got better is information, everything else a warning.
func (k EventKind) level() slog.Level {
	switch k {
	case EventLost, EventReleaseGivenUp, EventUnlockLost, EventSelfDeadlock, EventDeadlock, EventMisconfigured:
		return slog.LevelError
	case EventAvailable, EventSubscriptionUp, EventAlertCleared:
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// log writes one record: a message that is the same for all events of a kind, and what is
// to be told of this one as attributes. docs/operations.md §7 explains them, and a test
// compares. ctx has the values of the context under which the hold was acquired, so that
// a handler finds the trace that it belongs to.
func (q *eventQueue) log(ctx context.Context, level slog.Level, e Event) {
	if !q.logger.Enabled(ctx, level) {
		return
	}
	r := make(attributes, 0, 20)
	r.text("event", string(e.Kind))
	r.text("class", e.Class)
	if q.logKeys {
		r.text("key", e.Key)
	} else if e.Key != "" {
		r.text("key_hash", keyHash(e.Key))
	}
	if _, n, ok := lettucecompat.ParseField(e.Holder); ok {
		r = append(r, slog.Uint64("grant", n)) // the number alone names neither host nor process
	}
	r.text("reason", string(e.Reason))
	r.text("check", e.Check)
	r.text("text", q.text(&e))
	r.time("since", e.Since)
	r.hold(&e)
	r.text("found", e.Found)
	r.text("call_site", e.CallSite)
	if e.Waiters > 0 {
		r = append(r, slog.Int("waiters", e.Waiters))
	}
	if e.Err != nil {
		r.text("err", q.words(&e, q.logKeys).of(e.Err))
	}
	q.logger.LogAttrs(ctx, level, "anteroom: "+string(e.Kind), r...)
}

// logDropped says how many events were dropped since the last record of that: a log that
// is silent about a lock must not read as if nothing had happened to it.
func (q *eventQueue) logDropped() {
	if n := q.dropped.Swap(0); n > 0 {
		q.logger.LogAttrs(context.Background(), slog.LevelWarn, "anteroom: events dropped", slog.Int64("count", n))
	}
}

// attributes are those of one record. What does not apply is left out.
type attributes []slog.Attr

func (r *attributes) text(name, value string) {
	if value != "" {
		*r = append(*r, slog.String(name, value))
	}
}

func (r *attributes) time(name string, t time.Time) {
	if !t.IsZero() {
		*r = append(*r, slog.Time(name, t))
	}
}

// hold appends what was known of the lease: when it was last confirmed and how long that
// was before the loss, or before the event, and how many renewals have failed since.
func (r *attributes) hold(e *Event) {
	if e.Kind == EventLost {
		*r = append(*r, slog.Int("owners", e.Owners))
	}
	if e.LastConfirmed.IsZero() {
		return
	}
	end := e.At
	if e.Reason != "" && !e.Since.IsZero() {
		end = e.Since
	}
	*r = append(
		*r, slog.Time("last_confirmed", e.LastConfirmed), slog.Duration("unconfirmed_for", end.Sub(e.LastConfirmed).Round(time.Millisecond)), slog.Int("failures", e.Failures),
		slog.Time("deadline", e.Deadline), slog.Duration("lease", e.Lease),
	)
}

// keyHash is a short name for a key in logs that must not carry keys: enough to
// tell two keys of a program apart, not enough to find the key by it alone.
func keyHash(key string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}

// publicError is an error in whose text no name of a lock or a holder stands. What it is,
// errors.Is sees as before.
type publicError struct {
	error
	text string
}

func (e publicError) Error() string { return e.text }
func (e publicError) Unwrap() error { return e.error }

// publicErr returns err, of e, with its text as the log would show it without LogKeys.
func (q *eventQueue) publicErr(err error, e *Event) error {
	if err == nil {
		return nil
	}
	return publicError{err, q.words(e, false).of(err)}
}

// publicEvent returns e with its error as the log would show it without LogKeys. Its
// Key and Holder stay: they have fields of their own, which a Tracer may leave alone.
func (q *eventQueue) publicEvent(e Event) Event {
	e.Err = q.publicErr(e.Err, &e)
	return e
}

// found words what verdicts on a hold and, after them, those on the process as a whole say is
// wrong; not what came of the watchdog's own actions.
func (m *Manager) found(verdicts []watchdog.Verdict) string {
	var found []string
	for _, v := range slices.Concat(verdicts, m.dog.Verdicts(0)) {
		what := v.Check.String() + ":" + v.Finding.String()
		if v.Health == watchdog.Unhealthy && v.Check != watchdog.Recovery && !slices.Contains(found, what) {
			found = append(found, what)
		}
	}
	return strings.Join(found, ",")
}
