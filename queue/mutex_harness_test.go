package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/queue"
)

// mutex is the Synchronizer of a Mutex.
type mutex struct{ queue.Synchronizer }

func newMutex(fair bool) *mutex {
	s := new(mutex)
	s.Init(&queue.Policy{All: 1, Fair: fair, Returns: true, Zero: time.Now()})
	return s
}

// Granted is what a Mutex is granted: its one unit, for ever.
func (s *mutex) Granted(grant uint64) bool {
	taken, _ := s.Synchronizer.Granted(grant, 1, false, queue.Forever)
	return taken
}

// Current returns the Demand and the state.
func (s *mutex) Current() queue.Demand { return s.Demand() }

// State returns the state.
func (s *mutex) State() queue.State {
	d := s.Demand()
	return d.State()
}

// OwnedBy is what a caller finds out about its own goroutine.
func (s *mutex) OwnedBy(owner uint64) (owned, byLock bool) {
	w := s.Owner()
	owned = w != nil && owner != 0 && w.Goroutine == owner
	return owned, owned && !w.Kind.CanNotify()
}

// Len returns the number of waiters.
func (s *mutex) Len() int { return s.Demand().Waiting }

// Waiting returns all waiters, first to last.
func (s *mutex) Waiting() []queue.WaiterInfo {
	_, infos := s.Peek(-1)
	return infos
}

// String describes the state in one line.
func (s *mutex) String() string {
	d := s.Demand()
	return fmt.Sprintf("queue.Synchronizer[%v %+v]", d.State(), d)
}

// fixture is a Mutex in a synctest bubble, with the tests' assertions. synctest.Wait returns when every
// goroutine of the bubble is parked, so what is asserted after it is final and not a matter of luck.
type fixture struct {
	t    *testing.T
	s    *mutex
	fair bool
}

// inBubble runs f with a new Mutex in virtual time.
func inBubble(t *testing.T, fair bool, f func(x *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(&fixture{t, newMutex(fair), fair}) })
}

// bothModes runs f in fair and in non-fair mode.
func bothModes(t *testing.T, f func(x *fixture)) {
	t.Helper()
	for name, fair := range map[string]bool{"fair": true, "non-fair": false} {
		t.Run(name, func(t *testing.T) { inBubble(t, fair, f) })
	}
}

// party is a waiting goroutine and its results.
type party struct {
	x        *fixture
	w        *queue.Waiter
	in       bool        // of Acquire
	order    queue.Order // of Acquire
	refused  error       // of Acquire
	cancel   context.CancelCauseFunc
	ctx      context.Context
	done     chan struct{}
	leftWith queue.Order // of Park
	err      error       // of Park
}

// entered names the result of Acquire.
func (p *party) entered() string { return entered(p.in, p.refused) }

// enter calls Acquire with a new waiter; it does not Park yet.
func (x *fixture) enter(kind queue.Kind, owner uint64) *party {
	x.t.Helper()
	return x.enterAs(&queue.Waiter{Stay: &queue.Stay{}}, kind, owner)
}

// enterAs is enter with a given waiter.
func (x *fixture) enterAs(w *queue.Waiter, kind queue.Kind, owner uint64) *party {
	x.t.Helper()
	if w.Stay == nil {
		w.Stay = new(queue.Stay)
	}
	w.Kind, w.Goroutine, w.Note, w.Need = kind, owner, owner, 1
	p := &party{x: x, w: w}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	p.in, p.order, p.refused = x.s.Acquire(p.w)
	x.t.Cleanup(func() { p.cancel(nil) })
	return p
}

// again enters the waiter of an admitted party again, as First; its stay has ended.
func (p *party) again(wantEntered string, wantOrder queue.Order) {
	p.x.t.Helper()
	p.w.Again()
	p.done = nil
	p.in, p.order, p.refused = p.x.s.Acquire(p.w)
	must(p.x, "Acquire again", p.entered(), wantEntered)
	must(p.x, "its order", p.order, wantOrder)
}

// lined checks who waits, first to last.
func (x *fixture) lined(owners ...uint64) {
	x.t.Helper()
	if ids := x.s.AppendWaiting(nil); !slices.Equal(ids, owners) {
		x.t.Fatalf("waiting: %v, want %v; %v", ids, owners, x.s)
	}
}

// line is enter for a waiter that must queue, without its Park: an unpark has no effect before wait, so a test can
// stop time between an unpark and its receipt.
func (x *fixture) line(kind queue.Kind, owner uint64) *party {
	x.t.Helper()
	p := x.enter(kind, owner)
	if p.entered() != "queued" {
		x.t.Fatalf("waiter %d: %s, want queued in %v", owner, p.entered(), x.s)
	}
	return p
}

// wait starts the goroutine that calls Park.
func (p *party) wait() *party {
	p.done = make(chan struct{})
	go func() {
		defer close(p.done)
		p.leftWith, p.err = p.x.s.Park(p.ctx, p.w)
	}()
	return p
}

// park is line and wait; it returns when the goroutine is parked.
func (x *fixture) park(kind queue.Kind, owner uint64) *party {
	x.t.Helper()
	p := x.line(kind, owner).wait()
	synctest.Wait()
	return p
}

// giveUp ends the party's context and returns when that has had its effect.
func (p *party) giveUp() {
	p.cancel(errGiveUp)
	synctest.Wait()
}

// over reports whether Park has returned.
func (p *party) over() bool {
	synctest.Wait()
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *party) mustBeIn() {
	p.x.t.Helper()
	if !p.over() || p.err != nil || p.leftWith != queue.Nothing {
		p.x.t.Fatalf("waiter %d is not in: over=%v err=%v order=%v; %v", p.w.Goroutine, p.over(), p.err, p.leftWith, p.x.s)
	}
}

func (p *party) mustWait() {
	p.x.t.Helper()
	if p.over() {
		p.x.t.Fatalf("waiter %d does not wait any more (err=%v); %v", p.w.Goroutine, p.err, p.x.s)
	}
}

func (p *party) mustHaveLeft(err error, order queue.Order) {
	p.x.t.Helper()
	if !p.over() || !errors.Is(p.err, err) || p.leftWith != order {
		p.x.t.Fatalf("waiter %d: over=%v err=%v order=%v, want %v and %v; %v", p.w.Goroutine, p.over(), p.err, p.leftWith, err, order, p.x.s)
	}
}

// must compares one result.
func must[T comparable](x *fixture, what string, got, want T) {
	x.t.Helper()
	if got != want {
		x.t.Fatalf("%s: %v, want %v; %v", what, got, want, x.s)
	}
}

// mustBe checks the state and the number of waiters.
func (x *fixture) mustBe(state queue.State, waiting int) {
	x.t.Helper()
	if x.s.State() != state || x.s.Len() != waiting {
		x.t.Fatalf("%v, want %v waiting=%d", x.s, state, waiting)
	}
}

func (x *fixture) mustExit(w *queue.Stay, next queue.Next, want queue.Exit, wantOrder queue.Order) {
	x.t.Helper()
	exit, order := x.s.Release(w, next)
	must(x, "Release", exit, want)
	must(x, "its order", order, wantOrder)
}

// mustLose checks what the loss of that grant finds, by the owner it is told of and by the state.
func (x *fixture) mustLose(grant uint64, wantLoser *party, wantOrder queue.Order) {
	x.t.Helper()
	who, order := x.s.Lose(grant)
	var w *queue.Stay
	if wantLoser != nil {
		w = wantLoser.w.Stay
	}
	must(x, "Lose", who, w)
	must(x, "its order", order, wantOrder)
}

// own admits the first owner by a grant of that number.
func (x *fixture) own(kind queue.Kind, owner, grant uint64) *party {
	x.t.Helper()
	p := x.park(kind, owner)
	must(x, "Acquire's order", p.order, queue.Restate)
	must(x, "Granted", x.s.Granted(grant), true)
	p.mustBeIn()
	return p
}

// released does what the code that talks to the server does: it gives the unit back.
func (x *fixture) released() {
	x.t.Helper()
	must(x, "Shrink", x.s.Shrink(0), true)
}

// drain works off the queue as Redis and every owner would, so that no goroutine remains in the bubble. It fails
// the test if the queue hangs.
func (x *fixture) drain() {
	x.t.Helper()
	for i := uint64(1 << 32); ; i++ {
		synctest.Wait()
		d := x.s.Current()
		switch d.State() {
		case queue.Free:
			return
		case queue.Owned, queue.Lost:
			x.s.Release(x.s.Owner(), queue.HandOff)
		case queue.Acquiring:
			x.s.Granted(i)
		case queue.Releasing:
			x.released()
		default:
			if x.s.EndLinger() != queue.GiveBack {
				x.t.Fatalf("the queue hangs: %v", x.s)
			}
		}
	}
}
