package anteroom

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/goid"
	"github.com/anteroom/anteroom/internal/waits"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/internal/report"
	"github.com/anteroom/anteroom/watchdog"
)

// Manager is one client of the locks in one Redis: the counterpart of a process.
// It has one renewal queue, one watchdog and one subscription connection (Redisson's dialect on a Cluster may need some more), however
// many locks it holds. Two Managers exclude each other like two processes, also
// within one program. All methods are safe for concurrent use. Make one with Open or NewManager: the zero Manager, and a nil
// one, return ErrConfig, and their locks cannot be used.
type Manager struct {
	cfg     Config
	wire    *lettucecompat.Client
	locks   *lock.Locks
	leases  *renewal.Manager // of locks
	dog     *watchdog.Watchdog
	lookout *waits.Lookout

	goroutine func() int64
	closing   atomic.Bool
	closed    chan struct{} // closed when Close has ended
	reports   *report.Reports

	mu       sync.Mutex
	shared   map[use]*settings // guarded by mu
	defaults *settings         // of Config.Defaults
	left     []string          // what Close did not see the end of, in words; guarded by mu
	lost     int               // among them holds; guarded by mu
	closeErr error             // guarded by mu

	client      io.Closer // that Open made; nil: it is the user's
	clientUntil time.Time // when the last lease ends that Close has left; guarded by mu
}

// Redis is what a Manager needs of a go-redis client: *redis.Client (also one for
// Sentinel) and *redis.ClusterClient have it. The Manager does not close it.
type Redis interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipelined(ctx context.Context, fn func(redis.Pipeliner) error) ([]redis.Cmder, error)
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// NewManager returns a Manager that uses rdb, or an *Error that wraps ErrConfig. It is for
// a program that has a client, or needs settings that no URL has; others use Open. Call
// Close when it is not needed any more, and then close rdb.
//
// It does not ask Redis: a server that is unreachable or refuses the password shows when a lock
// is acquired, or by Ping. Settings of a ClusterClient that cost something, such as a PoolSize
// below what MaxInFlight needs, are reported once, in log records at Debug level. A client whose
// options cannot be read, because it is wrapped, is taken as it is.
func NewManager(rdb Redis, cfg Config) (*Manager, error) {
	m, err := newManager("new manager", rdb, cfg)
	if err == nil && cfg.Attach != nil {
		cfg.Attach(m)
	}
	return m, err
}

func newManager(op string, rdb Redis, cfg Config) (*Manager, error) {
	cfg, err := cfg.normal()
	if err != nil {
		return nil, newError(op, "", err)
	}
	cfg.ClientID = cfg.Dialect.wire().NewClientID(cfg.ClientID)
	m := &Manager{cfg: cfg, goroutine: goid.Reader(), closed: make(chan struct{}), shared: map[use]*settings{}}
	m.reports = report.New(report.Config{
		ClientID: cfg.ClientID, Logger: cfg.Logger, LogKeys: cfg.LogKeys, Observer: cfg.Observer, Tracer: cfg.Tracer, OnEvent: cfg.OnEvent,
		CommandTimeout: cfg.CommandTimeout, DefaultClass: builtIn.Name, Closing: m.closing.Load, CallSite: m.callSite,
		Values: reportContext, Words: wordsOf,
	})
	onCommand, onRenewed := m.reports.Figures()
	defaults, _ := cfg.Defaults.normalSettings()
	m.defaults = m.settings(defaults, ofMutex)
	timeout := m.defaults.lock.Timeout
	m.wire, err = lettucecompat.New(rdb, lettucecompat.Options{
		ClientID: cfg.ClientID, Dialect: cfg.Dialect.wire(), CommandTimeout: timeout, MaxInFlight: cfg.MaxInFlight,
		OnMessage:      func(msg lettucecompat.Message) { m.locks.Heard(msg) },
		OnMissing:      func(ctx context.Context, some []*lettucecompat.Tracked) bool { return m.locks.Missing(ctx, some) },
		OnSubscription: m.subscription, OnWarning: m.reports.Warning, OnCommand: onCommand,
	})
	if err != nil {
		return nil, newError(op, "", joined(ErrConfig, err))
	}
	if err := m.replicasFit(&defaults); err != nil {
		m.wire.Close()
		return nil, newError(op, "", err)
	}
	m.reports.Start()
	m.locks = lock.New(lock.Config{
		Wire: m.wire, ClientID: cfg.ClientID, Reporter: m.reports, Timeout: m.cfg.commandTimeout,
		Renewal: renewal.Config{
			InFlight: cfg.RenewalInFlight, OnRenewed: onRenewed, OnFailed: m.reports.RenewalFailed, OnJump: m.reports.Jumped,
		},
	})
	m.leases = m.locks.Leases()
	s := &services{m: m}
	m.dog = watchdog.New(watchdog.Config{
		Source: s, Prober: s, Actor: s,
		Period: defaults.WatchdogPeriod, CommandTimeout: timeout, AlertThreshold: defaults.AlertThreshold,
		OnVerdict: m.reports.Checked, OnAlert: m.reports.Alert, OnClear: m.reports.AlertCleared, OnRecovery: m.reports.Recovery, OnSelfLate: m.reports.Stalled,
	})
	m.reports.Attach(m.wire, m.locks, m.dog)
	m.lookout = waits.New(cfg.LongWait, m.waitedFor(), m.reports.FoundWaits)
	m.lookout.Serve(defaults.LongWait)
	m.dog.Start()
	m.lookout.Start()
	m.reports.Costs(m.defaults.cfg.Replicas > 0)
	return m, nil
}

// made returns the error of a Manager that nobody has made.
func (m *Manager) made() error {
	if m == nil || m.locks == nil {
		return configError("Manager", "was not made; use Open or NewManager")
	}
	return nil
}

// dated is what every time goes through that was kept and is shown to a person or a
// program now, but for those of a lease, which are right: its monotonic reading may have
// been counted on from one of days ago, and then the wall reading with it.
func (m *Manager) dated(t time.Time) time.Time { return m.leases.Dated(t) }

// ClientID returns the name under which this Manager's holds are in Redis: that of
// Config.ClientID with digits that no other Manager has.
func (m *Manager) ClientID() string {
	if m == nil {
		return ""
	}
	return m.cfg.ClientID
}

// moment returns t, counted as renewal.Manager.Glance does, to show it.
func (m *Manager) moment(t lock.Moment) time.Time { return m.dated(m.leases.Zero().Add(t)) }

// subscription is called by the wire when the subscription connection has come up, or has ended.
func (m *Manager) subscription(up bool, err error) {
	if up {
		m.locks.Resubscribed()
	}
	m.reports.Subscription(up, err)
}
