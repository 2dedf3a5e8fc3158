package lettucecompat

import "time"

const (
	// fewFlights is the number of round trips that are always under way at once if there is
	// that much to do, and flightSpacing the time that each further one must be worth: see
	// lane.room.
	fewFlights    = 4
	flightSpacing = 250 * time.Microsecond
	// slowFlight is the least time after which a flight is slow: a busy machine takes a few
	// milliseconds for what is usually done in a tenth of one.
	slowFlight = 10 * time.Millisecond
)

// roomLocked reports whether a flight with something to carry may start.
func (l *lane) roomLocked() bool {
	return l.queued != nil && l.live < l.room() && l.total < l.limit*(1+strandedPerSlot)
}

// room is how many flights may be under way. Each costs both ends the same few system
// calls, whatever it carries, so where round trips are short there are few, and what waits
// for the next landing travels together; it waits a moment only. Where they are long there
// are more, so that nobody waits for a large part of one. Slow flights do not count among
// the few: a connection that gives no answer must not keep everybody else waiting.
func (l *lane) room() int {
	return min(l.limit, l.slow+max(fewFlights, int(l.c.rtt.value()/flightSpacing)))
}

// share is how many calls a flight takes: as many as each would have if all were under way.
// Flights then alternate, so that a server works on one while its clients work on the
// answers of another. One flight that took everything would keep either waiting for the other.
func (l *lane) share() int {
	room := max(l.room()-l.slow, 1) // slow flights take nothing
	return (l.awaited + room - 1) / room
}

// patience is how long a flight may take before it is slow: much longer than is usual.
func (l *lane) patience() time.Duration { return max(slowFlight, 4*l.c.rtt.value()) }

// markLocked marks f, in which a call that is awaited may be flying, where it is slow.
func (l *lane) markLocked(f *flight, now time.Time) {
	if f != nil && !f.slow && now.Sub(f.began) >= l.patience() {
		f.slow = true
		l.slow++
	}
}

// freeLocked gives the slot of f back, for which nobody waits any more.
func (l *lane) freeLocked(f *flight) {
	l.live--
	if f.slow {
		l.slow--
	}
}
