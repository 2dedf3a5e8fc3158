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

	mu     sync.Mutex
	pinged map[string]string // by key, what Ping has said; guarded by mu
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
	r.waiter.Began = p.m.leases.Glance()
	tracer, cfg := p.m.cfg.Tracer, &r.settings.cfg
	if tracer == nil {
		return ctx
	}
	ctx, r.endSpan = tracer.StartAcquire(ctx, AcquireStart{Key: key, Class: cfg.Name, Op: r.op, Fair: cfg.Fair, Lock: r.waiter.Kind.IsDeaf()})
	return ctx
}

// acquired reports that the caller of r has g, after so many other owners of this process.
func (p *reports) acquired(r *request, outcome Outcome, g *grant, handOffs int, wait time.Duration) {
	p.m.cfg.Observer.Acquired(g.e.cfg.Name, outcome, wait)
	if r.endSpan != nil {
		r.endSpan(AcquireEnd{Outcome: outcome, HandOffs: handOffs, Holder: g.name()})
		r.endSpan = nil // r may serve another caller
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
	p.m.cfg.Observer.Acquired(r.settings.cfg.Name, outcome, p.m.leases.Glance()-r.waiter.Began)
	if r.endSpan != nil {
		r.endSpan(AcquireEnd{Outcome: outcome, Err: (&Event{Key: key, ClientID: p.m.cfg.ClientID}).publicly(err)})
		r.endSpan = nil
	}
}

// reentered reports that the caller of r, who has t already, has entered it again, or why it
// has not. Nothing need be observed.
func (p *reports) reentered(r *request, t *tenure, err error) {
	if err != nil {
		p.notAcquired(t.g.e.key, r, err)
	} else if p.observed {
		p.acquired(r, OutcomeNested, t.g, int(t.handOffs), 0)
	}
}

// releasing reports that a release begins of t, or of the hold with these values. ctx is nil
// where the caller has none. It returns what released is to be given.
func (p *reports) releasing(op string, t *tenure, ctx, values context.Context) (ended func(Outcome, time.Duration, error)) {
	if p.m.cfg.Tracer == nil {
		return nil
	}
	e := t.g.e
	r := ReleaseStart{Key: e.key, Class: e.cfg.Name, Op: op, Fair: e.cfg.Fair, Lock: t.lock, Acquired: context.WithoutCancel(values)}
	if ctx == nil {
		ctx = r.Acquired
	}
	end := p.m.cfg.Tracer.StartRelease(ctx, r)
	if end == nil {
		return nil
	}
	return func(outcome Outcome, held time.Duration, err error) {
		end(ReleaseEnd{Outcome: outcome, Held: held, Err: (&Event{Key: e.key, ClientID: p.m.cfg.ClientID}).publicly(err)})
	}
}

// released reports how one unit of a tenure of e ended; outcome is "" where it was none.
func (p *reports) released(e *entry, outcome Outcome, held time.Duration, err error, ended func(Outcome, time.Duration, error)) {
	if outcome != "" {
		p.m.cfg.Observer.Released(e.cfg.Name, outcome, held)
	}
	if ended != nil {
		ended(outcome, held, err)
	}
}

// lost reports a loss. Its owners were told: this is for others.
func (p *reports) lost(g *grant, l *loss) {
	if l.By == renewal.ByRenewal {
		p.m.cfg.Observer.Renewed(g.e.cfg.Name, OutcomeRefused, 0)
	}
	p.m.cfg.Observer.Lost(g.e.cfg.Name, l.Reason)
	ev := eventOf(EventLost, g, l.Cause)
	ev.Reason, ev.Since, ev.Err, ev.Owners = l.Reason, l.At, l.Err, l.owners
	ev.Found = p.found(l.verdicts)
	ev.Text = l.words(g.terms.fixed(), g.unrenewed.Load())
	if l.By != "" {
		ev.Text += ", found " + l.By
	}
	if l.owner != nil {
		ev.CallSite = l.owner.callSite
	}
	p.event(l.owner.reportContext(), ev)
}

// releaseFailed reports that the first answer to a release of g did not confirm it.
func (p *reports) releaseFailed(g *grant, err error) {
	ev := eventOf(EventReleaseFailed, g, g.lease.Load().Loss(""))
	ev.Err = err
	p.event(g.lastOwner().reportContext(), ev)
}

// releaseGivenUp reports that no release of a field has been confirmed in its time.
func (p *reports) releaseGivenUp(e *entry, field string) {
	p.event(context.Background(), Event{
		Kind: EventReleaseGivenUp, Key: e.key, Class: e.cfg.Name, Holder: field,
		Text: "no release was confirmed; the lease ends the lock",
	})
}

// unlockLost reports what Unlock cannot return: the lock of t was lost.
func (p *reports) unlockLost(t *tenure, err *Error) {
	l, is := errors.AsType[*loss](err)
	if !is {
		l = t.g.lossOr(LostGone)
	}
	ev := eventOf(EventUnlockLost, t.g, l.Cause)
	ev.Reason, ev.Since, ev.Err, ev.CallSite = l.Reason, err.Since, err.Err, t.callSite
	p.event(context.Background(), ev)
}

// reentryLost reports a Lock that had to enter a lost lock again.
func (p *reports) reentryLost(e *entry) {
	p.event(context.Background(), Event{
		Kind: EventReentryLost, Key: e.key, Class: e.cfg.Name, CallSite: p.m.callSite(),
		Text: "Lock entered again into a lock that is lost: waiting for itself would be a deadlock; ask Held",
	})
}

// selfDeadlock reports a Lock by a goroutine whose own Acquire holds the key.
func (p *reports) selfDeadlock(e *entry) {
	p.event(context.Background(), Event{
		Kind: EventSelfDeadlock, Key: e.key, Class: e.cfg.Name, CallSite: p.m.callSite(),
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
func eventOf(k EventKind, g *grant, c renewal.Cause) Event {
	return Event{
		Kind: k, Key: g.e.key, Class: g.e.cfg.Name, Holder: g.name(),
		LastConfirmed: c.LastConfirmed, Deadline: c.Deadline, Failures: c.Failures, Lease: g.terms.lease,
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
