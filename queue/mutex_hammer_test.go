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

	"github.com/anteroom/anteroom/queue"
)

// redis plays the other side of a Mutex as package sync would: each Restate asks until the key is granted or nobody wants
// it, each GiveBack releases, and the answers are drawn at random.
type redis struct {
	t        *testing.T
	s        *synchronizer
	work     sync.WaitGroup
	releases atomic.Int32 // under way: never more than one
	grants   atomic.Uint64
	unused   atomic.Int64 // grants that came when nobody waited
	orders   [3]atomic.Int64

	refuse, lose float64 // the probability of each answer
}

func newRedis(t *testing.T, s *synchronizer) *redis { return &redis{t: t, s: s} }

func (r *redis) obey(order queue.Order) {
	r.orders[order].Add(1)
	switch order {
	case queue.Restate: // somebody may want it now
		r.work.Go(r.ask)
	case queue.GiveBack:
		if r.releases.Add(1) != 1 {
			r.t.Error("I2: two releases")
		}
		r.work.Go(r.release)
	}
}

func (r *redis) ask() {
	for d := r.s.Demand(); d.Want > d.Units && !d.Lost; d = r.s.Demand() {
		runtime.Gosched()
		if rand.Float64() < r.refuse {
			r.obey(r.s.Refuse(errRefused))
			continue
		}
		grant := r.grants.Add(1)
		if !r.s.Grant(grant) {
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
	if !r.s.Shrink(0) {
		r.t.Error("I2: somebody uses what is given back")
	}
	r.obey(queue.Restate)
}

// mustBeQuiet checks that nothing remains once all goroutines have finished.
func (r *redis) mustBeQuiet() {
	r.t.Helper()
	r.work.Wait()
	r.obey(r.s.EndLinger())
	r.work.Wait()
	if got := r.s.Demand(); got.State() != queue.Free || got.Owner.Count != 0 {
		r.t.Errorf("left behind: %v", r.s)
	}
	if n := r.releases.Load(); n != 0 {
		r.t.Errorf("left behind: %d releases", n)
	}
}

// within fails the test with the queue's state if f does not return, the symptom of a lost wake-up or a lost order.
func within(t *testing.T, s *synchronizer, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("the queue hangs: %v, first waiters: %v", s, s.Waiting(-1)[:min(3, s.Len())])
	}
}

func hammerModes(t *testing.T, f func(t *testing.T, s *synchronizer)) {
	t.Run("fair", func(t *testing.T) { f(t, newMutex(true)) })
	t.Run("non-fair", func(t *testing.T) { f(t, newMutex(false)) })
}

// No losses and no cancelled waiters: the plain counter is exact, so exclusion held and every Lock was admitted.
func TestMutex_HammerLock(t *testing.T) {
	hammerModes(t, func(t *testing.T, s *synchronizer) {
		r := newRedis(t, s)
		r.refuse = 0.2
		counter, workers := 0, 16
		within(t, s, func() {
			var wg sync.WaitGroup
			for id := range workers {
				wg.Go(func() {
					w := &queue.Waiter{Stay: &queue.Stay{Kind: queue.NoNotify, Goroutine: uint64(id + 1), Need: 1}}
					for range rounds() {
						in, order, _ := s.Acquire(w)
						r.obey(order)
						if !in {
							order, err := s.Park(context.Background(), w)
							if err != nil {
								t.Error(err)
								return
							}
							r.obey(order)
						}
						counter++
						exit, order := s.Release(w.Stay, nextIf(rand.Float64() < 0.95))
						if exit != queue.HandedOff && exit != queue.Kept && exit != queue.Final {
							t.Errorf("Exit: %v", exit)
						}
						r.obey(order)
						stay := w.Stay
						w.Reset()
						w.Stay = stay
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

// tally counts the results of the visits of TestMutex_HammerEverything, so that the test can check that all cases
// occurred.
type tally struct {
	in, left, refused, rejected, nested, lost, again atomic.Int64
}

// Every kind, contexts that end at any moment, refusals, losses, re-entry and second entries in parallel. Exclusion is
// checked among owners whose tenure is current: after a loss, a Hold may overlap with its successor, and its exits
// are then Stale.
func TestMutex_HammerEverything(t *testing.T) {
	hammerModes(t, func(t *testing.T, s *synchronizer) {
		r := newRedis(t, s)
		r.refuse, r.lose = 0.3, 0.1
		var n tally
		missing := func() (cases []string) {
			for name, count := range map[string]*atomic.Int64{
				"in": &n.in, "left": &n.left, "refused": &n.refused, "rejected": &n.rejected, "nested": &n.nested, "lost": &n.lost,
				"again": &n.again, "unused": &r.unused, "Restate": &r.orders[queue.Restate], "GiveBack": &r.orders[queue.GiveBack],
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
	w := &queue.Waiter{Stay: &queue.Stay{Need: 1, Kind: queue.Kind(rand.IntN(8)), Goroutine: owner}}
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
		in, order, err := s.Acquire(w)
		r.obey(order)
		if err != nil {
			n.rejected.Add(1)
			return
		}
		if !in {
			order, err := s.Park(ctx, w)
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
		_, order = s.Release(w.Stay, queue.EndTurn)
		r.obey(order)
		w.Again()
	}
	n.in.Add(1)
	stay(r, w, n)
}

// stay is a tenure from its admission to its last exit.
func stay(r *redis, w *queue.Waiter, n *tally) {
	units := 1
	if rand.IntN(4) == 0 && r.s.Reenter(w.Stay, false) == nil {
		n.nested.Add(1)
		units++
	}
	if rand.IntN(20) == 0 {
		who, order := r.s.Lose(w.Grant)
		if who != nil {
			n.lost.Add(1)
		}
		r.obey(order)
	}
	if d, own := r.s.Demand(), r.s.Owner() == w.Stay; !w.Kind.CanNotify() {
		// A Lock is inside until its own exits, lost or not: that is exclusion within the process (I8).
		if !own || d.State() != queue.Owned && d.State() != queue.Lost {
			r.t.Errorf("the stay of %d is not the present one: %+v", w.Goroutine, d)
		}
	} else if own && d.State() != queue.Owned {
		r.t.Errorf("the stay of %d: %+v", w.Goroutine, d)
	}
	for range units {
		exit, order := r.s.Release(w.Stay, nextIf(rand.Float64() < 0.9))
		if exit == queue.Stale && !w.Kind.CanNotify() {
			r.t.Errorf("the exit of a Lock is stale: %v", r.s)
		}
		r.obey(order)
	}
	if exit, _ := r.s.Release(w.Stay, queue.HandOff); exit != queue.Stale {
		r.t.Errorf("I7: one exit too many answers %v", exit)
	}
}

// byWord returns a Mutex with an open gate: its unit lingers.
func byWord(t *testing.T, grant uint64) *synchronizer {
	s := newMutex(false)
	for i := range 2 { // the gate opens with the second admission
		w := &queue.Waiter{Stay: &queue.Stay{Need: 1}}
		if in, _, _ := s.Acquire(w); in != (i > 0) {
			t.Fatal(in)
		}
		if i == 0 {
			s.Grant(grant)
		}
		s.Release(w.Stay, queue.Linger)
	}
	return s
}

// A lock that several unlock at once is unlocked once, and the others change nothing: not for its next owner, either.
func TestMutex_I7_OneOfManyReleasesByTheWord(t *testing.T) {
	s := byWord(t, 1)
	within(t, s, func() {
		for range 20 * rounds() {
			w := &queue.Waiter{Stay: &queue.Stay{Need: 1, Kind: queue.NoNotify}}
			if in, _, _ := s.Acquire(w); !in {
				t.Errorf("it is not in: %v", s)
				return
			}
			var exits [2]queue.Exit
			var wg sync.WaitGroup
			for i := range exits {
				wg.Go(func() { exits[i], _ = s.Release(w.Stay, queue.Linger) })
			}
			wg.Go(func() { s.Refuse(errRefused) }) // of nobody, but it closes the gate behind who is inside
			next := &queue.Waiter{Stay: &queue.Stay{Need: 1, Kind: queue.NoNotify}}
			in := false
			for in = s.Demand().Lingers; !in; in = s.Demand().Lingers {
				runtime.Gosched()
			}
			if in, _, _ = s.Acquire(next); !in || s.Owner() != next.Stay {
				t.Errorf("the next one is not in: %v", s)
			}
			wg.Wait()
			if s.Owner() != next.Stay || max(exits[0], exits[1]) != queue.Kept || min(exits[0], exits[1]) != queue.Stale {
				t.Errorf("exits %v; %v", exits, s)
				return
			}
			s.Release(next.Stay, queue.Linger)
		}
	})
}

// Nobody comes in by the word while one that came so ends the turn.
func TestMutex_I7_ANewcomerBesideTheEndOfTheTurn(t *testing.T) {
	for range 10 * rounds() {
		s := byWord(t, 1)
		w, next := &queue.Waiter{Stay: &queue.Stay{Need: 1, Kind: queue.NoNotify}}, &queue.Waiter{Stay: &queue.Stay{Need: 1, Kind: queue.NoNotify}}
		s.Acquire(w)
		var exit queue.Exit
		var in bool
		var wg sync.WaitGroup
		wg.Go(func() { exit, _ = s.Release(w.Stay, queue.EndTurn) })
		wg.Go(func() { in, _, _ = s.Acquire(next) })
		wg.Wait()
		if exit != queue.Final || in || s.Owner() != nil {
			t.Fatalf("exit %v, a newcomer in %v: %v", exit, in, s)
		}
	}
}

// One comes and goes by the word, past an heir that does not run, while transitions under the lock close the gate at any moment.
func TestMutex_HammerByWord(t *testing.T) {
	s := newMutex(false)
	enter := func(w *queue.Waiter) bool {
		in, _, err := s.Acquire(w)
		if err != nil {
			t.Error(err)
		}
		return in
	}
	first, heir := &queue.Waiter{Stay: &queue.Stay{Need: 1}}, &queue.Waiter{Stay: &queue.Stay{Need: 1}}
	enter(first)
	s.Grant(1)
	s.Park(t.Context(), first)
	enter(heir)
	s.Release(first.Stay, queue.HandOff)
	within(t, s, func() {
		var stop atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for !stop.Load() {
				s.Refuse(errRefused) // of nobody, but it closes the gate behind who is inside
			}
		})
		w := &queue.Waiter{Stay: &queue.Stay{Need: 1, Kind: queue.NoNotify, Goroutine: 7}}
		for i := range 200 * rounds() {
			if !enter(w) || s.Owner() != w.Stay {
				t.Errorf("%d: it is not the owner: %v", i, s)
				break
			}
			if exit, order := s.Release(w.Stay, queue.HandOff); exit != queue.HandedOff && exit != queue.Final || s.Owner() != nil {
				t.Errorf("%d: exit %v, order %v: %v", i, exit, order, s)
				break
			} else if exit == queue.Final { // it has handed off as often as it may
				s.Shrink(0)
				s.Grant(uint64(i + 2))
				break
			}
			stay := w.Stay
			w.Reset()
			w.Stay = stay
		}
		stop.Store(true)
		wg.Wait()
	})
	if _, err := s.Park(t.Context(), heir); err != nil {
		t.Error(err)
	}
}

// Readers of the inspection getters race with everything; -race proves that they may.
func TestMutex_HammerInspection(t *testing.T) {
	s := newMutex(false)
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
				if d := s.Demand(); d.Units == 0 && d.Grant != 0 && !d.Lost || d.Used > d.Units || d.Keep > d.Units {
					t.Errorf("I1: %+v", d)
				}
				for _, info := range s.Waiting(-1) {
					if info.Goroutine == 0 || info.Since.After(time.Now()) {
						t.Errorf("a waiter that nobody is: %+v", info)
					}
				}
				_, _ = s.Len(), s.String()
				s.OwnedBy(1 << 40)
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

// nextIf is what an exit says, which may hand off or not.
func nextIf(mayHandOff bool) queue.Next {
	switch {
	case !mayHandOff:
		return queue.EndTurn
	case rand.IntN(2) == 0:
		return queue.Linger
	}
	return queue.HandOff
}
