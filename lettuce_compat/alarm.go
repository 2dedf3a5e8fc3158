package lettucecompat

import (
	"fmt"
	"time"
)

// The alarm rings again no sooner than walkSpacing after it has looked at manyCalls calls,
// and in proportion with more of them: some ten times what the
// walk takes.
const (
	manyCalls   = 2000
	walkSpacing = time.Millisecond
)

// A lane has one timer for all that ends by time: the waits of its callers and the
// lingering of its goroutine. It is set when something is to end before it rings, and
// not when that is over: most calls are answered long before, so that it rings once a
// time limit for nothing, where a timer for each call would be set and stopped for each.

// ringLocked sees to it that the alarm rings at the moment at, or before.
func (l *lane) ringLocked(at, now time.Time) {
	if !l.alarmAt.IsZero() && !at.Before(l.alarmAt) {
		return
	}
	l.alarmAt = at
	if l.alarm == nil {
		l.alarm = time.AfterFunc(at.Sub(now), l.rang)
		return
	}
	l.alarm.Reset(at.Sub(now))
}

// rang ends what is due and sets the alarm for the next.
func (l *lane) rang() {
	late := false
	l.mu.Lock()
	now := time.Now()
	l.alarmAt = time.Time{}
	if l.idle != nil && !now.Before(l.idleEnd) {
		l.dismissLocked()
	}
	if l.idle != nil {
		l.ringLocked(l.idleEnd, now)
	}
	// Where a great many wait, those that end soon after one another end together: a walk
	// over all of them for each would keep the lane for itself.
	var looked int
	var first time.Time
	for k := l.head; k != nil; looked++ {
		next := k.next
		l.markLocked(k.flight, now)
		switch {
		case now.Before(k.end):
			if first.IsZero() || k.end.Before(first) {
				first = k.end
			}
		case k.done == nil:
			k.flight.endLocked() // its caller, who carries it, is only freed of waiting for a connection
			late = true
		default:
			l.leaveLocked(k, k.timedOut())
			k.done <- struct{}{}
			late = true
		}
		k = next
	}
	if !first.IsZero() {
		if soonest := now.Add(time.Duration(looked/manyCalls) * walkSpacing); first.Before(soonest) {
			first = soonest
		}
		l.ringLocked(first, now)
	}
	l.startLocked(now) // beside flights that have become slow
	l.mu.Unlock()
	if late {
		l.c.relocate() // a node that hangs may have been replaced; its own error comes much later
	}
}

// timedOut is the error of a call whose time is over.
func (k *call) timedOut() error { return fmt.Errorf("%w (%v)", ErrTimeout, k.timeout) }
