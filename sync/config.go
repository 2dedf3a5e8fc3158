package anteroom

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// Dialect names how locks look in Redis. Programs that share a lock must speak
// the same dialect.
type Dialect uint8

// DesignDocument is the dialect of docs/protocol.md: a hash at the lock's own
// key, channel "lock:release:<key>", JSON messages.
const DesignDocument Dialect = 0

// Config configures a Manager. The zero value is ready to use.
type Config struct {
	// ClientID names this Manager in Redis, so that HGETALL on a lock tells an
	// operator who holds it. It must be unique among all Managers that share a
	// Redis: letters, digits, '.', '_' and '-', at most 128 of them. Defaults to "<host>-<pid>-<12 random hex digits>".
	ClientID string

	// Logger receives one record per change of state: Warn and Error only, never
	// one per lock operation. Defaults to slog.Default(); slog.DiscardHandler
	// silences it.
	Logger *slog.Logger

	// LogKeys puts lock keys into log records. Keys may hold personal data, so
	// by default records carry the class and a short hash of the key.
	LogKeys bool

	// Observer is told about acquisitions, renewals, losses and checks; the
	// metrics package has one for Prometheus. Defaults to none.
	Observer Observer

	// OnEvent is called for every Event, one at a time, by a goroutine that holds
	// no lock and that no lock waits for. A slow callback delays later events; up
	// to 1024 wait, further ones are dropped and counted. Defaults to none.
	OnEvent func(Event)

	// Dialect defaults to DesignDocument, the only one there is.
	Dialect Dialect

	// Defaults configures the locks that Manager.Mutex makes. Its Key must be
	// empty. Manager.NewMutex does not use it.
	Defaults LockConfig

	// CommandTimeout bounds each command to Redis: a command without an answer is
	// abandoned then, whatever the client's own timeouts say, and a caller of
	// TryLock, TryAcquire or Unlock waits no longer than about this. At most
	// 1 minute. Defaults to min(LeaseTime/6, 1 s) of the lock in question.
	CommandTimeout time.Duration

	// MaxInFlight bounds the commands that acquire and release, under way at once
	// to one Redis node; commands beyond it share round trips. Defaults to 16.
	MaxInFlight int

	// RenewalInFlight bounds the batches of renewals under way at once to one
	// Redis node; a batch holds up to 256 leases. Defaults to 4.
	RenewalInFlight int

	// RecordCallSites records where each hold was acquired, for Snapshot, events
	// and the report of abandoned holds. It costs about a microsecond per
	// acquisition. Defaults to false.
	RecordCallSites bool

	// AllowRing accepts a go-redis Ring. A Ring moves keys between shards when a
	// shard comes or goes, within a lease, so that two processes may hold one
	// lock. Defaults to false: NewManager refuses a Ring.
	AllowRing bool
}

// Reentrancy says who may enter a lock again that is already held.
type Reentrancy uint8

const (
	// ByGoroutine lets the goroutine that holds the lock by Lock or TryLock lock
	// it again, up to 255 times; each Lock needs its Unlock, by that goroutine.
	// Acquire, TryAcquire and Do enter again only with a context that carries the
	// live Hold (Hold.Context, or the context that Do passes on).
	ByGoroutine Reentrancy = iota

	// NotReentrant is sync.Mutex's rule: locking twice waits, and any goroutine
	// may unlock.
	NotReentrant
)

// Recovery says what the watchdog does about a hold that it finds unhealthy.
// docs/operations.md compares the strategies.
type Recovery uint8

const (
	// RecoverDefault acts so that exclusion is never given up: it reconnects,
	// restarts a stalled renewal, reports a lost lock to its holder, and stops
	// renewing where the holder is gone or above MaxHold, so that the lease ends.
	RecoverDefault Recovery = iota

	// RecoverNotify only reports.
	RecoverNotify

	// RecoverRelease also cancels the hold, and deletes the lock where its owner
	// provably cannot run any more (its goroutine has ended).
	RecoverRelease

	// RecoverReacquire also takes a lock back that vanished from Redis, if the
	// fencing record still names this hold as the last grantee. It needs Fencing,
	// and that every client of the key uses Fencing.
	RecoverReacquire
)

// LockConfig configures one lock. The zero value of each field but Key is its
// default. While a key is live in a Manager its configuration is fixed: using it
// with another one fails with ErrConfig.
type LockConfig struct {
	// Key is the lock's name and its key in Redis: 1 to 65536 bytes of any kind.
	Key string

	// Name is the lock's class in metrics, logs and events, for example "orders".
	// Use few of them: never the key. At most 64 bytes. Defaults to "default".
	Name string

	// LeaseTime is how long Redis keeps the lock without a renewal: how long
	// others wait after a holder's process died. From 100 ms to 24 hours; Redis
	// counts whole milliseconds. Defaults to 30 seconds.
	LeaseTime time.Duration

	// RenewalTime is the time between renewals, at most LeaseTime/2. A negative
	// value makes the lease fixed: it is never renewed and ends LeaseTime after
	// the grant. Defaults to LeaseTime/3.
	RenewalTime time.Duration

	// Margin is how long before the end of the lease, as Redis sees it, the
	// holder regards the lock as lost. It covers clocks that run at different
	// speeds and the time to react. From 1 ms to LeaseTime/10. Defaults to
	// max(LeaseTime/20, 100 ms), and at most LeaseTime/10.
	Margin time.Duration

	// WatchdogPeriod is how often the watchdog looks at each hold. From 10 ms to
	// 1 hour. Defaults to 5 seconds.
	WatchdogPeriod time.Duration

	// Fair admits the goroutines of this process in order of arrival. Otherwise a
	// newcomer may pass waiting ones, which is faster; a waiter that was passed
	// for more than a millisecond gets the lock next. Across processes there is
	// no order. Defaults to false.
	Fair bool

	// Reentrancy defaults to ByGoroutine.
	Reentrancy Reentrancy

	// Fencing gives every hold a token that grows from hold to hold, across
	// processes. It costs a second key in Redis, which never expires.
	// Defaults to false.
	Fencing bool

	// MaxHandoffs bounds how often the lock passes from goroutine to goroutine
	// within the process before other processes get their turn. -1: never.
	// At most 65535. Defaults to 10000.
	MaxHandoffs int

	// MaxHandoffTime bounds the same by time since the grant. From 1 ms.
	// Defaults to 50 ms.
	MaxHandoffTime time.Duration

	// MinHold keeps the key taken for at least this long after it was granted,
	// also if it is released earlier: a cron job on many machines runs once even
	// if their clocks differ by this much. With a fixed lease at most LeaseTime.
	// Defaults to 0.
	MinHold time.Duration

	// MaxHold is how long a hold may last before the watchdog acts as Recovery
	// says. At least MinHold; 0: no limit. Defaults to 0.
	MaxHold time.Duration

	// Recovery defaults to RecoverDefault.
	Recovery Recovery

	// AlertThreshold is the number of failed checks in a row after which an alert
	// is raised. From 1 to 1000. Defaults to 2.
	AlertThreshold int

	// Replicas is the number of replicas that must confirm a grant (WAIT) before
	// it counts. It lowers the risk that a failover loses the lock and does not
	// remove it. From 0 to 16. Defaults to 0.
	Replicas int

	// ReplicaTimeout is how long a grant waits for Replicas. From 1 ms to
	// LeaseTime/3. Defaults to min(LeaseTime/10, 500 ms).
	ReplicaTimeout time.Duration
}

// Limits and defaults of LockConfig, named where more than one place needs them.
const (
	maxKey              = 64 << 10
	minLease            = 100 * time.Millisecond
	maxLease            = 24 * time.Hour
	defaultLease        = 30 * time.Second
	defaultPeriod       = 5 * time.Second
	defaultHandoffs     = 10_000
	defaultHandoffTime  = 50 * time.Millisecond
	defaultThreshold    = 2
	defaultClass        = "default"
	maxCommandTimeout   = time.Minute
	smallestTimeoutUnit = time.Millisecond
)

// Validate reports the first field that is out of bounds as an error that wraps
// ErrConfig and names field and bound, or nil. Zero values stand for defaults.
func (c LockConfig) Validate() error {
	_, err := c.normal()
	return err
}

// normal returns c with its defaults filled in, or an error wrapping ErrConfig.
func (c LockConfig) normal() (LockConfig, error) {
	if c.Key == "" {
		return c, configError("Key", "is empty; give the lock a name")
	}
	if len(c.Key) > maxKey {
		return c, configError("Key", "has %d bytes; at most %d are allowed", len(c.Key), maxKey)
	}
	return c.normalSettings()
}

// normalSettings does the same for all fields but Key.
func (c LockConfig) normalSettings() (LockConfig, error) {
	if c.Name == "" {
		c.Name = defaultClass
	}
	if len(c.Name) > 64 {
		return c, configError("Name", "has %d bytes; at most 64 are allowed", len(c.Name))
	}
	if err := c.normalTimes(); err != nil {
		return c, err
	}
	if err := c.normalTurns(); err != nil {
		return c, err
	}
	if c.Reentrancy > NotReentrant {
		return c, configError("Reentrancy", "is %d; use ByGoroutine or NotReentrant", c.Reentrancy)
	}
	if c.Recovery > RecoverReacquire {
		return c, configError("Recovery", "is %d; use one of the Recover constants", c.Recovery)
	}
	if c.Recovery == RecoverReacquire && !c.Fencing {
		return c, configError("Recovery", "is RecoverReacquire, which needs Fencing")
	}
	if c.AlertThreshold == 0 {
		c.AlertThreshold = defaultThreshold
	}
	if c.AlertThreshold < 1 || c.AlertThreshold > 1000 {
		return c, configError("AlertThreshold", "is %d; it must be from 1 to 1000", c.AlertThreshold)
	}
	if c.Replicas < 0 || c.Replicas > 16 {
		return c, configError("Replicas", "is %d; it must be from 0 to 16", c.Replicas)
	}
	if c.ReplicaTimeout == 0 {
		c.ReplicaTimeout = min(c.LeaseTime/10, 500*time.Millisecond)
	}
	return c, inBounds("ReplicaTimeout", c.ReplicaTimeout, smallestTimeoutUnit, c.LeaseTime/3, "LeaseTime/3")
}

func (c *LockConfig) normalTimes() error {
	if c.LeaseTime == 0 {
		c.LeaseTime = defaultLease
	}
	if err := inBounds("LeaseTime", c.LeaseTime, minLease, maxLease, ""); err != nil {
		return err
	}
	if c.RenewalTime == 0 {
		c.RenewalTime = c.LeaseTime / 3
	}
	if c.RenewalTime > c.LeaseTime/2 {
		return configError("RenewalTime", "is %v; it must be at most LeaseTime/2, here %v, so that one renewal may fail", c.RenewalTime, c.LeaseTime/2)
	}
	if c.RenewalTime > 0 && c.RenewalTime < 10*time.Millisecond {
		return configError("RenewalTime", "is %v; it must be at least 10ms, or negative for a fixed lease", c.RenewalTime)
	}
	if c.RenewalTime < 0 {
		c.RenewalTime = -1
	}
	if c.Margin == 0 {
		c.Margin = defaultMargin(c.LeaseTime)
	}
	if err := inBounds("Margin", c.Margin, time.Millisecond, c.LeaseTime/10, "LeaseTime/10"); err != nil {
		return err
	}
	if c.WatchdogPeriod == 0 {
		c.WatchdogPeriod = defaultPeriod
	}
	return inBounds("WatchdogPeriod", c.WatchdogPeriod, 10*time.Millisecond, time.Hour, "")
}

func (c *LockConfig) normalTurns() error {
	switch {
	case c.MaxHandoffs == 0:
		c.MaxHandoffs = defaultHandoffs
	case c.MaxHandoffs < -1 || c.MaxHandoffs > 65535:
		return configError("MaxHandoffs", "is %d; it must be from 1 to 65535, or -1 for none", c.MaxHandoffs)
	}
	if c.MaxHandoffTime == 0 {
		c.MaxHandoffTime = defaultHandoffTime
	}
	if c.MaxHandoffTime < time.Millisecond {
		return configError("MaxHandoffTime", "is %v; it must be at least 1ms", c.MaxHandoffTime)
	}
	if err := inBounds("MinHold", c.MinHold, 0, maxLease, ""); err != nil {
		return err
	}
	if c.RenewalTime < 0 && c.MinHold > c.LeaseTime {
		return configError("MinHold", "is %v, longer than the fixed lease of %v", c.MinHold, c.LeaseTime)
	}
	if c.MaxHold < 0 {
		return configError("MaxHold", "is %v; it must not be negative", c.MaxHold)
	}
	if c.MaxHold > 0 && c.MaxHold < c.MinHold {
		return configError("MaxHold", "is %v, shorter than MinHold (%v)", c.MaxHold, c.MinHold)
	}
	return nil
}

// defaultMargin is the rule of LockConfig.Margin, also for a lease of one hold.
func defaultMargin(lease time.Duration) time.Duration {
	return min(max(lease/20, 100*time.Millisecond), lease/10)
}

func inBounds(field string, d, low, high time.Duration, highName string) error {
	if d >= low && d <= high {
		return nil
	}
	if highName != "" {
		return configError(field, "is %v; it must be from %v to %s, here %v", d, low, highName, high)
	}
	return configError(field, "is %v; it must be from %v to %v", d, low, high)
}

func configError(field, format string, args ...any) error {
	return fmt.Errorf("%w: %s %s", ErrConfig, field, fmt.Sprintf(format, args...))
}

// differs returns the name of the first field in which two normal
// configurations of one key differ, "" when they are equal.
func (c LockConfig) differs(o LockConfig) string {
	switch {
	case c == o:
		return ""
	case c.Name != o.Name:
		return "Name"
	case c.LeaseTime != o.LeaseTime:
		return "LeaseTime"
	case c.RenewalTime != o.RenewalTime:
		return "RenewalTime"
	case c.Margin != o.Margin:
		return "Margin"
	case c.WatchdogPeriod != o.WatchdogPeriod:
		return "WatchdogPeriod"
	case c.Fair != o.Fair:
		return "Fair"
	case c.Reentrancy != o.Reentrancy:
		return "Reentrancy"
	case c.Fencing != o.Fencing:
		return "Fencing"
	case c.MaxHandoffs != o.MaxHandoffs:
		return "MaxHandoffs"
	case c.MaxHandoffTime != o.MaxHandoffTime:
		return "MaxHandoffTime"
	case c.MinHold != o.MinHold:
		return "MinHold"
	case c.MaxHold != o.MaxHold:
		return "MaxHold"
	case c.Recovery != o.Recovery:
		return "Recovery"
	case c.AlertThreshold != o.AlertThreshold:
		return "AlertThreshold"
	case c.Replicas != o.Replicas:
		return "Replicas"
	case c.ReplicaTimeout != o.ReplicaTimeout:
		return "ReplicaTimeout"
	}
	return "Key"
}

// normal checks a Manager's configuration and fills in its defaults.
func (c Config) normal() (Config, error) {
	if c.ClientID == "" {
		c.ClientID = lettucecompat.NewClientID()
	}
	if !validClientID(c.ClientID) {
		return c, configError("ClientID", "is %q; use 1 to 128 letters, digits, '.', '_' and '-'", c.ClientID)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Observer == nil {
		c.Observer = NopObserver{}
	}
	if c.Dialect != DesignDocument {
		return c, configError("Dialect", "is %d; only DesignDocument exists", c.Dialect)
	}
	if c.CommandTimeout != 0 {
		if err := inBounds("CommandTimeout", c.CommandTimeout, smallestTimeoutUnit, maxCommandTimeout, ""); err != nil {
			return c, err
		}
	}
	if c.MaxInFlight < 0 || c.RenewalInFlight < 0 {
		return c, configError("MaxInFlight and RenewalInFlight", "are %d and %d; they must not be negative", c.MaxInFlight, c.RenewalInFlight)
	}
	if c.Defaults.Key != "" {
		return c, configError("Defaults.Key", "is %q; leave it empty, Manager.Mutex is given the key", c.Defaults.Key)
	}
	if _, err := c.Defaults.normalSettings(); err != nil {
		return c, errors.Join(configError("Defaults", "is not valid"), err)
	}
	return c, nil
}

func validClientID(id string) bool {
	return len(id) <= 128 && !strings.ContainsFunc(id, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	})
}

// commandTimeout is the time limit of a command about a lock with this lease.
func (c Config) commandTimeout(lease time.Duration) time.Duration {
	if c.CommandTimeout > 0 {
		return c.CommandTimeout
	}
	return min(lease/6, time.Second)
}
