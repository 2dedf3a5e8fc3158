package promise

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// byContext is the signal of a hold that is never queried: its context.
const byContext = -1

// sighting is what one hold said while it was watched, by one signal. Times are microseconds of the host's wall
// clock.
type sighting struct {
	Signal    int   // byContext, or an index in Library.Questions
	LastHeld  int64 // when the last question began that was answered "held"
	FirstLost int64 // when the first answer "lost" was there; 0: there was none
	Revived   bool  // a later answer was "held" again
}

func now() int64 { return time.Now().UnixMicro() }

// signalOf assigns the signals: every second hold is notified by its context, the others by each of the questions in
// turn.
func signalOf(i, questions int) int {
	if i%2 == 0 || questions == 0 {
		return byContext
	}
	return i / 2 % questions
}

// watcher queries holds, over and over, in one goroutine, and waits for the contexts of the others.
type watcher struct {
	holds    []Hold
	seen     []sighting
	woken    []atomic.Int64 // when a goroutine that waited for the context ran
	lost     atomic.Int32   // holds that have answered "lost"
	stop     chan struct{}
	finished sync.WaitGroup
}

// watch starts watching. pause is slept between two passes over all holds; without it the watching goroutine never
// rests, so that it is the first to run again in a process that was stopped.
func watch(holds []Hold, questions int, pause time.Duration) *watcher {
	w := &watcher{
		holds: holds, seen: make([]sighting, len(holds)), woken: make([]atomic.Int64, len(holds)), stop: make(chan struct{}),
	}
	for i, h := range holds {
		w.seen[i].Signal = signalOf(i, questions)
		if w.seen[i].Signal == byContext {
			w.finished.Go(func() {
				select {
				case <-h.Done():
					w.woken[i].Store(now())
				case <-w.stop:
				}
			})
		}
	}
	w.finished.Go(func() {
		for {
			for i := range holds {
				w.ask(i)
			}
			select {
			case <-w.stop:
				return
			default:
			}
			if pause > 0 {
				time.Sleep(pause)
			}
		}
	})
	return w
}

// ask asks one hold one question. Whether a channel is closed is a question too.
func (w *watcher) ask(i int) {
	s := &w.seen[i]
	began, held := now(), false
	if s.Signal == byContext {
		select {
		case <-w.holds[i].Done():
		default:
			held = true
		}
	} else {
		held = w.holds[i].Held(s.Signal)
	}
	switch {
	case held:
		s.Revived = s.Revived || s.FirstLost > 0
		s.LastHeld = began
	case s.FirstLost == 0:
		s.FirstLost = now()
		w.lost.Add(1)
	}
}

// told waits until every hold has answered "lost" once, or until ctx ends.
func (w *watcher) told(ctx context.Context) {
	for int(w.lost.Load()) < len(w.holds) && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
}

// finish ends the watching and returns what was seen.
func (w *watcher) finish() []sighting {
	close(w.stop)
	w.finished.Wait()
	for i := range w.seen {
		s := &w.seen[i]
		// Neither is ever too early, so the earlier one is the better figure.
		if at := w.woken[i].Load(); at > 0 && (s.FirstLost == 0 || at < s.FirstLost) {
			s.FirstLost = at
		}
	}
	return w.seen
}
