package watchdog

import (
	"fmt"
	"math"
	"time"
)

const (
	// failuresThatCount: a single renewal without an answer is everyday life; the
	// second in a row is an event.
	failuresThatCount = 2
	// minWindow and minSuccessRate judge the process as a whole. Fewer renewals
	// than that say nothing about a rate.
	minWindow      = 10
	minSuccessRate = 0.5
	// overGrace is how long past a deadline the renewal loop is given to report the
	// loss itself, with its own cause, before the Watchdog does it instead.
	overGrace = 250 * time.Millisecond
)

// renewalSlack is how much later than RenewalTime a confirmation may be: half a
// renewal time leaves room for one failed try and its repetition, and the floor keeps
// very short renewal times from accusing a scheduler.
func renewalSlack(f Facts) time.Duration { return max(f.RenewalTime/2, 250*time.Millisecond) }

// CheckRenewal judges whether one hold's lease is kept alive. It is healthy when the
// last confirmation is younger than RenewalTime plus a slack of half of it (at least
// 250 ms), and fewer than two renewals in a row have failed. A fixed lease is healthy
// until its deadline. A hold listed 250 ms past its deadline is LeaseOver, even
// if nothing else is wrong. If a renewal is late because the renewal loop has stopped, the
// finding says so. It reads nothing but its arguments.
func CheckRenewal(now time.Time, f Facts, s RenewalStats) Verdict {
	if leaseOver(now, f) {
		return unhealthy(Renewal, now, LeaseOver,
			fmt.Sprintf("the lease ended %v ago and the holder was not notified", now.Sub(f.Deadline)))
	}
	if f.Fixed || f.RenewalTime <= 0 {
		return healthy(Renewal, now)
	}
	if f.RenewalFailures >= failuresThatCount {
		return unhealthy(Renewal, now, RenewalFailing,
			fmt.Sprintf("%d renewals in a row brought no answer", f.RenewalFailures))
	}
	age := now.Sub(f.LastConfirmed)
	if age <= f.RenewalTime+renewalSlack(f) {
		return healthy(Renewal, now)
	}
	if loop := CheckRenewalLoop(now, f.Period, s); loop.Finding == RenewalStalled {
		return unhealthy(Renewal, now, RenewalStalled, loop.Reason)
	}
	return unhealthy(Renewal, now, RenewalLate,
		fmt.Sprintf("last confirmed %v ago, renewal time %v", age, f.RenewalTime))
}

// CheckRenewalLoop judges the renewal queue as a whole. It is stalled when work has
// been due for longer than half the period (at least 250 ms) and the loop has not
// turned in that time; it is failing when fewer than half of the last renewals, of ten
// or more, brought an answer. A loop that sleeps because nothing is due is healthy,
// however long. It reads nothing but its arguments.
func CheckRenewalLoop(now time.Time, period time.Duration, s RenewalStats) Verdict {
	limit := selfLateAfter(period)
	if !s.NextDue.IsZero() && now.Sub(s.NextDue) > limit && now.Sub(s.LoopLastRound) > limit {
		return unhealthy(Renewal, now, RenewalStalled,
			fmt.Sprintf("the renewal loop has not turned although work has been due for %v", now.Sub(s.NextDue)))
	}
	if s.Window >= minWindow && s.SuccessRate < minSuccessRate {
		answered, were := math.Round(s.SuccessRate*float64(s.Window)), "were"
		if answered == 1 {
			were = "was"
		}
		return unhealthy(Renewal, now, RenewalFailing, fmt.Sprintf("%.0f of the last %d renewals %s answered", answered, s.Window, were))
	}
	return healthy(Renewal, now)
}

// leaseOver reports whether the renewal loop has had its time to report the deadline.
func leaseOver(now time.Time, f Facts) bool {
	return !f.Lost && !f.Deadline.IsZero() && now.Sub(f.Deadline) >= overGrace
}
