package anteroom

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/internal/goroutines"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/lock"
)

// reports is what a Manager tells people and programs, by its Observer, its Tracer, the log
// and OnEvent. The core calls it with values of its own and with no mutex locked, and knows
// none of the four (TestReports_TheCoreNamesNone).
type reports struct {
	m        *Manager
	observed bool // somebody is told of each operation; if not, acquiring and releasing report nothing
	troubles troubles
	batches  sync.WaitGroup // reports of renewals and of ended troubles; none begins once both are stopped

	queue   chan Event
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
	_, ignores := m.cfg.Observer.(NopObserver)
	p.m, p.observed = m, !ignores || m.cfg.Tracer != nil
	p.troubles = troubles{p: p, all: map[subject]*trouble{}}
	p.scan = goroutines.Look
	p.queue, p.quit = make(chan Event, eventQueueLen), make(chan struct{})
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
	tracer, cfg := p.m.cfg.Tracer, &r.settings.cfg
	if tracer == nil {
		return ctx
	}
	ctx, r.endSpan = tracer.StartAcquire(ctx, AcquireStart{Key: key, Class: cfg.Name, Op: r.op, Fair: cfg.Fair, Lock: !r.kind.CanNotify()})
	return ctx
}

// acquired reports that the caller of r is o now.
func (p *reports) acquired(r *request, o *lock.Owner) {
	outcome := OutcomeGranted
	if o.HandOffs() > 0 {
		outcome = OutcomeHandedOff
	}
	p.in(r, outcome, o, p.m.leases.Glance()-r.began)
}

func (p *reports) in(r *request, outcome Outcome, o *lock.Owner, wait time.Duration) {
	p.m.cfg.Observer.Acquired(r.settings.cfg.Name, outcome, wait)
	if r.endSpan != nil {
		r.endSpan(AcquireEnd{Outcome: outcome, HandOffs: o.HandOffs(), Holder: o.Held().Field()})
	}
}

// notAcquired reports that the caller of r has not come in. Nothing need be observed.
func (p *reports) notAcquired(key string, r *request, err error) {
	if !p.observed {
		return
	}
	outcome := outcomeOf(err)
	if outcome == OutcomeMistake {
		outcome = OutcomeFailed
	}
	p.m.cfg.Observer.Acquired(r.settings.cfg.Name, outcome, p.m.leases.Glance()-r.began)
	if r.endSpan != nil {
		r.endSpan(AcquireEnd{Outcome: outcome, Err: (&Event{Key: key, ClientID: p.m.cfg.ClientID}).publicly(err)})
	}
}

// reentered reports that the caller of r, who is o already, has entered again, or why it
// has not. Nothing need be observed.
func (p *reports) reentered(r *request, o *lock.Owner, err error) {
	if err != nil {
		p.notAcquired(o.Held().Key().Name(), r, err)
	} else if p.observed {
		p.in(r, OutcomeNested, o, 0)
	}
}

// releasing reports that a release begins of o, or of the hold with these values. ctx is nil
// where the caller has none. It returns what released is to be given.
func (p *reports) releasing(op string, o *lock.Owner, ctx, values context.Context) (ended func(Outcome, time.Duration, error)) {
	if p.m.cfg.Tracer == nil {
		return nil
	}
	k := o.Held().Key()
	cfg := &settingsOf(k).cfg
	r := ReleaseStart{Key: k.Name(), Class: cfg.Name, Op: op, Fair: cfg.Fair, Lock: !o.Kind.CanNotify(), Acquired: context.WithoutCancel(values)}
	if ctx == nil {
		ctx = r.Acquired
	}
	end := p.m.cfg.Tracer.StartRelease(ctx, r)
	if end == nil {
		return nil
	}
	return func(outcome Outcome, held time.Duration, err error) {
		end(ReleaseEnd{Outcome: outcome, Held: held, Err: (&Event{Key: r.Key, ClientID: p.m.cfg.ClientID}).publicly(err)})
	}
}

// released reports how one unit of k's owner ended; outcome is "" where it was none.
func (p *reports) released(k *lock.Key, outcome Outcome, held time.Duration, err error, ended func(Outcome, time.Duration, error)) {
	if outcome != "" {
		p.m.cfg.Observer.Released(settingsOf(k).cfg.Name, outcome, held)
	}
	if ended != nil {
		ended(outcome, held, err)
	}
}

// Lost reports a loss. Its owners were told: this is for others. It and the next five are lock.Reporter.
func (p *reports) Lost(g *lock.Held, l *lock.Loss) {
	class := settingsOf(g.Key()).cfg.Name
	if l.By == renewal.ByRenewal {
		p.m.cfg.Observer.Renewed(class, OutcomeRefused, 0)
	}
	p.m.cfg.Observer.Lost(class, l.Reason)
	ev := eventOf(EventLost, g, l.Cause)
	ev.Reason, ev.Since, ev.Err = l.Reason, l.At, l.Err
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
	ev := eventOf(EventReleaseFailed, g, g.Lease().Loss(""))
	ev.Err = err
	p.event(reportContext(g.Owner()), ev)
}

// ReleaseGivenUp reports that no release of g was confirmed while something may have been left of it.
func (p *reports) ReleaseGivenUp(g *lock.Held) {
	k := g.Key()
	p.event(context.Background(), Event{
		Kind: EventReleaseGivenUp, Key: k.Name(), Class: settingsOf(k).cfg.Name, Holder: g.Field(),
		Text: "no release was confirmed; the lease ends the lock",
	})
}

// unlockLost reports what Unlock cannot return: the lock of o was lost.
func (p *reports) unlockLost(o *lock.Owner, err *Error) {
	g := o.Held()
	c := g.LossOr(LostGone).Cause
	if l, is := errors.AsType[*loss](err); is {
		c = l.Cause
	}
	ev := eventOf(EventUnlockLost, g, c)
	ev.Reason, ev.Since, ev.Err, ev.CallSite = c.Reason, err.Since, err.Err, o.CallSite
	p.event(context.Background(), ev)
}

// reentryLost reports a Lock that had to enter a lost lock again.
func (p *reports) reentryLost(k *lock.Key) {
	p.event(context.Background(), Event{
		Kind: EventReentryLost, Key: k.Name(), Class: settingsOf(k).cfg.Name, CallSite: p.m.callSite(),
		Text: "Lock entered again into a lock that is lost: waiting for itself would be a deadlock; ask Held",
	})
}

// selfDeadlock reports a Lock by a goroutine whose own Acquire holds the key.
func (p *reports) selfDeadlock(k *lock.Key) {
	p.event(context.Background(), Event{
		Kind: EventSelfDeadlock, Key: k.Name(), Class: settingsOf(k).cfg.Name, CallSite: p.m.callSite(),
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
	p.event(context.Background(), Event{
		Kind: EventClosing, Since: time.Now().Add(-closeNotice), CallSite: site,
		Text: "Close has waited for " + closeNotice.String() + " for " + what,
	})
}

// eventOf begins an event about g, with what c says was known of its lease.
func eventOf(kind EventKind, g *lock.Held, c renewal.Cause) Event {
	k := g.Key()
	return Event{
		Kind: kind, Key: k.Name(), Class: settingsOf(k).cfg.Name, Holder: g.Field(),
		LastConfirmed: c.LastConfirmed, Deadline: c.Deadline, Failures: c.Failures, Lease: g.Terms().For,
	}
}

// event queues ev, of a hold that was acquired with these values, if of one; a full queue
// drops it and counts that, as does one that has been stopped. It waits for nobody but the Observer: no lock is held.
func (p *reports) event(values context.Context, ev Event) {
	if ev.At.IsZero() {
		ev.At = time.Now()
	}
	ev.ClientID, ev.values = p.m.cfg.ClientID, values
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
	p.m.cfg.Observer.EventRaised(ev.Kind, !delivered)
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

func (p *reports) deliver(e Event) {
	ctx := context.WithoutCancel(e.values) // its end is about the waiting
	e.values = nil                         // an Event that a program keeps must not keep them
	p.log(ctx, &e)
	if p.m.cfg.Tracer != nil && e.Kind == EventLost && e.Owners > 0 {
		public := e
		public.Err = e.publicly(e.Err)
		p.m.cfg.Tracer.Lost(ctx, public)
	}
	if p.m.cfg.OnEvent != nil {
		p.m.cfg.OnEvent(e)
	}
}
