package renewal

import "time"

// Valid reports whether the lease can be relied on at now: it is neither lost
// nor ended, and its deadline is after now, which has to carry its monotonic
// reading (time.Now has). It compares with the clock and so
// is right also when the loop is late. Once false for the present moment it
// stays false.
func (l *Lease) Valid(now time.Time) bool {
	return l.Remaining(now) > 0
}

// Unexpired is Valid for a now whose wall reading is not known: a suspension of the
// machine counts once anybody has noticed it, and is not looked for.
func (l *Lease) Unexpired(now time.Time) bool {
	return l.State() == StateActive && l.deadline.Load() > l.shard.m.clock.unlooked(now)
}

// Remaining returns how long after now the lease can still be relied on;
// zero when it can't.
func (l *Lease) Remaining(now time.Time) time.Duration {
	if State(l.state.Load()) != StateActive {
		return 0
	}
	return max(0, time.Duration(l.deadline.Load()-l.shard.m.at(now)))
}

// Deadline returns the moment until which the lease can be relied on, with a
// monotonic reading. It keeps its last value when the lease is lost or ended.
func (l *Lease) Deadline() time.Time { return l.shard.m.time(l.deadline.Load()) }

// LastConfirmed returns when the last command that Redis confirmed was sent:
// the acquire, a renewal or an Extend.
func (l *Lease) LastConfirmed() time.Time { return l.shard.m.clock.past(l.confirmed.Load()) }

// NextDue returns when the next renewal is, or was, due; the zero time when
// none is planned. A time in the past means that it waits for a slot, is
// under way, or that the loop is late.
func (l *Lease) NextDue() time.Time { return l.shard.m.time(l.due.Load()) }

// Times is what a lease says about its times at one moment.
type Times struct {
	Confirmed, Deadline, NextDue time.Time     // see LastConfirmed, Deadline and NextDue
	Left                         time.Duration // see Remaining
}

// Times returns all of them for one reading of the clocks, now as for Valid.
func (l *Lease) Times(at time.Time) Times {
	c := l.shard.m.clock
	now := c.at(at)
	e := c.epoch.Load()
	t := Times{Confirmed: e.past(l.confirmed.Load()), Deadline: c.onward(e, l.deadline.Load()), NextDue: c.onward(e, l.due.Load())}
	if l.State() == StateActive {
		t.Left = max(0, time.Duration(l.deadline.Load()-now))
	}
	return t
}

// Dated returns t, a moment of this process, with the wall reading that belongs to its
// monotonic one. Whatever is added to an old time keeps the wall clock of its day: somebody
// may have set it since, or the machine may have slept. Comparisons stay what they were.
func (m *Manager) Dated(t time.Time) time.Time { return m.clock.dated(t) }

// Failures returns the number of failed renewals since the last success.
func (l *Lease) Failures() int { return int(l.failures.Load()) }

// Healthy reports whether the last renewal did not fail.
func (l *Lease) Healthy() bool { return l.failures.Load() == 0 }

// Renewals returns the number of confirmed renewals.
func (l *Lease) Renewals() uint32 { return l.renewals.Load() }

// State returns where the lease is in its life. It says nothing of the
// deadline: a lease is active until the loop has noticed; ask Valid.
func (l *Lease) State() State { return State(l.state.Load()) }

// Lost returns why the lease is lost, and true from the moment at which that was
// concluded: the call of Spec.Lost may still be on its way.
func (l *Lease) Lost() (Cause, bool) {
	if l.State() != StateLost {
		return Cause{}, false
	}
	return *l.cause.Load(), true
}

// Owner returns Spec.Owner.
func (l *Lease) Owner() Owner {
	if n, ok := l.owner.(*named); ok {
		return n.owner
	}
	return l.owner
}
