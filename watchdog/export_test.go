package watchdog

import (
	"time"
	"unsafe"

	"github.com/anteroom/anteroom/internal/goroutines"
)

// WithDump replaces the goroutine dump and the count of goroutines.
func WithDump(c *Config, count func() int, dump func([]byte) int) {
	c.scan = func(now time.Time, asked []int64) Goroutines { return goroutines.Read(now, asked, count(), dump) }
}

// WithWall replaces the wall clock.
func WithWall(c *Config, wall func(now time.Time) time.Time) { c.wall = wall }

// Kept returns the number of holds for which state is kept, and for how many of them
// the rare part exists.
func Kept(w *Watchdog) (holds, troubles int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.holds {
		if h.concerns != nil {
			troubles++
		}
	}
	return len(w.holds), troubles
}

// Round runs one round without the loop, for benchmarks and for ticks that come late. The
// Watchdog must not be started. The questions' answers are thrown away.
func Round(w *Watchdog, now time.Time, late time.Duration) {
	if w.epoch.IsZero() {
		w.epoch, w.lastRound, w.lastWall = now, now, w.cfg.wall(now)
		w.nextAll, w.tick = now, tickFor(w.cfg.Period)
		w.statuses, w.probes = make(chan statusAnswer), make(chan Probe)
	}
	w.run(now, late)
}

// Breath is the least time between two rounds.
const Breath = breath

// HoldSize is what the Watchdog keeps for a healthy hold, beside its places in map and list.
const HoldSize = unsafe.Sizeof(hold{})
