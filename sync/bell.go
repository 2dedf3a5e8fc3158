package anteroom

import (
	"context"
	"sync/atomic"
	"time"
)

// bell wakes one goroutine that waits, or the next one that does: a key's driver, a
// clean-up, or Close. One at most waits at any time. Most bells are never waited for, so
// the channel is made by the first wait.
type bell struct {
	c atomic.Pointer[chan struct{}] // capacity 1; nil: nobody has waited, and it was not rung; rung: it was
}

var rung = new(chan struct{})

func (b *bell) ring() {
	c := b.c.Load()
	if c == nil && b.c.CompareAndSwap(nil, rung) {
		return
	}
	if c = b.c.Load(); c == rung {
		return
	}
	select {
	case *c <- struct{}{}:
	default: // it has been rung already
	}
}

// channel returns what is received from to wait.
func (b *bell) channel() <-chan struct{} {
	if c := b.c.Load(); c != nil && c != rung {
		return *c
	}
	made := make(chan struct{}, 1)
	if b.c.Swap(&made) == rung {
		select {
		case made <- struct{}{}:
		default: // it has been rung again, into the channel
		}
	}
	return made
}

// pause waits for d, or until the bell rings or ctx ends. It returns true where the time has
// passed.
func (b *bell) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-b.channel():
	case <-ctx.Done():
	}
	return false
}
