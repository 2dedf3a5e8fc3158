package anteroom

import (
	"cmp"
	"slices"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
)

// longWait is a key whose first waiter has waited for longer than Config.LongWait.
type longWait struct {
	e     *entry
	front queue.Front
}

// limitOf is how long a caller may wait for e; negative: for as long as it likes.
func (l *lookout) limitOf(e *entry) time.Duration { return cmp.Or(e.cfg.LongWait, l.limit) }

// serve lets the looks be close enough for waits of this limit, where any are reported.
func (l *lookout) serve(limit time.Duration) {
	if limit <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.every = min(l.every, limit/looksPerWait)
}

// isNews tells whether the wait of the first waiter, which began at since, is to be
// reported now, and notes that it was.
//
// A report is about a key and stands for every caller that has waited too long by then, so
// 100,000 waiters of one key make one event. A key is reported again when somebody who
// was not among them has become first and is over the limit too, and not before another
// LongWait has passed: a queue that moves on, but too slowly, is one event per LongWait.
//
// Only the first waiter is looked at. The others came later: queues are in order of
// arrival, also those that are not fair. (A waiter that was given a grant that had
// ended stands first again, ahead of some that may be older. They are seen when it has
// come in or is over the limit itself.)
func isNews(limit time.Duration, s *sighting, since, now time.Time) bool {
	switch over := now.Add(-limit); {
	case since.After(over):
		return false
	case !since.After(s.covered), now.Sub(s.told) < limit:
		return false
	default:
		s.covered, s.told = over, now
		return true
	}
}

// longWaits makes the events of the keys that are overdue: one for each of those with the
// longest waits, and one for all others together.
func (l *lookout) longWaits(now time.Time) []Event {
	slices.SortFunc(l.overdue, func(a, b longWait) int { return a.front.First.Since.Compare(b.front.First.Since) })
	some := l.overdue[:min(maxReports, len(l.overdue))]
	events := make([]Event, 0, len(some)+1)
	for _, o := range some {
		w := waitInfo(o.e, &o.front, o.front.First)
		ev := Event{
			Kind: EventLongWait, At: now, Key: w.Key, Class: w.Class, Since: w.Since,
			Waiters: o.front.Waiting, Waits: []WaitInfo{w},
		}
		o.holder(&ev)
		events = append(events, ev)
	}
	if others := l.overdue[len(some):]; len(others) > 0 {
		ev := Event{Kind: EventLongWait, At: now, Since: others[0].e.m.dated(others[0].front.First.Since)}
		for _, o := range others {
			ev.Waiters += o.front.Waiting
		}
		ev.Text = plural(len(others), "further key") + " with callers that have waited for too long"
		events = append(events, ev)
	}
	return events
}

// holder says who has the key, as far as this process knows: Event.Holder, and in Text
// what longWaitText cannot tell from the wait alone.
func (o *longWait) holder(ev *Event) {
	e, cur := o.e, o.front.Current
	if cur.Grant != 0 {
		if g := e.cur.Load(); g != nil && g.n == cur.Grant {
			ev.Holder = g.name()
		}
		switch cur.State {
		case queue.Lost:
			ev.Text = ", which has lost it and not unlocked"
		case queue.Releasing:
			ev.Text = "it is just being released"
		case queue.Granted:
			ev.Text = "it has just been granted"
		}
		return
	}
	t := e.answer.Load()
	if t == nil || t == notAsked || t == notAnswered { // no error: the first answer is on its way
		ev.Text = "it is just being acquired"
		return
	}
	ev.Holder, ev.Err = t.holder, t.err
	switch id, _, ours := lettucecompat.ParseField(t.holder); {
	case t.err != nil:
		ev.Text = "acquiring it meets errors"
	case ours && id == e.m.cfg.ClientID:
		ev.Text = "held by an earlier grant of this Manager that is still to be removed"
	default:
		ev.Text = "held by another process, or by another Manager of this one"
	}
}
