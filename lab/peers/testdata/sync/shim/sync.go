// Package sync is Go's sync with Anteroom's Mutex in place of its own.
package sync

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	anteroom "github.com/anteroom/anteroom/sync"
)

var manager = sync.OnceValue(func() *anteroom.Manager {
	m, err := anteroom.Open(context.Background(), "redis://127.0.0.1:6379", anteroom.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	return m
})

type (
	Mutex     struct{ _ byte } // it has an address of its own
	RWMutex   = sync.RWMutex
	WaitGroup = sync.WaitGroup
	Cond      = sync.Cond
)

var NewCond = sync.NewCond

// lock is the lock that is named after an address.
func lock(address any) *anteroom.Mutex { return manager().Mutex(fmt.Sprintf("%p", address)) }

func (m *Mutex) Lock()         { lock(m).Lock() }
func (m *Mutex) TryLock() bool { return lock(m).TryLock() }
func (m *Mutex) Unlock()       { lock(m).Unlock() }

// A semaphore of one.
func Runtime_Semacquire(s *uint32)                { lock(s).Lock() }
func Runtime_Semrelease(s *uint32, _ bool, _ int) { lock(s).Unlock() }
