package anteroom

import (
	"context"
	"time"
)

// holdKey is the context key under which a Hold's context carries the Hold.
type holdKey struct {
	m   *Manager
	key string
}

// holdContext is a Hold's context. It keeps the Hold reachable, and so does every
// context derived from it: work that still has the context still holds the lock.
type holdContext struct {
	context.Context // ended by holdState.end
	h               *Hold
}

// Err compares with the clock, so that a process that was stopped past its
// deadline sees the end before a timer or goroutine had a chance to run.
func (c *holdContext) Err() error {
	_ = c.h.s.err() // ends the context where the deadline has passed
	return c.Context.Err()
}

// Context returns a context that has the values of the context given to Acquire,
// and ends when the lock is lost or released; context.Cause tells which, as an
// *Error. It is not ended by the end of the context given to Acquire.
func (h *Hold) Context() context.Context {
	s := h.s
	s.mu.Lock()
	if s.ctx == nil {
		e := s.t.g.e
		values := context.WithValue(context.WithoutCancel(s.values), holdKey{e.m, e.key}, s)
		s.ctx, s.cancel = context.WithCancelCause(values)
		if s.ended != nil {
			s.cancel(s.ended)
		}
	}
	ctx := s.ctx
	s.mu.Unlock()
	_ = s.err()
	return &holdContext{ctx, h}
}

// end ends the hold's context with cause; the first cause stays. When it returns the
// context has ended, also where another goroutine is just about to end it. It does no
// I/O and calls nobody but the context's own functions.
func (s *holdState) end(cause error) {
	s.mu.Lock()
	if s.ended == nil {
		s.ended = cause
	}
	cause, cancel := s.ended, s.cancel
	s.mu.Unlock()
	if cancel != nil {
		cancel(cause) // a second time it does nothing, and waits for the first
	}
}

// err is Hold.Err.
func (s *holdState) err() error {
	err := s.t.g.err("hold", time.Now())
	// Asked in this order: a hold that is being released is not valid either.
	if s.released.Load() {
		return &Error{Op: "hold", Key: s.t.g.e.key, Outcome: OutcomeReleased, Err: errReleased}
	}
	if err != nil {
		s.end(err)
	}
	return err
}
