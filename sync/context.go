package anteroom

import (
	"context"
	"time"
)

// holdKey is the context key under which the context of a Hold carries it, and those
// that it is nested in. It is made of one pointer, so that asking for it allocates nothing.
type holdKey struct{ m *Manager }

// carried is one Hold that a context carries.
type carried struct {
	s     *holdState
	outer *carried
}

// outer returns the Hold of this lock that ctx carries, nil where there is none or it
// does not matter.
func (mu *Mutex) outer(ctx context.Context) *holdState {
	if mu.cfg.Reentrancy == NotReentrant {
		return nil
	}
	c, _ := ctx.Value(holdKey{mu.m}).(*carried)
	for c != nil && c.s.t.g.e.key != mu.key {
		c = c.outer
	}
	if c == nil {
		return nil
	}
	return c.s
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
	if s.ending == nil {
		key := holdKey{s.t.g.e.m}
		outer, _ := s.values.Value(key).(*carried)
		values := context.WithValue(context.WithoutCancel(s.values), key, &carried{s, outer})
		s.ending = &endable{}
		s.ending.Context, s.ending.end = context.WithCancelCause(values)
		if s.ended != nil {
			s.ending.end(s.cause())
		}
	}
	ctx := s.ending.Context
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
