package anteroom

import (
	"context"
)

// holdKey is the context key under which the context of a Hold carries it.
type holdKey struct{}

// HoldFrom returns the Hold that ctx belongs to: inside Do its own, and for a context
// made of Hold.Context that Hold. If Holds are nested it is the innermost, of any
// key and Manager. ok is false if ctx carries none.
//
// The Hold may be lost or released: ask it. Work inside Do may release it early; Do then
// does not release, nor say again what that Release has returned.
func HoldFrom(ctx context.Context) (h *Hold, ok bool) {
	h, ok = ctx.Value(holdKey{}).(*Hold)
	return h, ok
}

// holdContext is a context that the library ends: a Hold's, or the parent of those of a
// tenure's Holds. A Hold's keeps the Hold reachable, and so does every context derived from
// it: work that still has the context still holds the lock.
type holdContext struct {
	context.Context // without values, since the library keeps it
	end             context.CancelCauseFunc
	h               *Hold // nil: a tenure's, which is nobody's context but a parent
}

func newHoldContext(parent context.Context, h *Hold) *holdContext {
	c := &holdContext{h: h}
	c.Context, c.end = context.WithCancelCause(parent)
	return c
}

// Err compares with the clock, so that a process that was stopped past its
// deadline sees the end before a timer or goroutine had a chance to run.
func (c *holdContext) Err() error {
	_ = c.h.Err() // ends the context where the deadline has passed
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

// noHold is the context of a nil Hold.
var noHold = endedBy(errNilHold)

// endedBy returns a context that has ended with the cause.
func endedBy(cause error) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return ctx
}

// Context returns a context that has the values of the context given to Acquire,
// and ends when the lock is lost or released; context.Cause says which, as an
// *Error. It is not ended by the end of the context given to Acquire.
//
// Anyone with the context has the Hold. That counts for what is registered with it as
// well: a context.AfterFunc that was not stopped, or a child of it that was not cancelled,
// keeps a Hold that was forgotten from being reported as EventAbandoned.
func (h *Hold) Context() context.Context {
	if h == nil {
		return noHold
	}
	t := h.t
	t.mu.Lock()
	released := h.sentinel == nil
	if h.ctx == nil {
		parent := context.Background()
		if !released {
			if t.ctx == nil {
				t.ctx = newHoldContext(parent, nil)
			}
			parent = t.ctx.Context
		}
		h.ctx = newHoldContext(parent, h)
	}
	ctx := h.ctx
	t.mu.Unlock()
	if released {
		ctx.end(h.releasedError())
	} else {
		_ = h.Err() // ends the context where the lock is lost
	}
	return ctx
}

// check reports whether h was released, and otherwise returns why it is lost, or nil.
func (h *Hold) check(op string) (released bool, loss error) {
	t := h.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if h.sentinel == nil {
		return true, nil // what is being released is not valid either
	}
	if l := t.owner.Err(); l != nil {
		return false, t.m.lossError(op, h.Key(), l)
	}
	return false, nil
}
