package renewal

import (
	"sync/atomic"
	"time"
)

// clock is the package's own time: nanoseconds since the Manager was made, eight bytes
// instead of twenty-four, comparable with <, and readable by one atomic load.
//
// What Now returns is the monotonic clock. The times of a lease have one correction. Linux,
// like most systems, stops that clock while the machine is suspended, and Redis continues: a
// lease would seem as young after the night as before it. So they have the time of
// suspension added. It costs a system call to ask for, so it is asked for only when there is
// a hint: time.Now reads both clocks, and anything that moves the wall clock against the
// monotonic one, a suspension or somebody who sets the clock, changes their distance. A
// clock that was set moves nothing here.
//
// If the system does not report how long it was suspended (suspended is 0 for ever),
// this is the monotonic clock alone.
type clock struct {
	base      time.Time                 // origin
	baseWall  int64                     // its wall reading alone
	wall      func(now time.Time) int64 // its wall reading, in nanoseconds; a seam for tests
	suspended func() time.Duration      // in all since the machine started; a seam for tests
	origin    time.Duration             // suspended at base
	epoch     atomic.Pointer[epoch]
	looked    atomic.Int64 // when Present last searched for a suspension
}

// epoch is a stretch of time without suspension. It is written once; what is noticed later
// makes a new one. Its moments are readings of the monotonic clock since base. All are
// kept, so that no answer comes too late for its own: a suspension costs 72 bytes.
type epoch struct {
	slept  int64     // suspended since base
	began  int64     // the first moment that is known to be in it
	first  int64     // the clocks' distance at that moment
	asked  int64     // when the system was asked last
	apart  int64     // the clocks' distance at that moment
	read   time.Time // both clocks at that moment, by which a moment of this epoch is dated
	before *epoch    // the one before the suspension; nil for the first
}

// apartTolerance is how far the distance of the clocks may differ from the epoch's
// without another question to the system. Slewing moves both clocks alike; a goroutine that loses its
// processor between the two readings costs a question in vain. A suspension below it is
// within the margin of the shortest lease.
const apartTolerance = int64(10 * time.Millisecond)

// lookEvery is how long after a search Present does without another one.
const lookEvery = int64(10 * time.Millisecond)

func newClock() *clock {
	c := &clock{base: time.Now().Add(-1), wall: time.Time.UnixNano, suspended: suspended} // so that no reading is 0
	c.baseWall, c.origin = c.base.UnixNano(), c.suspended()
	c.epoch.Store(&epoch{read: c.base})
	return c
}

// Zero returns the moment from which Now and Glance count: that at which m was made.
func (m *Manager) Zero() time.Time { return m.clock.base }

// Now returns the present moment, as the time since Zero by the monotonic clock. It is
// never 0. It reads the wall clock as well, so that a suspension of the machine that
// nobody has noticed yet counts from here on.
func (m *Manager) Now() time.Duration {
	mono, _ := m.clock.read(time.Now())
	return time.Duration(mono)
}

// Glance is Now without the reading of the wall clock, at half the price: a suspension that
// nobody has noticed yet stays unnoticed.
func (m *Manager) Glance() time.Duration { return time.Since(m.clock.base) }

// Present is Now at the price of Glance: it searches for a suspension at most every 10 ms. slept is how long the machine was
// suspended in all, as far as that was noticed.
func (m *Manager) Present() (now, slept time.Duration) {
	c := m.clock
	now = m.Glance()
	if int64(now)-c.looked.Load() > lookEvery {
		mono, _ := c.read(time.Now())
		c.looked.Store(mono)
	}
	return now, time.Duration(c.epoch.Load().slept)
}

// read returns what the monotonic clock showed at t, which was read with time.Now, and how
// far the wall clock was apart from it. If that shows a suspension, it notices it.
func (c *clock) read(t time.Time) (mono, apart int64) {
	mono = int64(t.Sub(c.base))
	apart = c.wall(t) - c.baseWall - mono
	e := c.epoch.Load()
	// A moment before the last question shows nothing that this one has not seen.
	for mono > e.asked && distance(apart, e.apart) > apartTolerance {
		c.refresh(e, t, mono, apart)
		e = c.epoch.Load()
	}
	return mono, apart
}

// at converts a moment that was read with time.Now, a moment ago or long before: its own
// two readings show on which side of a suspension it was. The zero time is the distant
// past.
func (c *clock) at(t time.Time) int64 {
	mono, apart := c.read(t)
	e := c.epoch.Load()
	for e.before != nil && e.isAfter(mono, apart) {
		e = e.before
	}
	return mono + e.slept
}

// present converts a reading of Now or Glance that was made a moment ago, and takes what is
// known of suspensions for all.
func (c *clock) present(now time.Duration) int64 { return int64(now) + c.epoch.Load().slept }

// isAfter reports whether the moment was before e, and so in an earlier epoch. What lies
// between the last question before the suspension and the first one after it belongs to the
// side whose distance of the clocks is the nearer one.
func (e *epoch) isAfter(mono, apart int64) bool {
	b := e.before
	return mono <= b.asked || mono < e.began && distance(apart, b.apart) <= distance(apart, e.first)
}

// refresh asks the system, at the moment t, at which the clocks are apart by another distance
// than e's. If somebody else has asked meanwhile it does nothing.
func (c *clock) refresh(e *epoch, t time.Time, mono, apart int64) {
	next := *e
	// The two clocks of the system that are read one after the other differ by a little
	// even without a suspension, and this time must never run backwards.
	if slept := int64(c.suspended() - c.origin); slept >= e.slept+apartTolerance/2 {
		next = epoch{slept: slept, began: mono, first: apart, before: e}
	}
	next.asked, next.apart, next.read = mono, apart, t
	c.epoch.CompareAndSwap(e, &next)
}

// Dated returns t, a moment of this process, with the wall reading that belongs to its
// monotonic one. A sum with an old time keeps the wall clock of its day: somebody
// may have set it since, or the machine may have slept. Comparisons stay what they were.
func (m *Manager) Dated(t time.Time) time.Time { return m.clock.dated(t) }

// now is the present moment.
func (c *clock) now() int64 { return c.at(time.Now()) }

// time converts back, with a monotonic reading: a moment that is to come, as the
// monotonic clock will show it without a further suspension. One that has passed in a
// suspension, or before it, is before every reading since. Its wall reading is what the wall
// clock shows then, as far as is known now. never becomes the zero time.
func (c *clock) time(at int64) time.Time {
	c.now() // a suspension that nobody has noticed yet counts
	return c.onward(c.epoch.Load(), at)
}

// onward is time for a caller that has just read the clock and then e, the present epoch.
func (c *clock) onward(e *epoch, at int64) time.Time {
	if at == never {
		return time.Time{}
	}
	return e.date(at - e.slept)
}

// date makes a time of a reading of the monotonic clock in e. Its wall reading is by the
// last question, so one that was taken before somebody set the wall clock shows what it should
// have been: its reader compares it with others that were read after.
func (e *epoch) date(mono int64) time.Time { return e.read.Add(time.Duration(mono - e.asked)) }

// dated returns t, of which only the monotonic reading counts, with the wall reading that
// belongs to it: many are counted on from a reading that is days old.
func (c *clock) dated(t time.Time) time.Time {
	c.now() // what nobody has noticed yet counts
	mono := int64(t.Sub(c.base))
	e := c.epoch.Load()
	for e.before != nil && mono < e.began {
		e = e.before
	}
	return e.date(mono)
}

// past converts a moment that has passed to what the clocks have shown then, for people
// and for comparing with others of that time. One at which the machine was suspended
// becomes the one at which that was noticed.
func (c *clock) past(at int64) time.Time {
	c.now() // what nobody has noticed yet counts
	return c.epoch.Load().past(at)
}

// past is clock.past for a caller that has just read the clock and then e, the present epoch.
func (e *epoch) past(at int64) time.Time {
	mono := at - e.slept
	for e.before != nil && mono < e.began {
		mono = min(at-e.before.slept, e.began)
		e = e.before
	}
	return e.date(mono)
}

func distance(a, b int64) int64 { return max(a-b, b-a) }
