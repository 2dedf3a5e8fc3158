package library

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// mutex is sync.Mutex, one per key.
func mutex() Library {
	return Library{
		Name: Mutex, Local: true, Settings: "one per key, found in a sync.Map",
		Open: func(string) (Client, error) { return &mutexes{}, nil },
	}
}

type mutexes struct{ keys sync.Map } // string → *sync.Mutex

func (c *mutexes) Handle(key string) Handle {
	mu, ok := c.keys.Load(key)
	if !ok {
		mu, _ = c.keys.LoadOrStore(key, new(sync.Mutex))
	}
	return mutexHandle{mu.(*sync.Mutex)}
}

func (*mutexes) Close() error { return nil }

type mutexHandle struct{ mu *sync.Mutex }

func (h mutexHandle) Lock(context.Context) error { h.mu.Lock(); return nil }

func (h mutexHandle) Unlock() error { h.mu.Unlock(); return nil }

// weighted is x/sync's semaphore of weight 1, whose waiters are served in order.
func weighted() Library {
	return Library{
		Name: Semaphore, Module: "golang.org/x/sync", Local: true, Fair: true, Settings: "NewWeighted(1), one per key, found in a sync.Map",
		Open: func(string) (Client, error) { return &semaphores{}, nil },
	}
}

type semaphores struct{ keys sync.Map } // string → *semaphore.Weighted

func (c *semaphores) Handle(key string) Handle {
	s, ok := c.keys.Load(key)
	if !ok {
		s, _ = c.keys.LoadOrStore(key, semaphore.NewWeighted(1))
	}
	return semaphoreHandle{s.(*semaphore.Weighted)}
}

func (*semaphores) Close() error { return nil }

type semaphoreHandle struct{ s *semaphore.Weighted }

func (h semaphoreHandle) Lock(ctx context.Context) error { return h.s.Acquire(ctx, 1) }

func (h semaphoreHandle) Unlock() error { h.s.Release(1); return nil }

// nothing does not lock: what one goroutine measures with it is the harness itself.
func nothing() Library {
	return Library{
		Name: Nothing, Local: true, Settings: "does not lock: the price of the harness, which is in every other figure too",
		Open: func(string) (Client, error) { return none{}, nil },
	}
}

type none struct{}

func (none) Handle(string) Handle { return none{} }

func (none) Lock(context.Context) error { return nil }

func (none) Unlock() error { return nil }

func (none) Close() error { return nil }
