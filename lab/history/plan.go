package history

import (
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// Plan is the configuration of a worker process.
type Plan struct {
	Proc       uint32   // the number of this life of this process; never 0, never used again
	Seed       uint64   // of everything that the worker decides
	Namespace  string   // of the network in which it runs; "": that of its parent
	Addrs      []string // of the redis-server, of the Sentinels, or of nodes of a Cluster
	Master     string   // by which the Sentinels know the master; "": there are none
	Dials      int      // how often it tries to make a connection at once; 0: go-redis' default
	User       string   // and its password; "": none
	Password   string
	Log        string // where the worker records
	Register   string // the socket of the register
	Locks      []anteroom.LockConfig
	Units      []int64 // by lock: AllUnits makes it an RWMutex, less a Semaphore of so many; 0, or none: a Mutex
	Keys       []int   // which of the Locks it uses; nil: all
	Goroutines int
	Load       Load
	// Apart plants a fault for tests: this worker's locks have keys of their own, so they exclude nobody. Its history
	// says that they are the same.
	Apart bool
}

// Load is the work of a worker's goroutines.
type Load string

// The loads.
const (
	// LoadMixed: every way of acquiring, in random order, on random keys.
	LoadMixed Load = "mixed"
	// LoadKeep: each goroutine has a key of its own and keeps the lock until it is lost, or until the end.
	LoadKeep Load = "keep"
)

// FaultKind is a fault that a worker injects into itself.
type FaultKind string

// The faults of a worker.
const (
	ReplyLost    FaultKind = "reply lost"     // replies are cut; the commands have been carried out
	ReplyLate    FaultKind = "reply late"     // replies are held back
	Reset        FaultKind = "reset"          // connections are reset
	HalfOpen     FaultKind = "half-open"      // connections swallow everything for good; new ones do so soon
	BlackHole    FaultKind = "black hole"     // nothing arrives on either side until it is over
	Latency      FaultKind = "latency"        // a round trip takes 200 ms, more or less
	Starved      FaultKind = "starved CPU"    // goroutines that never wait take every processor
	StopTheWorld FaultKind = "stop the world" // the runtime stops every goroutine, as for a long garbage collection
)

// message is what a worker and its parent send each other. The first one says that the worker works; then each order
// is answered with its number.
type message struct {
	ID    uint64        `json:"id,omitempty"`
	Fault FaultKind     `json:"fault,omitempty"`
	For   time.Duration `json:"for,omitempty"`
	// Stop orders the end; callers that do not return within For are stuck.
	Stop   bool    `json:"stop,omitempty"`
	Error  string  `json:"error,omitempty"`
	Report *Report `json:"report,omitempty"`
}

// Report is a worker's final report.
type Report struct {
	Stuck    int      // callers that did not return in time
	Leaks    []string // what remained after Close
	Problems []string // what must not happen: an error that no fault explains, a wrong inner hold
	Through  time.Duration
}

// NewLocks returns what a judge must know about locks, with the units of the first ones: see Plan.
func NewLocks(configs []anteroom.LockConfig, units ...int64) []Lock {
	locks := make([]Lock, 0, len(configs))
	for _, c := range configs {
		locks = append(locks, Lock{
			Key: c.Key, Lease: c.LeaseTime, Margin: margin(c), Period: c.WatchdogPeriod, Command: min(c.LeaseTime/6, time.Second),
			Fenced: c.Fencing,
		})
	}
	for i, n := range units {
		locks[i].Units = n
	}
	return locks
}

// margin is the default of LockConfig.Margin.
func margin(c anteroom.LockConfig) time.Duration {
	if c.Margin > 0 {
		return c.Margin
	}
	return min(max(c.LeaseTime/20, 100*time.Millisecond), c.LeaseTime/10)
}
