package watchdog

import (
	"fmt"
	"time"
)

// CheckLockStatus judges what Redis says about one hold. It is healthy when the field
// is there with count 1, no other field is beside it, and the time to live exists
// and is not longer than any lease that was asked for, with up to a fifth of the lease (at
// least 200 ms) to spare. Without a usable answer there is no verdict: a silent Redis is
// the connection's trouble and says nothing about the hold. It reads nothing but its
// arguments.
func CheckLockStatus(now time.Time, f Facts, s Status) Verdict {
	switch {
	case !s.Answered:
		return unknown(LockStatus, now, None, "Redis did not answer").because(s.Err)
	case s.Gone:
		return unhealthy(LockStatus, now, FieldGone, "Redis does not know this holder any more")
	case !s.Present:
		return unknown(LockStatus, now, None, "the answer says neither that the field is there nor that it is gone")
	case s.Fields > 1:
		return unhealthy(LockStatus, now, ForeignField,
			fmt.Sprintf("another holder is beside ours: %d fields in place of 1", s.Fields))
	case s.Count != 1:
		return unhealthy(LockStatus, now, WrongCount, fmt.Sprintf("the holder's count is %d instead of 1", s.Count))
	case s.TTL < 0:
		return unhealthy(LockStatus, now, TTLMissing, "the key never expires")
	case s.TTL > longestTTL(now, f) && !f.Stretched:
		return unhealthy(LockStatus, now, TTLTooLong,
			fmt.Sprintf("the key lives for another %v, its lease is %v", s.TTL, f.Lease))
	}
	return healthy(LockStatus, now)
}

// longestTTL is the longest time to live that this process can have asked for. An
// extended lease shows in the deadline, which lies a margin of at most a tenth of the
// lease before the key's end; a second tenth is for the clocks.
func longestTTL(now time.Time, f Facts) time.Duration {
	tenth := max(f.Lease/10, 100*time.Millisecond)
	longest := f.Lease
	if !f.Deadline.IsZero() {
		longest = max(longest, f.Deadline.Sub(now)+tenth)
	}
	return longest + tenth
}
