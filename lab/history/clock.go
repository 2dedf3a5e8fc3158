package history

import (
	"math"
	"sync"
	"time"
)

// Now returns the time on the clock that all processes of this machine share:
// nanoseconds of CLOCK_MONOTONIC.
func Now() int64 { return At(time.Now()) }

// At converts a time with a monotonic reading, such as a deadline of the library, to
// the shared clock. The zero time is 0.
func At(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	o := origin()
	return o.mono + int64(t.Sub(o.at))
}

// moment is one moment on both clocks.
type moment struct {
	at   time.Time
	mono int64
}

// origin relates Go's monotonic reading, whose zero is private to a process, to the shared clock. Both count the same
// clock, so one comparison holds for good; the narrowest of many keeps the error below the duration of a function
// call.
var origin = sync.OnceValue(func() (best moment) {
	width := int64(math.MaxInt64)
	for range 100 {
		before := clockMonotonic()
		at := time.Now()
		after := clockMonotonic()
		if after-before < width {
			width = after - before
			best = moment{at, before + width/2}
		}
	}
	return best
})
