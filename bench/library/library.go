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
	// Fair: the library promises the goroutines of one process an order.
	Fair bool
	// Local: no Redis and one process only.
	Local bool
	// Sends names the Redis commands that the library sends itself and that its scripts
	// do not call, lower case: Redis counts both alike, and only the former are round
	// trips. TestSends compares it with what MONITOR shows.
	Sends []string
	// Open connects to the redis-server at addr, which a Local one ignores.
	Open func(addr string) (Client, error)
}

// Client is one process' connection to the locks.
type Client interface {
	// Handle returns the caller's way to the lock of that key.
	Handle(key string) Handle
	// Close ends everything that the client started.
	Close() error
}

// Handle is one goroutine's way to one lock. It is not for concurrent use, so a library
// that returns a value per acquisition can keep it here without an allocation of the
// adapter's.
type Handle interface {
	Lock(ctx context.Context) error
	Unlock() error
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
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path != l.Module {
			continue
		}
		if m.Replace != nil {
			return "this tree"
		}
		return m.Version
	}
	return "unknown"
}

// Kind is the kind of work that a configuration is best for.
type Kind uint8

const (
	// Alone: hardly ever is a key wanted by two.
	Alone Kind = iota
	// Short: many want one key, and a turn comes after a few milliseconds.
	Short
	// Long: many want one key, and a turn comes after a tenth of a second or more.
	Long
)

// Names of the libraries, as in results.
const (
	Anteroom         = "anteroom"
	AnteroomDefaults = "anteroom-default-client"
	AnteroomFair     = "anteroom-fair"
	AnteroomFull     = "anteroom-full"
	AnteroomFullFair = "anteroom-full-fair"
	Redsync          = "redsync"
	Redislock        = "redislock"
	Rueidislock      = "rueidislock"
	Evalsha          = "evalsha"
	Mutex            = "sync.Mutex"
	Semaphore        = "x/sync/semaphore"
	Nothing          = "nothing"
)

// Peers are the names of the other packages for locks in Redis.
func Peers() []string { return []string{Redsync, Redislock, Rueidislock} }

// All are the names of everything that locks, in the order of the tables.
func All() []string {
	return []string{
		Anteroom, AnteroomDefaults, AnteroomFair, AnteroomFull, AnteroomFullFair,
		Redsync, Redislock, Rueidislock, Evalsha, Mutex, Semaphore,
	}
}

// For returns the library of that name as it is best for that kind of work.
func For(name string, kind Kind) (Library, error) {
	if b, ok := BudgetOf(name); ok {
		return budgeted(b), nil
	}
	make, ok := table[name]
	if !ok {
		return Library{}, fmt.Errorf("no library is called %q; there are %q", name, All())
	}
	return make(kind), nil
}

// table makes each library for a kind of work.
var table = map[string]func(Kind) Library{
	Anteroom:         func(Kind) Library { return anteroomByLock(false) },
	AnteroomDefaults: func(Kind) Library { return anteroomOnDefaults() },
	AnteroomFair:     func(Kind) Library { return anteroomByLock(true) },
	AnteroomFull:     func(Kind) Library { return anteroomByAcquire(false) },
	AnteroomFullFair: func(Kind) Library { return anteroomByAcquire(true) },
	Redsync:          redsyncFor,
	Redislock:        redislockFor,
	Rueidislock:      rueidislockFor,
	Evalsha:          func(Kind) Library { return evalsha() },
	Mutex:            func(Kind) Library { return mutex() },
	Semaphore:        func(Kind) Library { return weighted() },
	Nothing:          func(Kind) Library { return nothing() },
}
