package history

import (
	"testing"
	"time"
)

// Both faults do what their names say: a goroutine that only ticks does not run for most of the requested time,
// longer than a beat would tolerate.
func TestSuffer_TakesTheProcessorsAway(t *testing.T) {
	const d = 400 * time.Millisecond
	for name, fault := range map[string]func(){
		"starve":         func() { starve(d) },
		"stop the world": func() { _ = stopTheWorld(d) },
	} {
		stop, done := make(chan struct{}), make(chan time.Duration)
		go func() {
			var worst time.Duration
			ticker := time.NewTicker(time.Millisecond)
			defer ticker.Stop()
			for last := time.Now(); ; {
				select {
				case <-ticker.C:
				case <-stop:
					done <- worst
					return
				}
				now := time.Now()
				worst = max(worst, now.Sub(last))
				last = now
			}
		}()
		begin := time.Now()
		fault()
		took := time.Since(begin)
		close(stop)
		worst := <-done
		t.Logf("%s for %v: longest silence %v", name, took, worst)
		// With the race detector, under which the laboratory runs, who starves is silent for far longer than
		// longGap. Without it the runtime lets the goroutine of a timer in after two or three slices of 10 ms.
		least := longGap
		if name == "starve" {
			least = 15 * time.Millisecond
		}
		if worst < least {
			t.Errorf("%s: the longest silence was %v", name, worst)
		}
	}
}
