package report

import (
	"context"
	"log/slog"
	"time"

	"github.com/anteroom/anteroom/sync/observe"
)

// This file is the queue of events: from the code that raises one to the log, the Tracer and OnEvent.

// event queues ev, of a hold that was acquired with these values, if of one; a full queue
// drops it and counts that, as does one that has been stopped. It waits for nobody but the Observer: no lock is held.
func (p *Reports) event(values context.Context, ev observe.Event) {
	p.raise(values, ev, "", levelOf(&ev))
}

// eventOr is event, or aside: what another record says, or nobody has to act on, the log has at Debug.
func (p *Reports) eventOr(aside bool, values context.Context, ev observe.Event) {
	level := levelOf(&ev)
	if aside {
		level = slog.LevelDebug
	}
	p.raise(values, ev, "", level)
}

// Raise is event; named is the Text with keys instead of their hashes, where it speaks of several.
func (p *Reports) Raise(values context.Context, event observe.Event, named string) {
	p.raise(values, event, named, levelOf(&event))
}

func (p *Reports) raise(values context.Context, event observe.Event, named string, level slog.Level) {
	ev := queued{event, named, level, values}
	if ev.At.IsZero() {
		ev.At = time.Now()
	}
	ev.ClientID = p.cfg.ClientID
	if ev.Err != nil {
		ev.ErrText = p.cfg.Words(ev.Err, false, ev.Key, ev.Holder, ev.ClientID)
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
func (p *Reports) run() {
	for {
		select {
		case e := <-p.queue:
			p.deliver(e)
			if len(p.queue) == 0 {
				p.logDropped()
			}
		case <-p.quit:
			for len(p.queue) > 0 {
				p.deliver(<-p.queue)
			}
			p.logDropped()
			return
		}
	}
}

func (p *Reports) deliver(e queued) {
	ctx := context.WithoutCancel(e.values) // its end is about the waiting
	p.log(ctx, &e)
	if lost := p.tracer.Lost; lost != nil && e.Kind == observe.EventLost && e.Owners > 0 {
		public := e.Event
		public.Err = p.public(e.Err, e.Key, e.Holder)
		lost(ctx, public)
	}
	if p.cfg.OnEvent != nil {
		p.cfg.OnEvent(e.Event)
	}
}

// queued is an event on its way to the log and to OnEvent.
type queued struct {
	observe.Event
	named  string          // Text with keys instead of their hashes, where it speaks of several
	level  slog.Level      // in the log
	values context.Context // with which the hold was acquired
}
