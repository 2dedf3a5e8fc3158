package measure

import (
	"time"
)

// Tally is what the goroutines of one process saw in a window, or those of several after Add. It can be sent as JSON.
type Tally struct {
	Ops         uint64 // acquisitions
	Wait        Histogram
	Least, Most uint64 // acquisitions of the least and most served goroutine
	Processes   int
	// LeastProcess and MostProcess are the acquisitions of the least and most served process.
	LeastProcess, MostProcess uint64

	Elapsed             time.Duration // the actual length of the window
	CPU                 time.Duration
	Objects, AllocBytes uint64

	Violations, Failures, Stuck uint64
	Failure                     string // the first one
}

// Add adds the tally of another process for the same window.
func (t *Tally) Add(o *Tally) {
	if t.Processes == 0 {
		*t = *o
		return
	}
	t.Ops += o.Ops
	t.Wait.Add(&o.Wait)
	t.Least, t.Most = min(t.Least, o.Least), max(t.Most, o.Most)
	t.Processes += o.Processes
	t.LeastProcess, t.MostProcess = min(t.LeastProcess, o.LeastProcess), max(t.MostProcess, o.MostProcess)
	t.Elapsed = max(t.Elapsed, o.Elapsed)
	t.CPU += o.CPU
	t.Objects += o.Objects
	t.AllocBytes += o.AllocBytes
	t.Violations += o.Violations
	t.Failures += o.Failures
	t.Stuck += o.Stuck
	if t.Failure == "" {
		t.Failure = o.Failure
	}
}

// Figures returns the round's figures. Without acquisitions there is no wait and nothing per acquisition.
func (t *Tally) Figures() Figures {
	f := Figures{
		OpsPerS:         float64(t.Ops) / t.Elapsed.Seconds(),
		MinPerGoroutine: float64(t.Least), MaxPerGoroutine: float64(t.Most),
		Violations: float64(t.Violations), Failures: float64(t.Failures), Stuck: float64(t.Stuck),
	}
	if t.Processes > 1 {
		f[MinPerProcess], f[MaxPerProcess] = float64(t.LeastProcess), float64(t.MostProcess)
	}
	if t.Ops == 0 {
		return f
	}
	n := float64(t.Ops)
	return f.Add(Figures{
		P50US: micros(t.Wait.Quantile(0.5)), P99US: micros(t.Wait.Quantile(0.99)), MaxUS: micros(t.Wait.Max),
		AllocsPerOp: float64(t.Objects) / n, AllocBytesPerOp: float64(t.AllocBytes) / n,
		ClientCPUUSPerOp: micros(t.CPU) / n,
	})
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
