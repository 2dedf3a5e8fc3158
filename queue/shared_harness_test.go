package queue_test

import (
	"context"
	"errors"
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

// gate is a Synchronizer beside a server that numbers its grants.
type gate struct {
	queue.Synchronizer
	grants uint64
}

// Granted is with a new number if the process has nothing.
func (g *gate) Granted(units int64, contended bool, deadline time.Duration) queue.Order {
	if g.Demand().Grant == 0 {
		g.grants++
	}
	_, order := g.Synchronizer.Granted(g.grants, units, contended, deadline)
	return order
}

// Lose is of the present grant.
func (g *gate) Lose() queue.Order {
	_, order := g.Synchronizer.Lose(g.grants)
	return order
}

// Exit is a Release that hands off.
func (g *gate) Exit(w *queue.Waiter) queue.Order {
	_, order := g.Release(w.Stay, queue.HandOff)
	return order
}

// Peek returns the waiters.
func (g *gate) Peek(n int) []queue.WaiterInfo {
	_, infos := g.Synchronizer.Peek(n)
	return infos
}

// entered names the result of Acquire.
func entered(in bool, refused error) string {
	switch {
	case refused != nil:
		return "refused"
	case in:
		return "in"
	}
	return "queued"
}

var (
	errClosed  = errors.New("closed")
	errGiveUp  = errors.New("gave up")
	errRefused = errors.New("refused by Redis")
)

// gateFixture is a Gate in a synctest bubble, with the tests' assertions.
type gateFixture struct {
	t    *testing.T
	g    *gate
	all  int32
	fair bool
	zero time.Time
	ids  uint64
}

// inGate runs f with a new Gate in virtual time.
func inGate(t *testing.T, all int32, fair bool, f func(x *gateFixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x := &gateFixture{t: t, g: new(gate), all: all, fair: fair, zero: time.Now()}
		x.g.Init(&queue.Policy{All: all, Fair: fair, Turn: handOff, Zero: x.zero})
		time.Sleep(time.Nanosecond) // a wait that begins at 0 has no beginning
		f(x)
	})
}

// rwGates runs f with a fair Gate of an RWMutex and with one that is not.
func rwGates(t *testing.T, f func(x *gateFixture)) {
	t.Helper()
	t.Run("fair", func(t *testing.T) { inGate(t, all, true, f) })
	t.Run("non-fair", func(t *testing.T) { inGate(t, all, false, f) })
}

func (x *gateFixture) now() time.Duration { return time.Since(x.zero) }

// visitor is a goroutine that enters a Gate, and its results.
type visitor struct {
	x       *gateFixture
	w       *queue.Waiter
	in      bool        // of Enter
	order   queue.Order // of Enter
	refused error       // of Enter
	ctx     context.Context
	cancel  context.CancelCauseFunc
	done    chan struct{} // nil: Wait has not been called
	later   queue.Order   // of Wait
	err     error         // of Wait
}

// enter calls Enter with a new waiter; it does not Wait yet.
func (x *gateFixture) enter(need int64, kind queue.Kind) *visitor {
	x.t.Helper()
	x.ids++
	return x.enterAs(&queue.Waiter{Stay: &queue.Stay{Need: int32(need), Kind: kind, Goroutine: x.ids}})
}

func (x *gateFixture) enterAs(w *queue.Waiter) *visitor {
	v := &visitor{x: x, w: w}
	v.ctx, v.cancel = context.WithCancelCause(context.Background())
	x.t.Cleanup(func() { v.cancel(nil) })
	v.in, v.order, v.refused = x.g.Acquire(w)
	return v
}

// come is enter for one that must come in immediately.
func (x *gateFixture) come(need int64, kind queue.Kind) *visitor {
	x.t.Helper()
	v := x.enter(need, kind)
	x.must("Enter", entered(v.in, v.refused), "in")
	return v
}

// line is enter for one that must queue, without its Wait.
func (x *gateFixture) line(need int64, kind queue.Kind) *visitor {
	x.t.Helper()
	v := x.enter(need, kind)
	x.must("Enter", entered(v.in, v.refused), "queued")
	return v
}

// wait starts the goroutine that calls Wait, and returns when it is parked or has returned.
func (v *visitor) wait() *visitor {
	v.done = make(chan struct{})
	go func() {
		defer close(v.done)
		v.later, v.err = v.x.g.Park(v.ctx, v.w)
	}()
	synctest.Wait()
	return v
}

func (x *gateFixture) park(need int64, kind queue.Kind) *visitor {
	x.t.Helper()
	return x.line(need, kind).wait()
}

func (v *visitor) over() bool {
	synctest.Wait()
	select {
	case <-v.done:
		return true
	default:
		return false
	}
}

func (v *visitor) mustBeIn() {
	v.x.t.Helper()
	if !v.over() || v.err != nil {
		v.x.t.Fatalf("waiter %d is not in: over=%v err=%v; %+v", v.w.Goroutine, v.over(), v.err, v.x.g.Demand())
	}
}

func (v *visitor) mustWait() {
	v.x.t.Helper()
	if v.over() {
		v.x.t.Fatalf("waiter %d does not wait any more (err=%v); %+v", v.w.Goroutine, v.err, v.x.g.Demand())
	}
}

func (v *visitor) mustHaveLeft(err error) {
	v.x.t.Helper()
	if !v.over() || !errors.Is(v.err, err) {
		v.x.t.Fatalf("waiter %d: over=%v err=%v, want %v; %+v", v.w.Goroutine, v.over(), v.err, err, v.x.g.Demand())
	}
}

// giveUp ends the visitor's context.
func (v *visitor) giveUp() {
	v.cancel(errGiveUp)
	synctest.Wait()
}

// must compares one result.
func (x *gateFixture) must(what string, got, want any) {
	x.t.Helper()
	if got != want {
		x.t.Fatalf("%s: %v, want %v; %+v", what, got, want, x.g.Demand())
	}
}

// give grants units that last for ever, while nobody waits elsewhere.
func (x *gateFixture) give(units int64) {
	x.g.Granted(units, false, forever)
	synctest.Wait()
}

// open grants units and admits two readers, so that others join by the word.
func (x *gateFixture) open(units int64) {
	x.t.Helper()
	x.give(units)
	x.come(1, lock)
	x.come(1, lock)
	x.g.ReleaseShared(1)
	x.g.ReleaseShared(1)
	x.mustJoin(true)
	x.g.ReleaseShared(1)
}

// mustJoin tries to join by the word.
func (x *gateFixture) mustJoin(want bool) {
	x.t.Helper()
	x.must("TryJoin", x.g.AcquireShared(x.now()), want)
}

// mustState checks what is to be stated.
func (x *gateFixture) mustState(keep, want int64) {
	x.t.Helper()
	if d := x.g.Demand(); d.Keep != keep || d.Want != want {
		x.t.Fatalf("keep %d, want %d: must be %d and %d; %+v", d.Keep, d.Want, keep, want, d)
	}
}

// lined checks who waits, first to last.
func (x *gateFixture) lined(visitors ...*visitor) {
	x.t.Helper()
	var got, want []uint64
	for _, info := range x.g.Peek(-1) {
		got = append(got, info.Goroutine)
	}
	for _, v := range visitors {
		want = append(want, v.w.Goroutine)
	}
	if !slices.Equal(got, want) {
		x.t.Fatalf("waiting: %v, want %v; %+v", got, want, x.g.Demand())
	}
}
