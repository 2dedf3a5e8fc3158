package renewal

import (
	"sync/atomic"
	"time"
)

// clock is the package's own time: nanoseconds since the Manager was made, eight bytes
// instead of twenty-four, comparable with <, and readable by one atomic load.
//
// It is the monotonic clock, with one correction. Linux, like most systems, stops that
// clock while the machine is suspended, and Redis goes on: a lease would look as young
// after the night as before it. So the time of suspension is added. It costs a system
// call to ask for, so it is asked for only when there is a hint: time.Now reads both
// clocks, and whatever moves the wall clock against the monotonic one, a suspension or
// somebody who sets the clock, changes their distance. A clock that was set moves
// nothing here.
//
// Where the system does not tell how long it was suspended (suspended is 0 for ever),
// this is the monotonic clock alone.
type clock struct {
	base      time.Time                     // origin
	baseWall  time.Time                     // its wall reading alone
	wall      func(now time.Time) time.Time // its wall reading; a seam for tests
	suspended func() time.Duration          // in all since the machine started; a seam for tests
	origin    time.Duration                 // suspended at base
	epoch     atomic.Pointer[epoch]
}

// epoch is a stretch of time without suspension. It is written once.
type epoch struct {
	apart  int64  // wall clock less monotonic clock, both since base
	slept  int64  // suspended since base
	before *epoch // the one before, without its own before; nil for the first
}

// apartTolerance is how far the distance of the clocks may differ from the epoch's
// without a second look. Slewing moves both clocks alike; a goroutine that loses its
// processor between the two readings costs a look in vain. A suspension below it is
// within the margin of the shortest lease.
const apartTolerance = int64(10 * time.Millisecond)

func newClock() *clock {
	c := &clock{base: time.Now(), wall: func(now time.Time) time.Time { return now.Round(0) }, suspended: suspended}
	c.baseWall, c.origin = c.base.Round(0), c.suspended()
	c.epoch.Store(&epoch{})
	return c
}

// apart is the distance of the two readings of t.
func (c *clock) apart(t time.Time) int64 {
	return int64(c.wall(t).Sub(c.baseWall)) - int64(t.Sub(c.base))
}

// at converts a moment that was read with time.Now, a moment ago or long before: its own
// two readings tell on which side of a suspension it was. The zero time is the distant
// past.
func (c *clock) at(t time.Time) int64 {
	e, apart := c.epoch.Load(), c.apart(t)
	if off := distance(apart, e.apart); off > apartTolerance {
		switch b := e.before; {
		case t.IsZero():
		case b != nil && distance(apart, b.apart) <= min(off, apartTolerance):
			e = b
		default:
			e = c.look(e, apart)
		}
	}
	return int64(t.Sub(c.base)) + e.slept
}

// look begins a new epoch whose clocks are apart by that much.
func (c *clock) look(e *epoch, apart int64) *epoch {
	next := &epoch{apart: apart, slept: int64(c.suspended() - c.origin)}
	// Two clocks that are read one after the other differ by a little even without a
	// suspension, and this time must never run backwards.
	if next.slept < e.slept+apartTolerance/2 {
		next.slept = e.slept
	}
	next.before = &epoch{apart: e.apart, slept: e.slept}
	if !c.epoch.CompareAndSwap(e, next) {
		return c.epoch.Load() // somebody else has just looked
	}
	return next
}

// now is the present moment.
func (c *clock) now() int64 { return c.at(time.Now()) }

// time converts back, with a monotonic reading: a moment that is to come, as the
// monotonic clock will show it without a further suspension. never becomes the zero time.
func (c *clock) time(at int64) time.Time {
	if at == never {
		return time.Time{}
	}
	return c.base.Add(time.Duration(at - c.epoch.Load().slept))
}

// slept is how long the machine was suspended, as far as it was noticed.
func (c *clock) slept() int64 { return c.epoch.Load().slept }

func distance(a, b int64) int64 { return max(a-b, b-a) }
