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

const (
	all     = 1 << 20              // what a writer needs
	handOff = 5 * time.Millisecond // how long a turn lasts at most while another process waits
	forever = 1<<63 - 1
)

// Kinds of those that can be notified of a loss, and of those that cannot.
const (
	hold = queue.Refusable
	lock = queue.NoNotify
)

var (
	errClosed  = errors.New("closed")
	errGiveUp  = errors.New("gave up")
	errRefused = errors.New("refused by Redis")
)

// policies are those of a Mutex, an RWMutex and a Semaphore.
func mutexPolicy(fair bool) queue.Policy {
	return queue.Policy{All: 1, Fair: fair, Returns: true, Zero: time.Now()}
}

func sharedPolicy(all int32, fair bool) queue.Policy {
	return queue.Policy{All: all, Fair: fair, Turn: handOff, Zero: time.Now()}
}

// synchronizer is one beside a server that numbers its grants.
type synchronizer struct {
	queue.Synchronizer
	grants uint64
}

func newSynchronizer(p queue.Policy) *synchronizer {
	s := new(synchronizer)
	s.Init(&p)
	return s
}

func newMutex(fair bool) *synchronizer { return newSynchronizer(mutexPolicy(fair)) }

// Grant is what a Mutex is granted: its one unit, for ever.
func (s *synchronizer) Grant(grant uint64) bool {
	taken, _ := s.Synchronizer.Granted(grant, 1, false, queue.Forever)
	return taken
}

// Granted is with a new number if the process has nothing.
func (s *synchronizer) Granted(units int64, contended bool, deadline time.Duration) queue.Order {
	if s.Demand().Grant == 0 {
		s.grants++
	}
	_, order := s.Synchronizer.Granted(s.grants, units, contended, deadline)
	return order
}

// LoseAll is Lose of the present grant.
func (s *synchronizer) LoseAll() queue.Order {
	_, order := s.Lose(s.grants)
	return order
}

// Exit is a Release that hands off.
func (s *synchronizer) Exit(w *queue.Waiter) queue.Order {
	_, order := s.Release(w.Stay, queue.HandOff)
	return order
}

// State returns the state.
func (s *synchronizer) State() queue.State { return s.Word().State() }

// OwnedBy is what a caller finds out about its own goroutine.
func (s *synchronizer) OwnedBy(owner uint64) (owned, byLock bool) {
	w := s.Owner()
	owned = w != nil && owner != 0 && w.Goroutine == owner
	return owned, owned && !w.Kind.CanNotify()
}

// Waiting returns the first n waiters, or all with a negative n.
func (s *synchronizer) Waiting(n int) []queue.WaiterInfo {
	_, infos := s.Peek(n)
	return infos
}

// String describes the state in one line.
func (s *synchronizer) String() string {
	d := s.Demand()
	return fmt.Sprintf("queue.Synchronizer[%v %+v]", d.State(), d)
}

// fixture is a Synchronizer in a synctest bubble, with the tests' assertions. synctest.Wait returns when every goroutine of
// the bubble is parked, so what is asserted after it is final and not a matter of luck.
type fixture struct {
	t   *testing.T
	s   *synchronizer
	p   queue.Policy
	ids uint64
}

// inside runs f with a new Synchronizer in virtual time. policy is called in the bubble, whose clock it reads.
func inside(t *testing.T, policy func() queue.Policy, f func(x *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := policy()
		x := &fixture{t: t, s: newSynchronizer(p), p: p}
		time.Sleep(time.Nanosecond) // a wait that begins at 0 has no beginning
		f(x)
	})
}

// inBubble is inside with a Mutex.
func inBubble(t *testing.T, fair bool, f func(x *fixture)) {
	t.Helper()
	inside(t, func() queue.Policy { return mutexPolicy(fair) }, f)
}

// inGate is inside with an RWMutex, or a Semaphore if all is 0.
func inGate(t *testing.T, all int32, fair bool, f func(x *fixture)) {
	t.Helper()
	inside(t, func() queue.Policy { return sharedPolicy(all, fair) }, f)
}

// bothModes runs f with a Mutex in fair and in non-fair mode.
func bothModes(t *testing.T, f func(x *fixture)) {
	t.Helper()
	t.Run("fair", func(t *testing.T) { inBubble(t, true, f) })
	t.Run("non-fair", func(t *testing.T) { inBubble(t, false, f) })
}

// rwGates runs f with an RWMutex in fair and in non-fair mode.
func rwGates(t *testing.T, f func(x *fixture)) {
	t.Helper()
	t.Run("fair", func(t *testing.T) { inGate(t, all, true, f) })
	t.Run("non-fair", func(t *testing.T) { inGate(t, all, false, f) })
}

func (x *fixture) now() time.Duration { return time.Since(x.p.Zero) }

// party is a waiting goroutine and its results.
type party struct {
	x        *fixture
	w        *queue.Waiter
	in       bool        // of Acquire
	order    queue.Order // of Acquire
	refused  error       // of Acquire
	cancel   context.CancelCauseFunc
	ctx      context.Context
	done     chan struct{} // nil: Park has not been called
	leftWith queue.Order   // of Park
	err      error         // of Park
}

// entered names the result of Acquire.
func (p *party) entered() string {
	switch {
	case p.refused != nil:
		return "refused"
	case p.in:
		return "in"
	}
	return "queued"
}

// enterAs calls Acquire with a waiter; it does not Park yet.
func (x *fixture) enterAs(w *queue.Waiter) *party {
	p := &party{x: x, w: w}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	x.t.Cleanup(func() { p.cancel(nil) })
	p.in, p.order, p.refused = x.s.Acquire(w)
	return p
}

// enter is enterAs with a new waiter of a Mutex.
func (x *fixture) enter(kind queue.Kind, owner uint64) *party {
	return x.enterAs(&queue.Waiter{Stay: &queue.Stay{Need: 1, Kind: kind, Goroutine: owner}, Note: owner})
}

// asks is enter for so many units.
func (x *fixture) asks(need int32, kind queue.Kind) *party {
	x.ids++
	return x.enterAs(&queue.Waiter{Stay: &queue.Stay{Need: need, Kind: kind, Goroutine: x.ids}})
}

// mustBe checks the result of Acquire.
func (p *party) mustBe(entered string) *party {
	p.x.t.Helper()
	if p.entered() != entered {
		p.x.t.Fatalf("waiter %d: %s, want %s; %v", p.w.Goroutine, p.entered(), entered, p.x.s)
	}
	return p
}

// comes is asks for one that must come in immediately.
func (x *fixture) comes(need int32, kind queue.Kind) *party {
	x.t.Helper()
	return x.asks(need, kind).mustBe("in")
}

// queues is asks for one that must queue, and line is enter for such a one, without its Park: an unpark has no effect before
// that, so a test can stop time between an unpark and its receipt.
func (x *fixture) queues(need int32, kind queue.Kind) *party {
	x.t.Helper()
	return x.asks(need, kind).mustBe("queued")
}

func (x *fixture) line(kind queue.Kind, owner uint64) *party {
	x.t.Helper()
	return x.enter(kind, owner).mustBe("queued")
}

// waits and park are queues and line with the Park.
func (x *fixture) waits(need int32, kind queue.Kind) *party {
	x.t.Helper()
	return x.queues(need, kind).wait()
}

func (x *fixture) park(kind queue.Kind, owner uint64) *party {
	x.t.Helper()
	return x.line(kind, owner).wait()
}

// wait starts the goroutine that calls Park, and returns when it is parked or has returned.
func (p *party) wait() *party {
	p.done = make(chan struct{})
	go func() {
		defer close(p.done)
		p.leftWith, p.err = p.x.s.Park(p.ctx, p.w)
	}()
	synctest.Wait()
	return p
}

// again enters the waiter of an admitted party again, as First; its stay has ended.
func (p *party) again(wantEntered string, wantOrder queue.Order) {
	p.x.t.Helper()
	p.w.Again()
	p.done = nil
	p.in, p.order, p.refused = p.x.s.Acquire(p.w)
	p.mustBe(wantEntered)
	must(p.x, "its order", p.order, wantOrder)
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
	if !p.over() || p.err != nil || p.leftWith != queue.Nothing && p.x.p.Returns {
		p.x.t.Fatalf("waiter %d is not in: over=%v err=%v order=%v; %v", p.w.Goroutine, p.over(), p.err, p.leftWith, p.x.s)
	}
}

func (p *party) mustWait() {
	p.x.t.Helper()
	if p.over() {
		p.x.t.Fatalf("waiter %d does not wait any more (err=%v); %v", p.w.Goroutine, p.err, p.x.s)
	}
}

// mustHaveLeft checks what Park has returned; orders has one or is empty.
func (p *party) mustHaveLeft(err error, orders ...queue.Order) {
	p.x.t.Helper()
	if !p.over() || !errors.Is(p.err, err) || len(orders) > 0 && p.leftWith != orders[0] {
		p.x.t.Fatalf("waiter %d: over=%v err=%v order=%v, want %v and %v; %v", p.w.Goroutine, p.over(), p.err, p.leftWith, err, orders, p.x.s)
	}
}

// must compares one result.
func must[T comparable](x *fixture, what string, got, want T) {
	x.t.Helper()
	if got != want {
		x.t.Fatalf("%s: %v, want %v; %v", what, got, want, x.s)
	}
}

// mustPanic fails the test unless f panics.
func mustPanic(x *fixture, what string, f func()) {
	x.t.Helper()
	defer func() {
		x.t.Helper()
		if recover() == nil {
			x.t.Fatalf("%s: no panic", what)
		}
	}()
	f()
}

// lined checks who waits, first to last.
func (x *fixture) lined(owners ...uint64) {
	x.t.Helper()
	if ids := x.s.AppendWaiting(nil); !slices.Equal(ids, owners) {
		x.t.Fatalf("waiting: %v, want %v; %v", ids, owners, x.s)
	}
}

// linedUp is lined for parties.
func (x *fixture) linedUp(parties ...*party) {
	x.t.Helper()
	var ids []uint64
	for _, p := range parties {
		ids = append(ids, p.w.Goroutine)
	}
	x.lined(ids...)
}

// mustBe checks the state and the number of waiters.
func (x *fixture) mustBe(state queue.State, waiting int) {
	x.t.Helper()
	if x.s.State() != state || x.s.Len() != waiting {
		x.t.Fatalf("%v, want %v waiting=%d", x.s, state, waiting)
	}
}

// mustState checks what is to be stated.
func (x *fixture) mustState(keep, want int64) {
	x.t.Helper()
	if d := x.s.Demand(); d.Keep != keep || d.Want != want {
		x.t.Fatalf("keep %d, want %d: must be %d and %d; %+v", d.Keep, d.Want, keep, want, d)
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

// own admits the first owner of a Mutex by a grant of that number.
func (x *fixture) own(kind queue.Kind, owner, grant uint64) *party {
	x.t.Helper()
	p := x.park(kind, owner)
	must(x, "Acquire's order", p.order, queue.Restate)
	must(x, "Granted", x.s.Grant(grant), true)
	p.mustBeIn()
	return p
}

// give grants units that last for ever, while nobody waits elsewhere.
func (x *fixture) give(units int64) {
	x.s.Granted(units, false, forever)
	synctest.Wait()
}

// open grants units and admits two readers, so that others join by the word.
func (x *fixture) open(units int64) {
	x.t.Helper()
	x.give(units)
	x.comes(1, lock)
	x.comes(1, lock)
	x.s.ReleaseShared(0, 1, 0)
	x.s.ReleaseShared(0, 1, 0)
	x.mustJoin(true)
	x.s.ReleaseShared(0, 1, 0)
}

// mustJoin tries to join by the word.
func (x *fixture) mustJoin(want bool) {
	x.t.Helper()
	must(x, "AcquireShared", x.s.AcquireShared(x.now()), want)
}

// released does what the code that talks to the server does: it gives the unit of a Mutex back.
func (x *fixture) released() {
	x.t.Helper()
	must(x, "Shrink", x.s.Shrink(0), true)
}

// drain works off the queue of a Mutex as Redis and every owner would, so that no goroutine remains in the bubble. It fails
// the test if the queue hangs.
func (x *fixture) drain() {
	x.t.Helper()
	for i := uint64(1 << 32); ; i++ {
		synctest.Wait()
		switch x.s.State() {
		case queue.Free:
			return
		case queue.Owned, queue.Lost:
			x.s.Release(x.s.Owner(), queue.HandOff)
		case queue.Acquiring:
			x.s.Grant(i)
		case queue.Releasing:
			x.released()
		default:
			if x.s.EndLinger() != queue.GiveBack {
				x.t.Fatalf("the queue hangs: %v", x.s)
			}
		}
	}
}
