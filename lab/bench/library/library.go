// Package library has one adapter for each measured way to lock, so that all of them do the same work.
//
//	Library ── Open(addr) ──► Client ── Handle(key) ──► Handle ── Lock · Unlock
//	one configuration         one process' connection   one goroutine's way to one lock
//
// Each peer is in the best configuration that was found, which may differ by the kind of work (Kind);
// Library.Settings describes it and is printed with every result.
//
// An adapter adds no goroutine, no clock reading and no waiting of its own to a Lock and an Unlock, unless its library
// cannot wait; then Settings says how the adapter waits. Lock ends when its context does, except for libraries whose
// Lock takes none: Anteroom's Lock and sync.Mutex. After Close nothing of the client runs any more.
package library

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Library is one way to lock, in one configuration.
type Library struct {
	// Name is short and unique in a table of results.
	Name string
	// Module is the path of the module whose version the results show; "" for Go itself.
	Module string
	// Settings is the configuration in words.
	Settings string
	// Local: without Redis and for one process only.
	Local bool
	// Sends names the Redis commands, in lower case, that the library sends itself and that its scripts do not call:
	// Redis counts both the same way, and only sent ones are round trips. TestSends compares it with the output of
	// MONITOR.
	Sends []string
	// Open connects to the redis-server at addr, which a Local one ignores.
	Open func(addr string) (Client, error)
}

// Client is one process' connection to the locks.
type Client interface {
	// Handle returns the caller's access to the lock of that key.
	Handle(key string) Handle
	// Close ends everything that the client started.
	Close() error
}

// Handle is one goroutine's access to one lock. It is not for concurrent use, so a library that returns a value per
// acquisition can keep it here without an allocation by the adapter.
type Handle interface {
	Lock(ctx context.Context) error
	Unlock() error
}

// Sharer is a Handle of a lock that readers have together.
type Sharer interface {
	Handle
	RLock(ctx context.Context) error
	RUnlock() error
}

// Watched is a Handle whose owner is notified of a loss.
type Watched interface {
	Handle
	// Held returns the key in Redis, and a context that ends when the lock is lost.
	Held() (key string, ctx context.Context)
}

// Version returns the version of the library in this program.
func (l Library) Version() string {
	if l.Module == "" {
		return runtime.Version()
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		switch {
		case m.Path == l.Module && m.Replace != nil:
			return "this tree"
		case m.Path == l.Module:
			return m.Version
		}
	}
	return "unknown"
}

// Kind is the kind of work for which a configuration is best.
type Kind uint8

const (
	// Alone: two goroutines hardly ever want the same key.
	Alone Kind = iota
	// Short: many want one key, and a turn comes after a few milliseconds.
	Short
	// Long: many want one key, and a turn comes after a tenth of a second or more.
	Long
)

// Names of the libraries, as in results.json.
const (
	Anteroom         = "anteroom"
	AnteroomDefaults = "anteroom-default-client"
	AnteroomLinger   = "anteroom-linger"
	AnteroomFair     = "anteroom-fair"
	AnteroomFull     = "anteroom-full"
	AnteroomFullFair = "anteroom-full-fair"
	// AnteroomUntracked is AnteroomFull where Redis refuses to say when a key changes.
	AnteroomUntracked = "anteroom-full-untracked"
	Redsync           = "redsync"
	Redislock         = "redislock"
	Rueidislock       = "rueidislock"
	Mutex             = "sync.Mutex"
	Semaphore         = "x/sync/semaphore"
	Nothing           = "nothing"

	// Shared locks.
	AnteroomRWMutex   = "anteroom-rwmutex"
	AnteroomSemaphore = "anteroom-semaphore"
	RedissonScripts   = "redisson-rwlock-scripts"
	RedissonPermits   = "redisson-permit-scripts"
	RWMutex           = "sync.RWMutex"
)

// Permits is the capacity of all semaphores.
const Permits = 8

// Peers are the names of the other packages for locks in Redis.
func Peers() []string { return []string{Redsync, Redislock, Rueidislock} }

// All are the names of all libraries, in the order of the tables.
func All() []string {
	return []string{
		Anteroom, AnteroomDefaults, AnteroomLinger, AnteroomFair, AnteroomFull, AnteroomFullFair,
		Redsync, Redislock, Rueidislock, Mutex, Semaphore, Nothing,
	}
}

// For returns the library of that name in its best configuration for that kind of work.
func For(name string, kind Kind) (Library, error) {
	switch name {
	case Anteroom:
		return byLock(name, mindful, false), nil
	case AnteroomDefaults:
		return byLock(name, defaults, false), nil
	case AnteroomLinger:
		return byLingering(name), nil
	case AnteroomFair:
		return byLock(name, mindful, true), nil
	case AnteroomFull:
		return byAcquire(name, false), nil
	case AnteroomUntracked:
		return byAcquireUntracked(name), nil
	case AnteroomFullFair:
		return byAcquire(name, true), nil
	case Redsync:
		return redsyncFor(kind), nil
	case Redislock:
		return redislockFor(kind), nil
	case Rueidislock:
		return rueidislockFor(kind), nil
	case AnteroomRWMutex, AnteroomSemaphore:
		return byShared(name), nil
	case RedissonScripts, RedissonPermits:
		return redissonFor(name), nil
	case Mutex, RWMutex, Semaphore, Nothing:
		return local(name), nil
	}
	return Library{}, fmt.Errorf("no library is called %q; there are %q", name, All())
}
