package anteroom

import "sync/atomic"

// recall wakes a key's driver while it waits. It is kept until the driver next waits; the
// channel is made when a driver waits for the first time, since most never do.
type recall struct {
	told atomic.Bool
	c    atomic.Pointer[chan struct{}] // capacity 1; nil while no driver has waited
}

// tell wakes the driver that waits, or the next one that does.
func (r *recall) tell() {
	if r.c.Load() == nil {
		r.told.Store(true) // before the second look: a driver asks for it after it has shown its channel
	}
	if c := r.c.Load(); c != nil {
		wake(*c)
	}
}

// channel returns what a driver waits on. One driver of a key at most is waiting.
func (r *recall) channel() <-chan struct{} {
	c := r.c.Load()
	if c == nil {
		made := make(chan struct{}, 1)
		c = &made
		r.c.Store(c)
		if r.told.Load() {
			wake(made)
		}
	}
	return *c
}

func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // the token is there already
	}
}
