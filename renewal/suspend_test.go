package renewal_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/renewal"
)

// laptop is a machine whose lid can be closed: the monotonic clock, which is the
// bubble's, stops meanwhile, and the wall clock and the boot-time clock do not.
type laptop struct {
	mu    sync.Mutex
	moves []move
}

// move is a moment at which the wall clock left the monotonic one.
type move struct {
	at     time.Time
	by     time.Duration
	asleep bool
}

func (l *laptop) sleep(d time.Duration)   { l.move(d, true) }
func (l *laptop) setWall(d time.Duration) { l.move(d, false) }

func (l *laptop) move(d time.Duration, asleep bool) {
	time.Sleep(time.Nanosecond) // so that moments before it can be distinguished from those after it
	l.mu.Lock()
	l.moves = append(l.moves, move{time.Now(), d, asleep})
	l.mu.Unlock()
}

// ahead is how far the wall clock was ahead at a moment.
func (l *laptop) ahead(at time.Time) (sum time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.moves {
		if !at.Before(m.at) {
			sum += m.by
		}
	}
	return sum
}

// suspended is what the system says; the machine slept for an hour before the test.
func (l *laptop) suspended() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := time.Hour
	for _, m := range l.moves {
		if m.asleep {
			sum += m.by
		}
	}
	return sum
}

func (l *laptop) manager(cfg renewal.Config) *renewal.Manager {
	cfg.Rand = top
	m := renewal.New(cfg)
	m.SetClocks(l.ahead, l.suspended)
	m.Start()
	return m
}

// The first question after the machine runs again gets the right answer, before any
// goroutine has had the time to notice. A clock that was set is no suspension.
func TestSuspended_TheFirstQuestionKnows(t *testing.T) {
	s, k := &sender{}, &losses{}
	synctest.Test(t, func(t *testing.T) {
		var machine laptop
		m := machine.manager(renewal.Config{Sender: s})
		defer m.Stop()
		l := m.Add(spec(1, k)) // 30 s, of which the margin is taken off
		time.Sleep(time.Second)
		machine.setWall(time.Hour)
		equal(t, "after the clock was set", l.Valid(m.Now()), true)
		machine.setWall(-2 * time.Hour)
		equal(t, "after it was set back", l.Valid(m.Now()), true)
		machine.sleep(10 * time.Second)
		equal(t, "after a nap", l.Valid(m.Now()), true)
		left := l.Remaining(m.Now())
		machine.sleep(left)
		equal(t, "after a sleep to the deadline", l.Valid(m.Now()), false)
		time.Sleep(time.Second) // the loop comes round
		synctest.Wait()
		equal(t, "reason", one(t, k, "f1").Reason, renewal.ReasonDeadline)
		equal(t, "check", m.Check(), "")
	})
}

// unrenewed is spec of a fixed lease.
func unrenewed(i int, k *losses) renewal.Spec {
	s := spec(i, k)
	s.Period = -1
	return s
}

// Glance does not search for a suspension. Valid knows of it all the same as soon as anybody
// has checked.
func TestSuspended_AGlanceKnowsWhatOthersHaveSeen(t *testing.T) {
	s, k := &sender{}, &losses{}
	synctest.Test(t, func(t *testing.T) {
		var machine laptop
		m := machine.manager(renewal.Config{Sender: s})
		defer m.Stop()
		l, other := m.Add(unrenewed(1, k)), m.Add(unrenewed(2, k))
		deadline := l.Deadline()
		equal(t, "just before the deadline", l.Valid(deadline.Sub(m.Zero())-1), true)
		equal(t, "at the deadline", l.Valid(deadline.Sub(m.Zero())), false)
		machine.sleep(time.Until(deadline))
		equal(t, "after a sleep that nobody has seen", l.Valid(m.Glance()), true)
		equal(t, "the other, by Now", other.Valid(m.Now()), false)
		equal(t, "after a sleep that somebody has seen", l.Valid(m.Glance()), false)
		third := m.Add(unrenewed(3, k))
		equal(t, "a lease before its end", third.Valid(m.Glance()), true)
		third.End()
		equal(t, "after its end", third.Valid(m.Glance()), false)
		synctest.Wait()
	})
}

// A machine that sleeps while an acquire is under way: the lease is old when it is added, and
// everybody knows.
func TestSuspended_WithinTheAcquire(t *testing.T) {
	s, k := &sender{}, &losses{}
	synctest.Test(t, func(t *testing.T) {
		var machine laptop
		m := machine.manager(renewal.Config{Sender: s})
		defer m.Stop()
		young := unrenewed(1, k)
		young.SentAt = time.Now()
		machine.sleep(time.Hour)
		equal(t, "an hour after a lease of 30 s was granted", m.Add(young).Valid(m.Glance()), false)
		synctest.Wait()
	})
}

// What was sent before the machine slept counts from then, also when it is heard of
// after it; and a lease that is young after the sleep is not taken for an old one.
func TestSuspended_SentBeforeAndHeardAfter(t *testing.T) {
	s, k := &sender{}, &losses{}
	synctest.Test(t, func(t *testing.T) {
		var machine laptop
		m := machine.manager(renewal.Config{Sender: s})
		defer m.Stop()
		before := spec(1, k)
		before.SentAt = time.Now()
		machine.sleep(time.Hour)
		after := spec(2, k)
		after.SentAt = time.Now()
		young := m.Add(after) // the first to notice
		old := m.Add(before)
		equal(t, "sent after", young.Valid(m.Now()), true)
		equal(t, "sent before", old.Valid(m.Now()), false)
		if d := time.Until(young.Deadline()); d != young.Remaining(m.Now()) {
			t.Errorf("deadline in %v, remaining %v", d, young.Remaining(m.Now()))
		}
		again := spec(3, k)
		again.SentAt = before.SentAt
		machine.sleep(time.Minute)
		equal(t, "sent two sleeps before", m.Add(again).Valid(m.Now()), false)
		equal(t, "through a second sleep", young.Valid(m.Now()), false)
		synctest.Wait()
		for _, field := range []string{"f1", "f2", "f3"} {
			equal(t, field, one(t, k, field).Reason, renewal.ReasonDeadline)
		}
	})
}

// The round that finds the machine awake again reports the jump and checks every lease.
func TestSuspended_IsAJump(t *testing.T) {
	s, k := &sender{}, &losses{}
	synctest.Test(t, func(t *testing.T) {
		var machine laptop
		var jumps atomic.Int64
		m := machine.manager(renewal.Config{
			Sender: s,
			OnJump: func(d time.Duration) { jumps.Store(int64(d)) },
		})
		defer m.Stop()
		l := m.Add(spec(1, k))
		time.Sleep(5 * time.Second)
		machine.sleep(15 * time.Second)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		equal(t, "jump", time.Duration(jumps.Load()), 15*time.Second)
		equal(t, "checked immediately", s.count(), 1)
		equal(t, "valid", l.Valid(m.Now()), true)
		l.End()
	})
}

// A lease that is over stays over, also when the clock is then set to where it would be
// had the machine not slept.
func TestSuspended_AClockThatIsSetBackBringsNothingBack(t *testing.T) {
	s, k := &sender{}, &losses{}
	synctest.Test(t, func(t *testing.T) {
		var machine laptop
		m := machine.manager(renewal.Config{Sender: s})
		defer m.Stop()
		l := m.Add(spec(1, k))
		nap := l.Remaining(m.Now())
		machine.sleep(nap)
		equal(t, "after the sleep", l.Valid(m.Now()), false)
		machine.setWall(-nap)
		equal(t, "after the clock was set", l.Valid(m.Now()), false)
		l.End()
	})
}

// What was sent before the machine slept counts from then, whatever has happened to the
// wall clock before and since: a correction after waking up, or a reading of the two
// clocks that was interrupted.
func TestSuspended_SentBeforeAndHeardAfterTheClockWasSet(t *testing.T) {
	for name, moves := range map[string]struct{ before, between, after time.Duration }{
		"forward":       {after: 30 * time.Millisecond},
		"back":          {after: -time.Hour},
		"undone":        {after: -10 * time.Second},
		"first forward": {before: time.Hour, after: -time.Second},
		"first back":    {before: -time.Hour, after: time.Second},
		"all":           {before: time.Minute, between: -time.Minute, after: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s, k := &sender{}, &losses{}
			synctest.Test(t, func(t *testing.T) {
				var machine laptop
				m := machine.manager(renewal.Config{Sender: s})
				defer m.Stop()
				watch := m.Add(spec(1, k)) // asked, so that each move is noticed
				check := func() { watch.Valid(m.Now()) }
				old := unrenewed(2, k) // a renewal in between would make it young
				old.SentAt = time.Now()
				machine.setWall(moves.before)
				check()
				before := time.Now()
				machine.sleep(10 * time.Second)
				check()
				machine.setWall(moves.between)
				check()
				machine.setWall(-moves.between)
				check()
				machine.sleep(5 * time.Second)
				machine.setWall(moves.after)
				check()
				young := unrenewed(3, k)
				young.SentAt = time.Now()
				atTheEdge := old
				atTheEdge.Owner, atTheEdge.SentAt = owner{"f4", k.of("f4")}, before
				left := m.Add(young).Remaining(m.Now())
				for _, sp := range []renewal.Spec{old, atTheEdge} {
					l := m.Add(sp)
					got := l.Remaining(m.Now())
					if want := left - 15*time.Second; got > want || got < want-time.Second {
						t.Errorf("%s: remaining %v, want %v", fieldOf(sp), got, want)
					}
					l.End()
				}
			})
		})
	}
}

// A caller that asks for the deadline gets what is left of it, also if nobody has noticed
// the suspension yet.
func TestSuspended_TheDeadlineKnows(t *testing.T) {
	s, k := &sender{}, &losses{}
	synctest.Test(t, func(t *testing.T) {
		var machine laptop
		m := machine.manager(renewal.Config{Sender: s})
		defer m.Stop()
		l := m.Add(spec(1, k))
		machine.sleep(time.Hour)
		now := time.Now() // read before it is noticed
		if d := l.Deadline(); now.Before(d) {
			t.Errorf("the deadline is %v ahead", d.Sub(now))
		}
		l.End()
	})
}

// What was before the machine slept is reported as it was then: a lease that has ended in
// its sleep was not lost before it was granted, nor last confirmed hours ago.
func TestSuspended_ThePastStaysWhereItWas(t *testing.T) {
	s, k := &sender{}, &losses{}
	synctest.Test(t, func(t *testing.T) {
		var machine laptop
		m := machine.manager(renewal.Config{Sender: s})
		defer m.Stop()
		time.Sleep(time.Minute)
		machine.sleep(time.Hour)
		sent := time.Now()
		l := m.Add(spec(1, k))
		time.Sleep(time.Second)
		machine.sleep(8 * time.Hour)
		equal(t, "valid", l.Valid(m.Now()), false)
		machine.sleep(time.Hour)
		equal(t, "last confirmed", l.LastConfirmed(), sent)
		time.Sleep(2 * time.Second) // the loop comes round
		synctest.Wait()
		if at := one(t, k, "f1").At; at.Before(sent) || at.After(sent.Add(2*time.Second)) {
			t.Errorf("lost since %v after it was granted", at.Sub(sent))
		}
	})
}

// A lease that comes after the machine has slept is renewed as any other, though the loop has not noticed the sleep.
func TestSuspended_ALeaseAfterASuspension(t *testing.T) {
	s, k := &sender{}, &losses{}
	synctest.Test(t, func(t *testing.T) {
		var machine laptop
		m := machine.manager(renewal.Config{Sender: s})
		defer m.Stop()
		m.Add(spec(1, k))
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		machine.sleep(5 * time.Second)
		sp := spec(2, k)
		sp.Lease, sp.Period, sp.Margin = 500*time.Millisecond, 150*time.Millisecond, 50*time.Millisecond
		sp.SentAt = time.Now()
		begin := time.Now()
		m.Add(sp)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if at := k.when("f2"); !at.IsZero() {
			t.Errorf("lost: notified after %v, Redis had ended it after %v", at.Sub(begin), sp.Lease)
		}
	})
}

// So is one that is hurried.
func TestSuspended_HurryAfterASuspension(t *testing.T) {
	s, k := &sender{}, &losses{}
	synctest.Test(t, func(t *testing.T) {
		var machine laptop
		m := machine.manager(renewal.Config{Sender: s})
		defer m.Stop()
		l := m.Add(spec(1, k))
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		machine.sleep(5 * time.Second)
		m.Now()
		l.Hurry()
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		equal(t, "sent", s.count(), 1)
	})
}

// Present searches for a suspension that nobody has seen, at most every 10 ms.
func TestSuspended_PresentSearches(t *testing.T) {
	s, k := &sender{}, &losses{}
	synctest.Test(t, func(t *testing.T) {
		var machine laptop
		m := machine.manager(renewal.Config{Sender: s})
		defer m.Stop()
		l := m.Add(unrenewed(1, k))
		time.Sleep(20 * time.Millisecond)
		now, slept := m.Present()
		equal(t, "before", now+slept < l.Until(), true)
		machine.sleep(time.Hour)
		now, slept = m.Present()
		equal(t, "a moment after a search", slept, 0)
		equal(t, "the moment", now, m.Glance())
		time.Sleep(11 * time.Millisecond)
		now, slept = m.Present()
		equal(t, "after the next one", slept, time.Hour)
		equal(t, "valid", now+slept < l.Until(), false)
		synctest.Wait()
	})
}
