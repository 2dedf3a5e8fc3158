package report

import (
	"context"
	"slices"
	"time"

	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/observe"
	"github.com/anteroom/anteroom/watchdog"
)

// This file reports single holds, and Close.

// Note is what a loss is reported with: how many holds were notified, and what the watchdog had said of the hold, which
// it forgets when the grant is unregistered.
type Note struct {
	owners   int
	verdicts []watchdog.Verdict
}

// NoteOn returns the note on the loss of what of has. What the watchdog had to say of an earlier owner is not in it; what it has to
// say of the grant of units is added when that is reported. It takes the watchdog's mutex and allocates one slice: the renewal loop
// calls it, once for each grant that is lost.
func (p *Reports) NoteOn(of *lock.Owner, holds int) Note {
	return Note{holds, slices.DeleteFunc(p.dog.Verdicts(of.Number()), func(v watchdog.Verdict) bool {
		return v.Check == watchdog.Holder && v.At.Before(p.leases.Zero().Add(of.Since()))
	})}
}

// Lost reports a loss. Its owners were notified before: this is for others. It and the next five are lock.Reporter.
func (p *Reports) Lost(g *lock.Held, l *lock.Loss) {
	class := g.Settings().Class
	if l.By == renewal.ByRenewal {
		p.to.Renewed(class, observe.OutcomeRefused, 0)
	}
	p.to.Lost(class, observe.LossReason(l.Reason))
	ev := eventOf(observe.EventLost, g, l.Cause)
	ev.Reason, ev.Since, ev.Err = observe.LossReason(l.Reason), l.At, l.Err
	note, is := l.Note.(Note)
	of := l.AnyOwner()
	if !is && of != nil { // a release has found it
		note = p.NoteOn(of, 1)
	}
	unrenewed := g.Unrenewed()
	if g.Settings().Shared {
		note.owners, note.verdicts = len(l.Of), append(note.verdicts, p.dog.Verdicts(g.Number())...)
		unrenewed = of != nil && of.Stopped()
	}
	ev.Owners, ev.Found = note.owners, p.found(note.verdicts)
	ev.Text = LossText(l.Reason, unrenewed)
	if l.By != "" {
		ev.Text += ", found " + l.By
	}
	if of != nil {
		ev.CallSite = of.CallSite
	}
	p.event(p.cfg.Values(of), ev)
}

// ReleaseFailed reports that the first answer to a release of g did not confirm it.
func (p *Reports) ReleaseFailed(g *lock.Held, err error) {
	ev := eventOf(observe.EventReleaseFailed, g, g.Lease().Loss(""))
	ev.Text, ev.Err = "no answer has confirmed a release; it is repeated", err
	p.event(p.cfg.Values(g.AnyOwner()), ev)
}

// ReleaseGivenUp reports that no release of g was confirmed while something may have been left of it.
func (p *Reports) ReleaseGivenUp(g *lock.Held) {
	p.event(context.Background(), observe.Event{
		Kind: observe.EventReleaseGivenUp, Key: g.Name(), Class: g.Settings().Class, Holder: g.Field(),
		Text: "no release was confirmed; the lease ends the lock",
	})
}

// UnlockLost reports what Unlock cannot return: the lock that came in at site was lost for c, since then, as why says.
func (p *Reports) UnlockLost(g *lock.Held, site string, c renewal.Cause, since time.Time, why error) {
	ev := eventOf(observe.EventUnlockLost, g, c)
	ev.Text = "Unlock of a lock that had been lost"
	ev.Reason, ev.Since, ev.Err, ev.CallSite = observe.LossReason(c.Reason), since, why, site
	p.event(context.Background(), ev)
}

// ReentryLost reports a Lock that had to enter a lost lock again.
func (p *Reports) ReentryLost(k *lock.Key) {
	p.event(context.Background(), observe.Event{
		Kind: observe.EventReentryLost, Key: k.Name(), Class: k.Settings().Class, CallSite: p.cfg.CallSite(),
		Text: "Lock entered again into a lock that is lost: waiting for itself would be a deadlock; ask Held",
	})
}

// SelfDeadlock reports a Lock or Do by a goroutine that holds the key, which it has taken at that site.
func (p *Reports) SelfDeadlock(key, class, site string) {
	p.event(context.Background(), observe.Event{
		Kind: observe.EventSelfDeadlock, Key: key, Class: class, CallSite: p.cfg.CallSite(), Text: selfDeadlockText(site),
	})
}

// Closing reports what Close has waited for, after that time: so many holds of these classes, the oldest of which
// came in at site, or else commands without an answer.
func (p *Reports) Closing(after time.Duration, classes map[string]int, site string, commands int) {
	text := closingText(after, classes, commands)
	if text == "" {
		return
	}
	p.event(context.Background(), observe.Event{Kind: observe.EventClosing, Since: time.Now().Add(-after), CallSite: site, Text: text})
}

// eventOf begins an event about g, with what c says was known of its lease.
func eventOf(kind observe.EventKind, g *lock.Held, c renewal.Cause) observe.Event {
	return observe.Event{
		Kind: kind, Key: g.Name(), Class: g.Settings().Class, Holder: g.Field(),
		LastConfirmed: c.LastConfirmed, Deadline: c.Deadline, Failures: c.Failures, Lease: g.Terms().For,
	}
}
