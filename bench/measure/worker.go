package measure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/bench/library"
)

// origin is what readings of the clock count from: a difference to it is one reading of
// the monotonic clock, a time.Now would be two clocks.
var origin = time.Now()

func now() time.Duration { return time.Since(origin) }

// afterFailure is slept after an error, so that a library that fails at once does not
// keep the processor from the others.
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

// work is the loop that every library is measured by, until the round is over.
func (w *worker) work(ctx context.Context) {
	t := w.team
	for t.phase.Load() != over {
		h, guard := w.next()
		before := now()
		err := h.Lock(ctx)
		after := now()
		phase := t.phase.Load()
		if err != nil {
			// After the end an error only says that the context has ended. How long that one
			// had waited by then is no less a wait.
			if phase != over {
				w.failed(err)
			} else {
				w.wait.Max = max(w.wait.Max, after-before)
			}
			continue
		}
		w.check(guard.Enter(w.number))
		// Those who come in after the end only let the others through.
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

// check counts a violation. After the end there are none: a library whose locks end with
// the context that they were acquired with, as rueidislock's do, may let another in.
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

// rescue makes a panic of the library, such as Anteroom's Lock when its Manager is closed
// while it waits, one more failure: the other libraries are still to be measured.
func (w *worker) rescue() {
	if cause := recover(); cause != nil {
		w.failures++
		if w.failure == nil {
			w.failure = fmt.Errorf("panic: %v", cause)
		}
	}
}
