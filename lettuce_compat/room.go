package lettucecompat

import "time"

const (
	// maxBatch bounds the commands that share one round trip (beyond it by one call's at
	// most), so that one slow connection delays a bounded number of callers.
	maxBatch = 256
	// abandonedPerPlace bounds the abandoned trips of a lane to this many times its limit.
	// Beyond it new calls wait: a hung server costs a bounded number of goroutines and
	// connections.
	abandonedPerPlace = 4
	// fewTrips is the number of trips that are always under way at once if there is that
	// much to do, and tripSpacing the time that each further one must be worth: see
	// lane.room.
	fewTrips    = 4
	tripSpacing = 250 * time.Microsecond
	// slowTrip is the least time after which a trip is slow: a busy machine takes a few
	// milliseconds for what is usually done in a tenth of one.
	slowTrip = 10 * time.Millisecond
)

// hasRoomLocked reports whether another trip may start.
func (l *lane) hasRoomLocked() bool {
	return l.live < l.room() && l.total < l.limit*(1+abandonedPerPlace)
}

// room is how many trips may be under way. Each costs both ends the same few system
// calls, whatever it carries, so where round trips are short there are few, and what waits
// for the next one travels together; it waits a moment only. Where they are long there
// are more, so that nobody waits for a large part of one. Slow trips do not count among
// the few: a connection that gives no answer must not keep everybody else waiting.
func (l *lane) room() int {
	return min(l.limit, l.slow+max(fewTrips, int(l.c.rtt.value()/tripSpacing)))
}

// share is how many calls a trip takes: as many as each would have if all were under way.
// Trips then alternate, so that a server works on one while its clients work on the
// answers of another. One trip that took everything would keep either waiting for the other.
func (l *lane) share() int {
	room := max(l.room()-l.slow, 1) // slow trips take nothing
	return min((l.awaited+room-1)/room, maxBatch)
}

// patience is how long a trip may take before it is slow: much longer than is usual.
func (l *lane) patience() time.Duration { return max(slowTrip, 4*l.c.rtt.value()) }

// markLocked marks t, which may have a call that is awaited, where it is slow.
func (l *lane) markLocked(t *trip, now time.Time) {
	if t != nil && !t.slow && now.Sub(t.began) >= l.patience() {
		t.slow = true
		l.slow++
	}
}

// freeLocked gives the place of t up, for which nobody waits any more.
func (l *lane) freeLocked(t *trip) {
	l.live--
	if t.slow {
		l.slow--
	}
}
