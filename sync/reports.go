package anteroom

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/internal/goroutines"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/observe"
)

// reports is what a Manager tells people and programs, by its Observer, its Tracer, the log
// and OnEvent. The core calls it with values of its own and with no mutex locked, and knows
// none of the four (TestReports_TheCoreNamesNone).
type reports struct {
	m        *Manager
	observed bool // somebody is told of each operation; if not, acquiring and releasing report nothing
	to       observe.Observer
	tracer   *observe.Tracer
	troubles troubles
	batches  sync.WaitGroup // reports of renewals and of ended troubles; none begins once both are stopped

	queue   chan queued
	quit    chan struct{}
	end     sync.Once
	done    sync.WaitGroup
	dropped atomic.Int64 // since the log said so last

	subscribed bool // an EventSubscriptionUp has been delivered; run's own

	// Only the look for long waits that is under way uses these.
	scan                func(now time.Time, asked []int64) goroutines.Scan
	forWaits, forCycles time.Time // when goroutines were last looked at
}

// eventQueueLen bounds the events that wait for OnEvent and the log.
const eventQueueLen = 1024

// init makes p that of m, whose configuration is normal.
func (p *reports) init(m *Manager) {
	p.m, p.observed = m, m.cfg.Observer != nil || m.cfg.Tracer != nil
	p.to, p.tracer = allHooks(m.cfg.Observer), m.cfg.Tracer
	if p.tracer == nil {
		p.tracer = &observe.Tracer{}
	}
	p.troubles = troubles{p: p, all: map[subject]*trouble{}}
	p.scan = goroutines.Look
	p.queue, p.quit = make(chan queued, eventQueueLen), make(chan struct{})
}

// start begins to deliver events.
func (p *reports) start() { p.done.Go(p.run) }

// stop delivers what is queued and ends the goroutine. Later events are dropped.
func (p *reports) stop() {
	p.end.Do(func() { close(p.quit) })
	p.done.Wait()
}

// acquiring reports that the caller of r begins, and returns the context that takes the place
// of ctx.
func (p *reports) acquiring(ctx context.Context, key string, r *request) context.Context {
	r.began = p.m.leases.Glance()
	start, cfg := p.tracer.StartAcquire, &r.settings.cfg
	if start == nil {
		return ctx
	}
	ctx, r.endSpan = start(ctx, observe.AcquireStart{Key: key, Class: cfg.Name, Op: r.op, Fair: cfg.Fair, Lock: !r.kind.CanNotify()})
	return ctx
}

// acquired reports that the caller of r is o now.
func (p *reports) acquired(r *request, o *lock.Owner) {
	outcome := observe.OutcomeGranted
	if o.HandOffs() > 0 {
		outcome = observe.OutcomeHandedOff
	}
	p.in(r, outcome, o, p.m.leases.Glance()-r.began)
}

func (p *reports) in(r *request, outcome observe.Outcome, o *lock.Owner, wait time.Duration) {
	p.to.Acquired(r.settings.cfg.Name, outcome, wait)
	if r.endSpan != nil {
		r.endSpan(observe.AcquireEnd{Outcome: outcome, HandOffs: o.HandOffs(), Holder: o.Held().Field()})
	}
}

// notAcquired reports that the caller of r has not come in. Nothing need be observed.
func (p *reports) notAcquired(key string, r *request, err error) {
	if !p.observed {
		return
	}
	outcome := outcomeOf(err)
	if outcome == observe.OutcomeMistake {
		outcome = observe.OutcomeFailed
	}
	p.to.Acquired(r.settings.cfg.Name, outcome, p.m.leases.Glance()-r.began)
	if r.endSpan != nil {
		r.endSpan(observe.AcquireEnd{Outcome: outcome, Err: p.publicly(err, key)})
	}
}

// reentered reports that the caller of r, who is o already, has entered again, or why it
// has not. Nothing need be observed.
func (p *reports) reentered(r *request, o *lock.Owner, err error) {
	if err != nil {
		p.notAcquired(o.Held().Key().Name(), r, err)
	} else if p.observed {
		p.in(r, observe.OutcomeNested, o, 0)
	}
}

// releasing reports that a release begins of o, or of the hold with these values. ctx is nil
// where the caller has none. It returns what released is to be given.
func (p *reports) releasing(op string, o *lock.Owner, ctx, values context.Context) (ended func(observe.Outcome, time.Duration, error)) {
	start := p.tracer.StartRelease
	if start == nil {
		return nil
	}
	k := o.Held().Key()
	cfg := &settingsOf(k).cfg
	r := observe.ReleaseStart{Key: k.Name(), Class: cfg.Name, Op: op, Fair: cfg.Fair, Lock: !o.Kind.CanNotify(), Acquired: context.WithoutCancel(values)}
	if ctx == nil {
		ctx = r.Acquired
	}
	end := start(ctx, r)
	if end == nil {
		return nil
	}
	return func(outcome observe.Outcome, held time.Duration, err error) {
		end(observe.ReleaseEnd{Outcome: outcome, Held: held, Err: p.publicly(err, r.Key)})
	}
}

// released reports how one unit of k's owner ended; outcome is "" where it was none.
func (p *reports) released(k *lock.Key, outcome observe.Outcome, held time.Duration, err error, ended func(observe.Outcome, time.Duration, error)) {
	if outcome != "" {
		p.to.Released(settingsOf(k).cfg.Name, outcome, held)
	}
	if ended != nil {
		ended(outcome, held, err)
	}
}

// Lost reports a loss. Its owners were told: this is for others. It and the next five are lock.Reporter.
func (p *reports) Lost(g *lock.Held, l *lock.Loss) {
	class := settingsOf(g.Key()).cfg.Name
	if l.By == renewal.ByRenewal {
		p.to.Renewed(class, observe.OutcomeRefused, 0)
	}
	p.to.Lost(class, observe.LossReason(l.Reason))
	ev := eventOf(observe.EventLost, g, l.Cause)
	ev.Reason, ev.Since, ev.Err = observe.LossReason(l.Reason), l.At, l.Err
	note, is := l.Note.(told)
	if !is && l.Owner != nil { // a release has found it
		note = told{1, p.m.verdictsOn(l.Owner)}
	}
	ev.Owners, ev.Found = note.owners, p.found(note.verdicts)
	ev.Text = (&loss{l.Cause}).words(g.Terms().Fixed(), g.Unrenewed())
	if l.By != "" {
		ev.Text += ", found " + l.By
	}
	if l.Owner != nil {
		ev.CallSite = l.Owner.CallSite
	}
	p.event(reportContext(l.Owner), ev)
}

// ReleaseFailed reports that the first answer to a release of g did not confirm it.
func (p *reports) ReleaseFailed(g *lock.Held, err error) {
	ev := eventOf(observe.EventReleaseFailed, g, g.Lease().Loss(""))
	ev.Err = err
	p.event(reportContext(g.Owner()), ev)
}

// ReleaseGivenUp reports that no release of g was confirmed while something may have been left of it.
func (p *reports) ReleaseGivenUp(g *lock.Held) {
	k := g.Key()
	p.event(context.Background(), observe.Event{
		Kind: observe.EventReleaseGivenUp, Key: k.Name(), Class: settingsOf(k).cfg.Name, Holder: g.Field(),
		Text: "no release was confirmed; the lease ends the lock",
	})
}

// unlockLost reports what Unlock cannot return: the lock of o was lost.
func (p *reports) unlockLost(o *lock.Owner, err *Error) {
	g := o.Held()
	c := g.LossOr(renewal.ReasonGone).Cause
	if l, is := errors.AsType[*loss](err); is {
		c = l.Cause
	}
	ev := eventOf(observe.EventUnlockLost, g, c)
	ev.Reason, ev.Since, ev.Err, ev.CallSite = observe.LossReason(c.Reason), err.Since, err.Err, o.CallSite
	p.event(context.Background(), ev)
}

// reentryLost reports a Lock that had to enter a lost lock again.
func (p *reports) reentryLost(k *lock.Key) {
	p.event(context.Background(), observe.Event{
		Kind: observe.EventReentryLost, Key: k.Name(), Class: settingsOf(k).cfg.Name, CallSite: p.m.callSite(),
		Text: "Lock entered again into a lock that is lost: waiting for itself would be a deadlock; ask Held",
	})
}

// selfDeadlock reports a Lock by a goroutine whose own Acquire holds the key.
func (p *reports) selfDeadlock(k *lock.Key) {
	p.event(context.Background(), observe.Event{
		Kind: observe.EventSelfDeadlock, Key: k.Name(), Class: settingsOf(k).cfg.Name, CallSite: p.m.callSite(),
		Text: "a goroutine locks a key that its own Acquire holds, and waits for itself unless the Hold was passed on; use the Hold's context to enter again",
	})
}

// closing reports what Close waits for: so many holds of these classes, the oldest of which
// came in at site, or else commands without an answer.
func (p *reports) closing(classes map[string]int, site string, commands int) {
	var what string
	holds := 0
	for _, n := range classes {
		holds += n
	}
	switch {
	case holds > 0:
		names := slices.SortedFunc(maps.Keys(classes), func(a, b string) int {
			return cmp.Or(cmp.Compare(classes[b], classes[a]), strings.Compare(a, b))
		})
		var parts []string
		for _, name := range names[:min(len(names), maxReports)] {
			parts = append(parts, fmt.Sprintf("%d of class %s", classes[name], name))
		}
		if n := len(names) - len(parts); n > 0 {
			parts = append(parts, fmt.Sprintf("others of %d more", n))
		}
		what = plural(holds, "hold") + ": " + strings.Join(parts, ", ")
	case commands > 0:
		what = plural(commands, "command")
	default:
		return // just done
	}
	p.event(context.Background(), observe.Event{
		Kind: observe.EventClosing, Since: time.Now().Add(-closeNotice), CallSite: site,
		Text: "Close has waited for " + closeNotice.String() + " for " + what,
	})
}

// eventOf begins an event about g, with what c says was known of its lease.
func eventOf(kind observe.EventKind, g *lock.Held, c renewal.Cause) observe.Event {
	k := g.Key()
	return observe.Event{
		Kind: kind, Key: k.Name(), Class: settingsOf(k).cfg.Name, Holder: g.Field(),
		LastConfirmed: c.LastConfirmed, Deadline: c.Deadline, Failures: c.Failures, Lease: g.Terms().For,
	}
}

// event queues ev, of a hold that was acquired with these values, if of one; a full queue
// drops it and counts that, as does one that has been stopped. It waits for nobody but the Observer: no lock is held.
func (p *reports) event(values context.Context, ev observe.Event) {
	p.raise(queued{Event: ev, values: values})
}

func (p *reports) raise(ev queued) {
	if ev.At.IsZero() {
		ev.At = time.Now()
	}
	ev.ClientID = p.m.cfg.ClientID
	if ev.Err != nil {
		ev.ErrText = hiding(false, ev.Key, ev.Holder, ev.ClientID).of(ev.Err)
	}
	queue, delivered := p.queue, false
	select {
	case <-p.quit:
		queue = nil // nobody reads it any more
	default:
	}
	select {
	case queue <- ev:
		delivered = true
	default:
		p.dropped.Add(1)
	}
	p.to.EventRaised(ev.Kind, !delivered)
}

// run delivers events until stop, and then those that are queued.
func (p *reports) run() {
	for {
		select {
		case e := <-p.queue:
			p.deliver(e)
			if len(p.queue) == 0 {
				p.logDropped()
			}
		case <-p.quit:
			for {
				select {
				case e := <-p.queue:
					p.deliver(e)
				default:
					p.logDropped()
					return
				}
			}
		}
	}
}

func (p *reports) deliver(e queued) {
	ctx := context.WithoutCancel(e.values) // its end is about the waiting
	p.log(ctx, &e)
	if lost := p.tracer.Lost; lost != nil && e.Kind == observe.EventLost && e.Owners > 0 {
		public := e.Event
		public.Err = p.publicly(e.Err, e.Key, e.Holder)
		lost(ctx, public)
	}
	if p.m.cfg.OnEvent != nil {
		p.m.cfg.OnEvent(e.Event)
	}
}

// queued is an event on its way to the log and to OnEvent.
type queued struct {
	observe.Event
	named  string          // Text with keys instead of their hashes, where it speaks of several
	values context.Context // with which the hold was acquired
}

// allHooks returns o with a hook that does nothing in place of each that is nil.
func allHooks(o *observe.Observer) observe.Observer {
	var all observe.Observer
	if o != nil {
		all = *o
	}
	orNothing(&all.Acquired, func(string, observe.Outcome, time.Duration) {})
	orNothing(&all.Called, func(string, string) {})
	orNothing(&all.Released, func(string, observe.Outcome, time.Duration) {})
	orNothing(&all.Renewed, func(string, observe.Outcome, time.Duration) {})
	orNothing(&all.Lost, func(string, observe.LossReason) {})
	orNothing(&all.Command, func(string, string, time.Duration) {})
	orNothing(&all.Checked, func(string, string) {})
	orNothing(&all.Recovered, func(string, string, string) {})
	orNothing(&all.Alert, func(string, string, bool) {})
	orNothing(&all.Subscription, func(bool) {})
	orNothing(&all.EventRaised, func(observe.EventKind, bool) {})
	return all
}

func orNothing[F any](hook *F, nothing F) {
	if reflect.ValueOf(*hook).IsNil() {
		*hook = nothing
	}
}
