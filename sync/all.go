package anteroom

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/observe"
)

// HoldSet is several locks that are held together, from Manager.AcquireAll until Release. All methods are safe for
// concurrent use. One that is forgotten without a Release holds on: unlike a Hold it is not reported as EventAbandoned. A nil
// HoldSet, which comes with an error, is one that does not hold: its Err wraps ErrNotHeld.
type HoldSet struct {
	holds []*Hold // in the order of their keys
	ctx   *setContext
}

// errNilSet is why one that AcquireAll has not returned is not held, and noSet its context, which has ended.
var (
	errNilSet = &Error{Op: "hold", Outcome: observe.OutcomeFailed, Err: joined(ErrNotHeld, ownText("the HoldSet is nil"))}
	noSet     = endedBy(errNilSet)
)

func (s *HoldSet) none() bool { return s == nil || s.ctx == nil }

// AcquireAll waits until it holds the locks of all keys, with Config.Defaults, or ctx ends. It acquires them in the order of
// their bytes, so callers that hold nothing else never deadlock with each other, and holds those that it has while it waits
// for the next. A key that is named twice is acquired once; one that ctx carries a live Hold of is entered again.
//
// On failure nothing is held, and the *Error is that of the key at which it failed. That may be an ErrLost, of a lock that was
// lost while the others were waited for. Those that it had are released before it returns, also where ctx has ended: it waits
// for the first answer of Redis, up to CommandTimeout. What has no answer by then is released in the background.
func (m *Manager) AcquireAll(ctx context.Context, keys ...string) (*HoldSet, error) {
	const op = "acquire all"
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	s := &HoldSet{}
	s.ctx = &setContext{s: s, values: ctx}
	s.ctx.Context, s.ctx.end = context.WithCancelCause(context.Background())
	waits, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	for _, key := range keys {
		within := context.Context(waits)
		if n := len(s.holds); n > 0 {
			within = context.WithValue(waits, holdKey{}, s.holds[n-1])
		}
		h, err := m.Mutex(key).hold(within, op, queue.Refusable, nil, nil)
		if err == nil {
			s.holds = append(s.holds, h)
			lost := func() { // the first of all stays
				stop(h.Err())
				s.ctx.end(h.Err())
			}
			context.AfterFunc(h.Context(), lost)
			err = s.Err()
		}
		if err != nil {
			if lost, is := errors.AsType[*Error](context.Cause(waits)); is && ctx.Err() == nil {
				err = lost
			}
			_ = s.Release(firstAnswer) // also if ctx has ended: a caller that then ends the process leaves nothing
			return nil, err
		}
	}
	return s, nil
}

// Context returns a context that has the values of the context given to AcquireAll, and ends when the first of the locks
// is lost, or with Release; context.Cause says which, as an *Error. It carries the Holds: Acquire and Do enter each of
// the locks again with it.
func (s *HoldSet) Context() context.Context {
	if s.none() {
		return noSet
	}
	return s.ctx
}

// Err returns nil while all locks are held, and otherwise the error of the first that is not, as Hold.Err does. The
// others are held on, until Release.
func (s *HoldSet) Err() error {
	if s.none() {
		return errNilSet
	}
	for _, h := range s.holds {
		if err := h.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Holds returns the Holds, in the order of their keys. Each can be asked for its token and deadline, or released early,
// which ends the Context.
func (s *HoldSet) Holds() []*Hold {
	if s.none() {
		return nil
	}
	return slices.Clone(s.holds)
}

// Release ends all holds. It returns nil where each Hold.Release does, and otherwise an *Error that wraps the errors of
// all: one lock that was lost is ErrLost. ctx is as for Hold.Release; the releases are under way at the same time.
func (s *HoldSet) Release(ctx context.Context) error {
	if s.none() {
		return &Error{Op: "release", Outcome: observe.OutcomeReleased, Err: ErrNotHeld}
	}
	errs := make([]error, len(s.holds))
	var all sync.WaitGroup
	for i, h := range s.holds {
		all.Go(func() { errs[i] = h.Release(ctx) })
	}
	all.Wait()
	s.ctx.end(&Error{Op: "hold", Outcome: observe.OutcomeReleased, Err: errReleased})
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	var outcome observe.Outcome
	for _, err := range errs {
		if of, _ := errors.AsType[*Error](err); outcome != observe.OutcomeLost {
			outcome = of.Outcome
		}
	}
	return &Error{Op: "release", Outcome: outcome, Err: joined(errs...)}
}

// setContext is the context of a HoldSet.
type setContext struct {
	context.Context // without values
	end             context.CancelCauseFunc
	s               *HoldSet
	values          context.Context // that was given to AcquireAll
}

// Err compares with the clock, as that of a Hold's context does.
func (c *setContext) Err() error {
	if err := c.s.Err(); err != nil {
		c.end(err)
	}
	return c.Context.Err()
}

func (c *setContext) Value(key any) any {
	if n := len(c.s.holds); n > 0 && key == (holdKey{}) {
		return c.s.holds[n-1]
	}
	if v := c.Context.Value(key); v != nil { // what the context package asks for itself
		return v
	}
	return c.values.Value(key)
}
