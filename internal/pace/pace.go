// Package pace lets tests in real time judge durations on a machine whose speed is unknown. Only tests use it.
//
// A test that measures time first asks whether it can do without: in virtual time (testing/synctest), or by a signal.
// If not, it makes what it excludes take far longer than what it allows (a lease of a minute beside a hand-off of
// milliseconds), or it stretches its times by Scale. A wait for something that must come has the bound Hang.
package pace

import (
	"math"
	"runtime"
	"sync"
	"time"
)

// Hang bounds a wait for something that comes on any machine. Only a hang exceeds it.
const Hang = 2 * time.Minute

const (
	// spins is the work of one measurement, and idle is what it took, at most, on an idle machine of 2 GHz: enough to
	// span several slices of a scheduler that shares a processor.
	spins = 10_000_000
	idle  = 15 * time.Millisecond
	// fresh is how long a measurement counts. It bounds what measuring costs: a tenth of one processor.
	fresh = 150 * time.Millisecond
	// halved is when a factor that was not measured again counts for half.
	halved = 5 * time.Second
	// most bounds the factor, so that a machine which was suspended makes no test wait for hours.
	most = 20
)

var measured struct {
	sync.Mutex
	at     time.Time
	factor float64
}

// Factor returns how many times longer than on an idle machine work takes here: 1 at least, the largest of the last
// seconds. To find out it works for as long as that. It is safe for concurrent use, and for real time only.
func Factor() float64 {
	m := &measured
	m.Lock()
	defer m.Unlock()
	if age := time.Since(m.at); m.factor == 0 || age > fresh {
		before := m.factor * math.Exp2(-float64(age)/float64(halved))
		m.factor = min(most, max(1, before, float64(spin())/float64(idle)))
		m.at = time.Now()
	}
	return m.factor
}

// Scale returns d times Factor: a time limit, lease or bound of d that a loaded machine stretches. Of whole milliseconds it makes
// such, as Redis counts in them.
func Scale(d time.Duration) time.Duration {
	scaled := time.Duration(float64(d) * Factor())
	if d%time.Millisecond == 0 {
		scaled = scaled.Round(time.Millisecond)
	}
	return scaled
}

// Within reports whether something that took so long kept its bound, which is stretched by the load of now.
func Within(took, bound time.Duration) bool { return took <= bound || took <= Scale(bound) }

// spin returns how long the work takes.
func spin() time.Duration {
	begin := time.Now()
	x := uint64(begin.UnixNano()) | 1
	for range spins {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	runtime.KeepAlive(x)
	return time.Since(begin)
}
