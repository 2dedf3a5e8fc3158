package renewal_test

import (
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/renewal"
)

// about fails unless both readings of t say that it is want after begin, or nearly so. These
// tests run in real time: in a bubble there is one clock only.
func about(t *testing.T, what string, at, begin time.Time, want time.Duration) {
	t.Helper()
	const busy = pace.Hang // this machine; what is excluded is an hour away
	if d := at.Round(0).Sub(begin.Round(0)); (d - want).Abs() > busy {
		t.Errorf("%s: the wall clock shows %v after, want %v", what, d, want)
	}
	if d := at.Sub(begin); (d - want).Abs() > busy {
		t.Errorf("%s: the monotonic clock shows %v after, want %v", what, d, want)
	}
}

// The wall clock was set while the Manager lived: each time that it reports is by the clock
// that is right now, as any time that is read beside it, and compares as it did before.
func TestDated_AfterTheClockWasSet(t *testing.T) {
	for name, d := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			m := renewal.New(renewal.Config{Sender: &sender{}, Rand: top})
			m.WasSet(d, false)
			m.Start()
			defer m.Stop()
			begin := time.Now()
			long := spec(1, &losses{})
			long.Lease, long.Period = time.Hour, 10*time.Minute
			l := m.Add(long)
			about(t, "Deadline", l.Deadline(), begin, time.Hour)
			about(t, "NextDue", l.NextDue(), begin, 10*time.Minute)
			about(t, "LastConfirmed", l.LastConfirmed(), begin, 0)
			times := l.Times(m.Now())
			about(t, "Times.Deadline", times.Deadline, begin, time.Hour)
			about(t, "Times.NextDue", times.NextDue, begin, 10*time.Minute)
			about(t, "Times.Confirmed", times.Confirmed, begin, 0)
			about(t, "Dated", m.Dated(renewal.Rewound(begin, d).Add(time.Minute)), begin, time.Minute)

			causes := make(chan renewal.Cause, 1)
			over := spec(2, nil)
			over.Period, over.SentAt = -1, begin.Add(-10*time.Minute)
			over.Owner = notifiedBy(over, func(c renewal.Cause) { causes <- c })
			m.Add(over)
			c := <-causes
			about(t, "Cause.At", c.At, begin, -9*time.Minute-30*time.Second)
			about(t, "Cause.Deadline", c.Deadline, begin, -9*time.Minute-30*time.Second)
			about(t, "Cause.LastConfirmed", c.LastConfirmed, begin, -10*time.Minute)
			l.End()
		})
	}
}

// The machine slept for an hour: what was before is shown as the clock showed it then, what
// comes as it will show it.
func TestDated_AfterASuspension(t *testing.T) {
	m := renewal.New(renewal.Config{Sender: &sender{}, Rand: top})
	m.WasSet(time.Hour, true)
	awake := time.Now() // before the Manager notices anything: what comes later is after the suspension
	m.Start()
	defer m.Stop()
	long := spec(1, &losses{})
	long.Lease, long.Period, long.SentAt = 3*time.Hour, -1, renewal.Rewound(awake, time.Hour)
	after := spec(2, &losses{})
	after.Lease, after.Period = 3*time.Hour, -1
	time.Sleep(time.Millisecond)
	after.SentAt = time.Now()
	young, old := m.Add(after), m.Add(long)
	about(t, "the deadline of a lease from after it", young.Deadline(), awake, 3*time.Hour)
	about(t, "the deadline of a lease from before it", old.Deadline(), awake, 2*time.Hour)
	about(t, "a moment after it", m.Dated(awake.Add(time.Minute)), awake, time.Minute)
	if d := old.LastConfirmed().Round(0).Sub(awake.Round(0)); (d + time.Hour).Abs() > pace.Hang {
		t.Errorf("last confirmed, by the wall clock, %v after it", d)
	}
	if d := m.Dated(awake.Add(-time.Minute)).Round(0).Sub(awake.Round(0)); (d + time.Hour + time.Minute).Abs() > time.Minute/2 { // a difference of two fixed moments
		t.Errorf("a minute before it is shown as %v after it", d)
	}
	var asked sync.WaitGroup
	for range 4 { // beside each other, with the race detector
		asked.Go(func() { _, _ = old.Deadline(), m.Dated(awake) })
	}
	asked.Wait()
	young.End()
	old.End()
}
