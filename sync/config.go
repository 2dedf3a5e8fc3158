package anteroom

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/sync/observe"
)

// Dialect is how locks are written in Redis: all programs that share one have the same. docs/java.md says which one
// shares them with which Java program, and what is different.
type Dialect uint8

// The dialects. Those of Redisson share locks with RLock and RFencedLock; they need an empty ClientID, because their
// clients are named by UUIDs.
const (
	DialectDesignDocument    = Dialect(lettucecompat.DesignDocument)    // ours, and that of Java services with the same scripts
	DialectRedisson          = Dialect(lettucecompat.Redisson)          // of Redisson with its default settings
	DialectRedissonUnsharded = Dialect(lettucecompat.RedissonUnsharded) // of Redisson with shardedSubscriptionMode OFF, on a Cluster
)

func (d Dialect) wire() lettucecompat.Dialect { return lettucecompat.Dialect(d) }

// Config configures a Manager. The zero value is ready to use.
type Config struct {
	// ClientID names this Manager in Redis, so that HGETALL on a lock shows an operator
	// who holds it. The Manager appends a dot and 12 random hex digits, which no restart
	// repeats (see Manager.ClientID), so several Managers may have the same one. Letters,
	// digits, '.', '_' and '-', at most 115 of them. Defaults to "<host>-<pid>", with
	// a hyphen before the digits.
	ClientID string

	// Dialect is how locks are written in Redis. Defaults to DialectDesignDocument.
	Dialect Dialect

	// Logger receives one record per change of state, never one per lock operation:
	// Warn and Error for what a person may have to act on, Info for what is well again or
	// ended as agreed, Debug for what another record says already. A record about a hold
	// is written with the values of the context that it was acquired with, so that a
	// handler can add its trace. docs/observability.md §6 lists what the records say.
	// Defaults to slog.Default(); slog.New(slog.DiscardHandler) silences it.
	Logger *slog.Logger

	// LogKeys puts lock keys into log records. Keys may hold personal data, so
	// by default records carry the class and a short hash of the key.
	LogKeys bool

	// Observer has hooks for acquisitions, renewals, losses and checks; the
	// metrics package has one for Prometheus. Defaults to none.
	Observer *observe.Observer

	// OnEvent is called for every Event, one at a time, by a goroutine that holds
	// no lock and that no lock waits for. A slow callback delays later events; up
	// to 1024 wait, further ones are dropped and counted. Defaults to none.
	OnEvent func(observe.Event)

	// Attach is called once with the new Manager, before NewManager or Open returns it, for
	// what has to know it: a metrics.Collector, a debug page. Defaults to none.
	Attach func(*Manager)

	// Tracer has hooks for where acquiring and releasing begin and end, for spans; the
	// metrics/otel module has one for OpenTelemetry. Defaults to none.
	Tracer *observe.Tracer

	// Defaults configures the locks that Manager.Mutex, RWMutex and Semaphore make, and those of
	// Manager.NewMutex, NewRWMutex and NewSemaphore where their LockConfig is zero. A default that
	// is not for a kind of lock is ignored or refused there: see LockConfig. Its Key must be empty.
	Defaults LockConfig

	// CommandTimeout bounds each command to Redis: a command without an answer is
	// abandoned then, even if the client's own timeouts are longer, and a caller of
	// TryLock, TryAcquire or Unlock waits no longer than about this, a try that comes while
	// the release before it has no answer, and Unlock, RUnlock and Weighted.Release of an
	// RWMutex or a Semaphore, twice as long. From 1 ms to 1 minute. Defaults to min(LeaseTime/6, 1 s) of the lock's LeaseTime.
	CommandTimeout time.Duration

	// MaxInFlight bounds the commands that acquire and release, under way together
	// to one Redis node, where the client sends them: a ClusterClient with hooks, of its
	// own or of its nodes, or a client that is wrapped. All others travel together on
	// connections of the Manager, two at most to a node, and are not bounded. From 1 to
	// 1024. Defaults to 16.
	MaxInFlight int

	// RenewalInFlight bounds the batches of renewals under way together to one
	// Redis node, for each CommandTimeout in use; a batch holds up to 256 leases.
	// From 1 to 1024. Defaults to 4.
	RenewalInFlight int

	// RecordCallSites records where each hold was acquired, for Snapshot, events
	// and the report of abandoned holds. It costs about a microsecond per
	// acquisition. Defaults to false.
	RecordCallSites bool

	// LongWait is how long a caller may wait for a lock before that is reported, as
	// EventLongWait, once. From 1 second to 24 hours. A goroutine that waits, directly or
	// through others, for what it holds itself is searched for at the same time: see
	// EventDeadlock, and docs/operations.md for what both cost. Negative: neither is searched
	// for, of any lock. LockConfig.LongWait is for one. Defaults to 30 seconds, the default
	// LeaseTime: the lock of a holder that crashed is free by then, so most longer waits have another cause.
	LongWait time.Duration
}

// normal checks a Manager's configuration and fills in its defaults.
func (c Config) normal() (Config, error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.LongWait = cmp.Or(c.LongWait, defaultLongWait)
	switch {
	case !lettucecompat.ValidClientName(c.ClientID):
		return c, configError("ClientID", "is %q; use at most %d letters, digits, '.', '_' and '-'", c.ClientID, lettucecompat.MaxClientName)
	case !c.Dialect.wire().Valid():
		return c, configError("Dialect", "is %d; use one of the constants of type Dialect", c.Dialect)
	case c.Dialect != DialectDesignDocument && c.ClientID != "":
		return c, configError("ClientID", "is %q; leave it empty, in Redisson's dialect a UUID names a client", c.ClientID)
	case c.Defaults.Key != "":
		return c, configError("Defaults.Key", "is %q; leave it empty, Manager.Mutex is given the key", c.Defaults.Key)
	}
	if err := cmp.Or(
		within("CommandTimeout", c.CommandTimeout, time.Millisecond, time.Minute, "", 0),
		validLongWait(c.LongWait),
		within("MaxInFlight", c.MaxInFlight, 1, maxInFlight, "", 0),
		within("RenewalInFlight", c.RenewalInFlight, 1, maxInFlight, "", 0),
	); err != nil {
		return c, err
	}
	if _, err := c.Defaults.normalSettings(); err != nil {
		return c, fmt.Errorf("%w: Defaults.%s", ErrConfig, strings.TrimPrefix(err.Error(), ErrConfig.Error()+": "))
	}
	return c, nil
}

// commandTimeout is the time limit of a command about a lock with this lease.
func (c Config) commandTimeout(lease time.Duration) time.Duration {
	if c.CommandTimeout > 0 {
		return c.CommandTimeout
	}
	return min(lease/6, time.Second)
}
