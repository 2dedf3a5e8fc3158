package anteroom

import (
	"context"
	"sync/atomic"
	"time"
	"weak"
)

// holdKey is the context key under which the context of a Hold carries it.
type holdKey struct{}

// HoldFrom returns the Hold that ctx belongs to: inside Do its own, and for a context
// made of Hold.Context that Hold. Where Holds are nested it is the innermost, whatever
// its key and Manager. ok is false where ctx carries none.
//
// The Hold may be lost or released: ask it. Work inside Do may release it early; Do then
// does not release, nor say again what that Release has returned.
func HoldFrom(ctx context.Context) (h *Hold, ok bool) {
	h, ok = ctx.Value(holdKey{}).(*Hold)
	return h, ok
}

// outer returns the Hold of this lock that ctx carries, nil where there is none or it
// does not matter. nested tells whether ctx carries a Hold of any lock.
func (mu *Mutex) outer(ctx context.Context) (s *holdState, nested bool) {
	h, nested := HoldFrom(ctx)
	if mu.cfg.Reentrancy == NotReentrant {
		return nil, nested
	}
	for ; h != nil; h, _ = HoldFrom(h.values) {
		if e := h.s.t.g.e; e.m == mu.m && e.key == mu.key {
			return h.s, nested
		}
	}
	return nil, nested
}

// holdContext is a Hold's context. It keeps the Hold reachable, and so does every
// context derived from it: work that still has the context still holds the lock.
type holdContext struct {
	context.Context // ended by holdState.end; the library keeps it, so it has no values
	h               *Hold
}

// Err compares with the clock, so that a process that was stopped past its
// deadline sees the end before a timer or goroutine had a chance to run.
func (c *holdContext) Err() error {
	_ = c.h.s.err() // ends the context where the deadline has passed
	return c.Context.Err()
}

func (c *holdContext) Value(key any) any {
	if key == (holdKey{}) {
		return c.h
	}
	if v := c.Context.Value(key); v != nil { // what the context package asks for itself
		return v
	}
	return c.h.values.Value(key)
}

// Context returns a context that has the values of the context given to Acquire,
// and ends when the lock is lost or released; context.Cause tells which, as an
// *Error. It is not ended by the end of the context given to Acquire.
//
// Whoever has the context has the Hold. That counts for what is registered with it as
// well: a context.AfterFunc that was not stopped, or a child of it that was not cancelled,
// keeps a Hold that was forgotten from being reported as EventAbandoned.
func (h *Hold) Context() context.Context {
	s := h.s
	s.mu.Lock()
	if s.ending == nil {
		s.ending = &endable{}
		s.ending.Context, s.ending.end = context.WithCancelCause(context.Background())
		if s.ended != nil {
			s.ending.end(s.cause())
		}
	}
	ctx := s.ending.Context
	s.mu.Unlock()
	_ = s.err()
	return &holdContext{ctx, h}
}

// valuesOf returns the values that the library keeps of a context with which a lock is
// acquired, for the records and spans about it: those of a context that carries a Hold
// end with the new Hold, or they would keep the outer one reachable, and a forgotten pair
// of them would never be noticed.
func valuesOf(ctx context.Context, nested bool) context.Context {
	if !nested {
		return ctx
	}
	return &nestedValues{Context: context.Background()}
}

// nestedValues are the values of a Hold as long as somebody else has it.
type nestedValues struct {
	context.Context
	of atomic.Pointer[weak.Pointer[Hold]] // nil until the Hold is made
}

func (v *nestedValues) Value(key any) any {
	if of := v.of.Load(); of != nil {
		if h := of.Value(); h != nil {
			return h.values.Value(key)
		}
	}
	return nil
}

// end ends the hold's context with cause; the first cause stays. When it returns the
// context has ended, also where another goroutine is just about to end it. It does no
// I/O and calls nobody but the context's own functions.
func (s *holdState) end(cause error) {
	s.mu.Lock()
	if s.ended == nil {
		s.ended = cause
	}
	ending := s.ending
	if ending == nil { // nobody has asked for a context
		s.mu.Unlock()
		return
	}
	cause = s.cause()
	s.mu.Unlock()
	ending.end(cause) // a second time it does nothing, and waits for the first
}

// cause is the cause with which the context ends. The caller has mu.
func (s *holdState) cause() error {
	if s.ended == errByRelease { //nolint:errorlint // identity is meant
		return s.releasedError()
	}
	return s.ended
}

// err is Hold.Err.
func (s *holdState) err() error {
	err := s.t.g.err("hold", time.Now())
	// Asked in this order: a hold that is being released is not valid either.
	if s.released.Load() {
		return s.releasedError()
	}
	if err != nil {
		s.end(err)
	}
	return err
}
