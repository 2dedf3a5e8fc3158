package proxy

import (
	"time"

	"golang.org/x/sys/unix"
)

// preciseSleep makes the thread's sleeps end on time: by default the kernel adds up to 50 µs to save wake-ups. If
// that is refused the round trips are a little longer, and measured as such.
func preciseSleep() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0) }

// usualSleep undoes preciseSleep: 0 means the thread's default.
func usualSleep() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) }

// sleep returns after d, not earlier.
func sleep(d time.Duration) {
	for left := unix.NsecToTimespec(int64(d)); ; {
		if unix.Nanosleep(&left, &left) == nil {
			return
		}
	}
}
