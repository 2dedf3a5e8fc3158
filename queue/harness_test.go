package queue_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/anteroom/anteroom/queue"
)

var (
	errClosed  = errors.New("closed")
	errGiveUp  = errors.New("gave up")
	errRefused = errors.New("refused by Redis")
)

// fixture is a Synchronizer in a synctest bubble, with the tests' assertions. synctest.Wait returns when every
// goroutine of the bubble is parked, so what is asserted after it is final and not a matter of luck.
type fixture struct {
	t    *testing.T
	s    *queue.Synchronizer
	fair bool
}

// inBubble runs f with a new Synchronizer in virtual time.
func inBubble(t *testing.T, fair bool, f func(x *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(&fixture{t, queue.New(fair), fair}) })
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
	in       bool        // of Enter
	order    queue.Order // of Enter
	refused  error       // of Enter
	cancel   context.CancelCauseFunc
	ctx      context.Context
	done     chan struct{}
	leftWith queue.Order // of Wait
	err      error       // of Wait
}

// entered names the result of Enter.
func (p *party) entered() string { return entered(p.in, p.refused) }

func entered(in bool, refused error) string {
	switch {
	case refused != nil:
		return "refused"
	case in:
		return "in"
	}
	return "queued"
}

// enter calls Enter with a new waiter; it does not Wait yet.
func (x *fixture) enter(kind queue.Kind, owner uint64) *party {
	x.t.Helper()
	return x.enterAs(&queue.Waiter{}, kind, owner)
}

// enterAs is enter with a given waiter.
func (x *fixture) enterAs(w *queue.Waiter, kind queue.Kind, owner uint64) *party {
	x.t.Helper()
	w.Kind, w.Owner, w.Note = kind, owner, owner
	p := &party{x: x, w: w}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	p.in, p.order, p.refused = x.s.Enter(p.w)
	x.t.Cleanup(func() { p.cancel(nil) })
	return p
}

// again enters the waiter of an admitted party again, as First; its tenure has ended.
func (p *party) again(wantEntered string, wantOrder queue.Order) {
	p.x.t.Helper()
	p.w.Again()
	p.done = nil
	p.in, p.order, p.refused = p.x.s.Enter(p.w)
	must(p.x, "Enter again", p.entered(), wantEntered)
	must(p.x, "its order", p.order, wantOrder)
}

// lined checks who waits, first to last.
func (x *fixture) lined(owners ...uint64) {
	x.t.Helper()
	if ids := x.s.AppendWaiting(nil); !slices.Equal(ids, owners) {
		x.t.Fatalf("waiting: %v, want %v; %v", ids, owners, x.s)
	}
}

// line is enter for a waiter that must queue, without its Wait: a wake-up has no effect before wait, so a test can
// stop time between a wake-up and its receipt.
func (x *fixture) line(kind queue.Kind, owner uint64) *party {
	x.t.Helper()
	p := x.enter(kind, owner)
	if p.entered() != "queued" {
		x.t.Fatalf("waiter %d: %s, want queued in %v", owner, p.entered(), x.s)
	}
	return p
}

// wait starts the goroutine that calls Wait.
func (p *party) wait() *party {
	p.done = make(chan struct{})
	go func() {
		defer close(p.done)
		p.leftWith, p.err = p.x.s.Wait(p.ctx, p.w)
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

// over reports whether Wait has returned.
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
		p.x.t.Fatalf("waiter %d is not in: over=%v err=%v order=%v; %v", p.w.Owner, p.over(), p.err, p.leftWith, p.x.s)
	}
}

func (p *party) mustWait() {
	p.x.t.Helper()
	if p.over() {
		p.x.t.Fatalf("waiter %d does not wait any more (err=%v); %v", p.w.Owner, p.err, p.x.s)
	}
}

func (p *party) mustHaveLeft(err error, order queue.Order) {
	p.x.t.Helper()
	if !p.over() || !errors.Is(p.err, err) || p.leftWith != order {
		p.x.t.Fatalf("waiter %d: over=%v err=%v order=%v, want %v and %v; %v", p.w.Owner, p.over(), p.err, p.leftWith, err, order, p.x.s)
	}
}

// must compares one result.
func must[T comparable](x *fixture, what string, got, want T) {
	x.t.Helper()
	if got != want {
		x.t.Fatalf("%s: %v, want %v; %v", what, got, want, x.s)
	}
}

// mustBe checks the state, the count, the hand-offs and the number of waiters.
func (x *fixture) mustBe(state queue.State, count, handOffs, waiting int) {
	x.t.Helper()
	word := x.s.Word()
	if word.State() != state || word.Count() != count || word.HandOffs() != handOffs || x.s.Len() != waiting {
		x.t.Fatalf("%v, want %v count=%d handoffs=%d waiting=%d", x.s, state, count, handOffs, waiting)
	}
}

func (x *fixture) mustExit(number uint64, mayHandOff bool, want queue.Exit, wantOrder queue.Order) {
	x.t.Helper()
	exit, order := x.s.Exit(number, mayHandOff)
	must(x, "Exit", exit, want)
	must(x, "Exit's order", order, wantOrder)
}

func (x *fixture) mustLose(grant uint64, want queue.State, wantOrder queue.Order) {
	x.t.Helper()
	loss, order := x.s.Lose(grant)
	must(x, "Lose", loss.State, want)
	must(x, "Lose's order", order, wantOrder)
}

// own admits the first owner by a grant of that number.
func (x *fixture) own(kind queue.Kind, owner, grant uint64) *party {
	x.t.Helper()
	p := x.park(kind, owner)
	must(x, "Enter's order", p.order, queue.StartAttempt)
	must(x, "Granted", x.s.Granted(grant), true)
	p.mustBeIn()
	return p
}

// drain works off the queue as Redis and every owner would, so that no goroutine remains in the bubble. It fails
// the test if the queue hangs.
func (x *fixture) drain() {
	x.t.Helper()
	for i := uint64(1 << 32); ; i++ {
		synctest.Wait()
		current := x.s.Current()
		switch current.State {
		case queue.Free:
			return
		case queue.Owned, queue.Lost:
			x.s.Exit(current.Number, true)
		case queue.Acquiring:
			x.s.Granted(i)
		case queue.Lingers:
			x.s.EndLinger()
		case queue.Releasing:
			x.s.Released()
		default:
			x.t.Fatalf("the queue hangs: %v", x.s)
		}
	}
}
