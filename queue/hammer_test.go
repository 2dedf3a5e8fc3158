package queue_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/queue"
)

// redis plays the other side of a Synchronizer as package sync would: each StartAttempt asks until the key is granted
// or nobody wants it, each SendRelease releases, and the answers are drawn at random.
type redis struct {
	t        *testing.T
	s        *queue.Synchronizer
	work     sync.WaitGroup
	releases atomic.Int32 // under way: never more than one
	grants   atomic.Uint64
	unused   atomic.Int64 // grants that came when nobody waited
	orders   [4]atomic.Int64

	refuse, lose float64 // the probability of each answer
}

func newRedis(t *testing.T, s *queue.Synchronizer) *redis { return &redis{t: t, s: s} }

func (r *redis) obey(order queue.Order) {
	r.orders[order].Add(1)
	switch order {
	case queue.StartAttempt:
		r.work.Go(r.ask)
	case queue.SendRelease:
		if r.releases.Add(1) != 1 {
			r.t.Error("I2: two releases")
		}
		r.work.Go(r.release)
	}
}

func (r *redis) ask() {
	for r.s.Word().State() == queue.Acquiring {
		runtime.Gosched()
		if rand.Float64() < r.refuse {
			r.s.Refuse(errRefused)
			continue
		}
		grant := r.grants.Add(1)
		if !r.s.Granted(grant) {
			r.unused.Add(1)
			return
		}
		if rand.Float64() < r.lose {
			_, order := r.s.Lose(grant)
			r.obey(order)
		}
		return
	}
}

func (r *redis) release() {
	runtime.Gosched()
	r.releases.Add(-1) // before the transition, after which the next may be ordered immediately
	r.obey(r.s.Released())
}

// mustBeQuiet checks that nothing remains once all goroutines have finished.
func (r *redis) mustBeQuiet() {
	r.t.Helper()
	r.work.Wait()
	if got := r.s.Current(); got != (queue.Tenure{}) || r.s.Len() != 0 {
		r.t.Errorf("left behind: %v", r.s)
	}
	if n := r.releases.Load(); n != 0 {
		r.t.Errorf("left behind: %d releases", n)
	}
}

// within fails the test with the queue's state if f does not return, the symptom of a lost wake-up or a lost order.
func within(t *testing.T, s *queue.Synchronizer, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(pace.Hang):
		t.Fatalf("the queue hangs: %v, first waiters: %v", s, s.Waiting()[:min(3, s.Len())])
	}
}

// rounds is how often each goroutine of a hammer test enters.
func rounds() int {
	if testing.Short() {
		return 100
	}
	return 1000
}

func hammerModes(t *testing.T, f func(t *testing.T, s *queue.Synchronizer)) {
	t.Run("fair", func(t *testing.T) { f(t, queue.New(true)) })
	t.Run("non-fair", func(t *testing.T) { f(t, queue.New(false)) })
}

// No losses and no cancelled waiters: the plain counter is exact, so exclusion held and every Lock was admitted.
func TestQueue_HammerLock(t *testing.T) {
	hammerModes(t, func(t *testing.T, s *queue.Synchronizer) {
		r := newRedis(t, s)
		r.refuse = 0.2
		counter, workers := 0, 16
		within(t, s, func() {
			var wg sync.WaitGroup
			for id := range workers {
				wg.Go(func() {
					w := new(queue.Waiter)
					for range rounds() {
						w.Kind, w.Owner = queue.NoNotify, uint64(id+1)
						in, order, _ := s.Enter(w)
						r.obey(order)
						if !in {
							order, err := s.Wait(context.Background(), w)
							if err != nil {
								t.Error(err)
								return
							}
							r.obey(order)
						}
						counter++
						exit, order := s.Exit(w.Number, rand.Float64() < 0.95)
						if exit != queue.HandedOff && exit != queue.Final {
							t.Errorf("Exit: %v", exit)
						}
						r.obey(order)
						w.Reset()
					}
				})
			}
			wg.Wait()
			r.mustBeQuiet()
		})
		if want := workers * rounds(); counter != want {
			t.Errorf("counter %d, want %d", counter, want)
		}
	})
}

// tally counts the results of the visits of TestQueue_HammerEverything, so that the test can check that all cases
// occurred.
type tally struct {
	in, left, refused, rejected, nested, lost, again atomic.Int64
}

// Every kind, contexts that end at any moment, refusals, losses, re-entry and second entries in parallel. Exclusion is
// checked among owners whose tenure is current: after a loss, a Hold may overlap with its successor, and its exits
// are then Stale.
func TestQueue_HammerEverything(t *testing.T) {
	hammerModes(t, func(t *testing.T, s *queue.Synchronizer) {
		r := newRedis(t, s)
		r.refuse, r.lose = 0.3, 0.1
		var n tally
		missing := func() (cases []string) {
			for name, count := range map[string]*atomic.Int64{
				"in": &n.in, "left": &n.left, "refused": &n.refused, "rejected": &n.rejected, "nested": &n.nested, "lost": &n.lost,
				"again": &n.again, "unused": &r.unused, "StartAttempt": &r.orders[queue.StartAttempt],
				"EndAttempt": &r.orders[queue.EndAttempt], "SendRelease": &r.orders[queue.SendRelease],
			} {
				if count.Load() == 0 {
					cases = append(cases, name)
				}
			}
			return cases
		}
		// A crowd gets hand-offs and long queues; a pair gets the empty queue, where attempts are refused and end. How
		// often that happens is up to the scheduler, so pairs run again until it has.
		for i, workers := range []int{16, 2, 2, 2, 2, 2, 2, 2, 2, 2} {
			if i > 1 && len(missing()) == 0 {
				break
			}
			within(t, s, func() {
				var wg sync.WaitGroup
				for id := range workers {
					wg.Go(func() {
						for range rounds() {
							visit(r, uint64(id+1), &n)
						}
					})
				}
				wg.Wait()
				r.mustBeQuiet()
			})
		}
		if cases := missing(); len(cases) > 0 && !testing.Short() {
			t.Errorf("the hammer never had: %v", cases)
		}
	})
}

// visit is one goroutine's way through the lock.
func visit(r *redis, owner uint64, n *tally) {
	s := r.s
	w := &queue.Waiter{Kind: queue.Kind(rand.IntN(8)), Owner: owner}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if w.Kind&queue.Refusable != 0 {
		switch rand.IntN(4) {
		case 0:
			cancel()
		case 1:
			defer time.AfterFunc(time.Duration(rand.IntN(200))*time.Microsecond, cancel).Stop()
		}
	}
	for {
		in, order, err := s.Enter(w)
		r.obey(order)
		if err != nil {
			n.rejected.Add(1)
			return
		}
		if !in {
			order, err := s.Wait(ctx, w)
			r.obey(order)
			switch {
			case errors.Is(err, errRefused):
				n.refused.Add(1)
				return
			case err != nil:
				n.left.Add(1)
				if !errors.Is(err, context.Canceled) {
					r.t.Error(err)
				}
				return
			}
		}
		if rand.IntN(50) > 0 {
			break
		}
		// As if the grant proved to be over, which its loss or an exit then says.
		n.again.Add(1)
		if rand.IntN(2) == 0 {
			_, order := s.Lose(w.Grant)
			r.obey(order)
		}
		_, order = s.Exit(w.Number, false)
		r.obey(order)
		w.Again()
	}
	n.in.Add(1)
	stay(r, w, n)
}

// stay is a tenure from its admission to its last exit.
func stay(r *redis, w *queue.Waiter, n *tally) {
	units := 1
	if rand.IntN(4) == 0 && r.s.ReenterTenure(w.Number) == nil {
		n.nested.Add(1)
		units++
	}
	if rand.IntN(20) == 0 {
		loss, order := r.s.Lose(w.Grant)
		if loss.State != queue.Free {
			n.lost.Add(1)
		}
		r.obey(order)
	}
	if current := r.s.Current(); !w.Kind.CanNotify() {
		// A Lock is the current tenure until its own exits, lost or not: that is exclusion within the process (I11).
		if current.Number != w.Number || current.Owner != w.Owner || current.Count != units {
			r.t.Errorf("tenure %d of %d with %d units is not the current one: %+v", w.Number, w.Owner, units, current)
		}
	} else if current.Number == w.Number && (current.State != queue.Owned || current.Count != units) {
		r.t.Errorf("tenure %d with %d units: %+v", w.Number, units, current)
	}
	if r.s.Word().State() == queue.Free && !w.Kind.CanNotify() {
		r.t.Error("Free while a Lock is in")
	}
	for range units {
		exit, order := r.s.Exit(w.Number, rand.Float64() < 0.9)
		if exit == queue.Stale && !w.Kind.CanNotify() {
			r.t.Errorf("the exit of a Lock is stale: %v", r.s)
		}
		r.obey(order)
	}
	if exit, _ := r.s.Exit(w.Number, true); exit != queue.Stale {
		r.t.Errorf("I7: one exit too many answers %v", exit)
	}
}

// Readers of the inspection getters race with everything; -race proves that they may.
func TestQueue_HammerInspection(t *testing.T) {
	s := queue.New(false)
	r := newRedis(t, s)
	var n tally
	within(t, s, func() {
		stop := make(chan struct{})
		var readers, wg sync.WaitGroup
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if c := s.Current(); (c.Count > 0) != (c.State == queue.Owned || c.State == queue.Lost) || (c.Count > 0) != (c.Number > 0) {
					t.Errorf("I9: %+v", c)
				}
				if c := s.Current(); c.State == queue.Free && c.Grant != 0 {
					t.Errorf("I1: %+v", c)
				}
				for _, info := range s.Waiting() {
					if info.Owner == 0 || info.Since.After(time.Now()) {
						t.Errorf("a waiter that nobody is: %+v", info)
					}
				}
				_, _ = s.Len(), s.String()
				_, _ = s.Find(3)
				s.ReenterOwner(1<<40, true)
			}
		})
		for id := range 8 {
			wg.Go(func() {
				for range rounds() / 2 {
					visit(r, uint64(id+1), &n)
				}
			})
		}
		wg.Wait()
		close(stop)
		readers.Wait()
		r.mustBeQuiet()
	})
}
