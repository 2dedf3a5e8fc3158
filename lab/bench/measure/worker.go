package measure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/lab/bench/library"
)

// origin is the zero of clock readings: a difference from it reads the monotonic clock only, time.Now reads two.
var origin = time.Now()

func now() time.Duration { return time.Since(origin) }

// afterFailure is the pause after an error, so that a library that fails at once does not keep the processor from the
// others.
const afterFailure = time.Millisecond

// worker is one goroutine. Only it writes the fields; they are read when it is back.
type worker struct {
	team   *Team
	client library.Client
	handle library.Handle // of the only key; nil where there are several
	number uint32
	random *rand.PCG

	wait       Histogram
	violations uint64
	failures   uint64
	failure    error // the first
	back       atomic.Bool
}

// work is the loop by which every library is measured, until the round is over.
func (w *worker) work(ctx context.Context) {
	t := w.team
	for t.phase.Load() != over {
		h, guard := w.next()
		before := now()
		err := h.Lock(ctx)
		after := now()
		phase := t.phase.Load()
		if err != nil {
			// After the end an error only means that the context has ended. The wait up to then counts all the same.
			if phase != over {
				w.failed(err)
			} else {
				w.wait.Max = max(w.wait.Max, after-before)
			}
			continue
		}
		w.check(guard.Enter(w.number))
		// After the end, acquisitions only let the others proceed.
		if t.load.Hold > 0 && phase != over {
			time.Sleep(t.load.Hold)
		}
		w.check(guard.Leave(w.number))
		if err := h.Unlock(); err != nil {
			w.failed(err)
		}
		switch phase {
		case counting:
			w.wait.Record(after - before)
		case over:
			w.wait.Max = max(w.wait.Max, after-before)
		}
	}
}

// check counts a violation. After the end there are none: a library whose locks end with the context with which they
// were acquired, such as rueidislock, may admit another.
func (w *worker) check(alone bool) {
	if !alone && w.team.phase.Load() != over {
		w.violations++
	}
}

// next returns the next lock.
func (w *worker) next() (library.Handle, *Guard) {
	if w.handle != nil {
		return w.handle, &w.team.load.Guards[0]
	}
	i := w.random.Uint64() % uint64(len(w.team.names))
	return w.client.Handle(w.team.names[i]), &w.team.load.Guards[i]
}

func (w *worker) failed(err error) {
	if w.failure == nil {
		w.failure = err
	}
	w.failures++
	time.Sleep(afterFailure)
}

// rescue turns a panic of the library, such as that of Anteroom's Lock when its Manager is closed during the wait,
// into one more failure: the other libraries are still to be measured.
func (w *worker) rescue() {
	if cause := recover(); cause != nil {
		w.failures++
		if w.failure == nil {
			w.failure = fmt.Errorf("panic: %v", cause)
		}
	}
}
