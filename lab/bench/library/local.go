package library

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// local is a lock of this process alone: sync.Mutex, x/sync's semaphore of weight 1, whose waiters are served in
// order, or none at all, which shows the price of the harness.
func local(name string) Library {
	l := Library{Name: name, Local: true, Settings: "one per key, found in a sync.Map"}
	fresh := func() Handle { return mutex{new(sync.Mutex)} }
	switch name {
	case RWMutex:
		fresh = func() Handle { return rwmutex{new(sync.RWMutex)} }
	case Semaphore:
		l.Module = "golang.org/x/sync"
		l.Settings = "NewWeighted(1), " + l.Settings
		fresh = func() Handle { return weighted{semaphore.NewWeighted(1)} }
	case Nothing:
		l.Settings = "does not lock: the price of the harness, which is in every other figure too"
		fresh = func() Handle { return nothing{} }
	}
	l.Open = func(string) (Client, error) { return &locals{fresh: fresh}, nil }
	return l
}

type locals struct {
	keys  sync.Map // string → Handle
	fresh func() Handle
}

func (c *locals) Handle(key string) Handle {
	h, ok := c.keys.Load(key)
	if !ok {
		h, _ = c.keys.LoadOrStore(key, c.fresh())
	}
	return h.(Handle)
}

func (*locals) Close() error { return nil }

type mutex struct{ mu *sync.Mutex }

func (h mutex) Lock(context.Context) error { h.mu.Lock(); return nil }

func (h mutex) Unlock() error { h.mu.Unlock(); return nil }

type rwmutex struct{ rw *sync.RWMutex }

func (h rwmutex) Lock(context.Context) error { h.rw.Lock(); return nil }

func (h rwmutex) Unlock() error { h.rw.Unlock(); return nil }

func (h rwmutex) RLock(context.Context) error { h.rw.RLock(); return nil }

func (h rwmutex) RUnlock() error { h.rw.RUnlock(); return nil }

type weighted struct{ s *semaphore.Weighted }

func (h weighted) Lock(ctx context.Context) error { return h.s.Acquire(ctx, 1) }

func (h weighted) Unlock() error { h.s.Release(1); return nil }

type nothing struct{}

func (nothing) Lock(context.Context) error { return nil }

func (nothing) Unlock() error { return nil }
