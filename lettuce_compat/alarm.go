package lettucecompat

import "time"

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
	for k := l.head; k != nil; {
		next := k.next
		switch {
		case now.Before(k.end):
			l.ringLocked(k.end, now)
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
	l.mu.Unlock()
	if late {
		l.c.relocate() // a node that hangs may have been replaced; its own error comes much later
	}
}
