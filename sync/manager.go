package anteroom

import (
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/internal/goid"
	"github.com/anteroom/anteroom/internal/waits"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/watchdog"
)

// Manager is one client of the locks in one Redis: the counterpart of a process.
// It has one renewal queue, one watchdog and one subscription connection (Redisson's dialect on a Cluster may need some more), however
// many locks it holds. Two Managers exclude each other like two processes, also
// within one program. All methods are safe for concurrent use.
type Manager struct {
	cfg     Config
	wire    *lettucecompat.Client
	leases  *renewal.Manager
	line    *renewal.Manager // keeps the places in line: their leases are the confirmations
	dog     *watchdog.Watchdog
	lookout *waits.Lookout

	goroutine func() int64
	nextGrant atomic.Uint64
	ctx       context.Context // ends when Close begins: attempts and waits of drivers
	cancel    context.CancelFunc
	closing   atomic.Bool
	closed    chan struct{}   // closed when Close has ended
	changed   bell            // something that Close waits for
	cleaning  context.Context // ends when Close stops waiting for clean-ups
	end       context.CancelFunc
	jobs      atomic.Int64 // under way, see entry.beginJob
	reports   reports
	spare     sync.Pool // of *request; its channels must not leave a test bubble that has this Manager

	mu       sync.Mutex
	entries  map[string]*entry        // by key, guarded by mu
	shared   map[LockConfig]*settings // guarded by mu
	defaults *settings                // of Config.Defaults
	grants   map[uint64]*grant        // those that are neither released nor lost, guarded by mu
	wanted   map[uint64]wish          // whose field may stand in line, or is being cleaned up; guarded by mu
	lost     map[uint64]*grant        // lost, and still locked by a goroutine that may have ended, guarded by mu
	came     []uint64                 // listed since the watchdog asked last; guarded by mu
	went     []uint64                 // of those that it knows; guarded by mu
	left     []string                 // what Close did not see the end of, in words; guarded by mu
	givenUp  bool                     // among them holds; guarded by mu
	closeErr error                    // guarded by mu

	client      io.Closer // that Open made; nil: it is the user's
	clientUntil time.Time // when the last lease ends that Close has left; guarded by mu
}

// Redis is what a Manager needs of a go-redis client: *redis.Client (also one for
// Sentinel) and *redis.ClusterClient have it. The Manager does not close it.
type Redis = lettucecompat.Redis

// NewManager returns a Manager that uses rdb, or an *Error that wraps ErrConfig. It is for
// a program that has a client, or needs settings that no URL has; others use Open. Call
// Close when it is not needed any more, and then close rdb.
//
// It does not ask Redis: a server that is away or refuses the password shows when a lock
// is acquired, or by Ping. Settings of rdb that cost something, such as a PoolSize below
// what MaxInFlight needs, are told once, in a log record at Info level. A client whose
// options cannot be read, because it is wrapped, is taken as it is.
func NewManager(rdb Redis, cfg Config) (*Manager, error) {
	m, err := newManager("new manager", rdb, cfg)
	if err == nil && cfg.Attach != nil {
		cfg.Attach(m)
	}
	return m, err
}

func newManager(op string, rdb Redis, cfg Config) (*Manager, error) {
	fail := func(err error) (*Manager, error) {
		return nil, &Error{Op: op, Outcome: OutcomeMistake, Err: err}
	}
	cfg, err := cfg.normal()
	if err != nil {
		return fail(err)
	}
	cfg.ClientID = cfg.Dialect.NewClientID(cfg.ClientID)
	m := &Manager{
		cfg: cfg, goroutine: goid.Reader(),
		closed:  make(chan struct{}),
		entries: map[string]*entry{}, shared: map[LockConfig]*settings{}, grants: map[uint64]*grant{}, wanted: map[uint64]wish{}, lost: map[uint64]*grant{},
	}
	// A field of ours is told from one of a client that does not know the line by its number, also
	// where the clock is far behind.
	m.nextGrant.Store(max(uint64(time.Now().UnixMicro()), lettucecompat.FirstField))
	m.reports.init(m)
	onCommand, onRenewed := m.reports.figures()
	defaults, _ := cfg.Defaults.normalSettings()
	m.defaults = m.settings(defaults)
	timeout := m.defaults.timeout
	wire := lettucecompat.Options{
		ClientID: cfg.ClientID, Dialect: cfg.Dialect, CommandTimeout: timeout, MaxInFlight: cfg.MaxInFlight,
		OnForced: m.forced, OnCalled: m.called, OnLook: m.look, OnSubscription: m.subscription, OnWarning: m.reports.warning, OnCommand: onCommand,
	}
	m.wire, err = lettucecompat.New(rdb, wire)
	if err != nil {
		return fail(joined(ErrConfig, err))
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.cleaning, m.end = context.WithCancel(context.Background())
	m.reports.start()
	s := &services{m: m}
	m.leases = renewal.New(renewal.Config{
		Sender: s, InFlight: cfg.RenewalInFlight,
		OnRenewed: onRenewed, OnFailed: m.reports.renewalFailed, OnLost: m.reports.leaseLost, OnJump: m.reports.jumped,
	})
	m.line = renewal.New(renewal.Config{Sender: confirmer{m}})
	m.dog = watchdog.New(watchdog.Config{
		Source: s, Prober: s, Actor: s,
		Period: defaults.WatchdogPeriod, CommandTimeout: timeout, AlertThreshold: defaults.AlertThreshold,
		OnVerdict: m.reports.checked, OnAlert: m.reports.alert, OnClear: m.reports.alertCleared, OnRecovery: m.reports.recovery, OnSelfLate: m.reports.stalled,
	})
	m.lookout = waits.New(cfg.LongWait, m.waitedFor(), m.reports.looked)
	m.lookout.Serve(defaults.LongWait)
	m.leases.Start()
	m.line.Start()
	m.dog.Start()
	m.lookout.Start()
	m.reports.costs()
	return m, nil
}

// dated is what every time goes through that was kept and is shown to a person or a
// program now, but for those of a lease, which are right: its monotonic reading may have
// been counted on from one of days ago, and then the wall reading with it.
func (m *Manager) dated(t time.Time) time.Time { return m.leases.Dated(t) }

// ClientID returns the name under which this Manager's holds are in Redis: that of
// Config.ClientID with digits that no other Manager has.
func (m *Manager) ClientID() string { return m.cfg.ClientID }

// field returns the name in Redis of the grant n; empty for 0, which is none's number.
func (m *Manager) field(n uint64) string {
	if n == 0 {
		return ""
	}
	return lettucecompat.NewField(m.cfg.ClientID, n)
}

// list lists g, unless it was unlisted already. A forced release of which we heard before its own
// grant was answered takes effect now.
func (m *Manager) list(g *grant) {
	m.mu.Lock()
	if !g.unlisted {
		m.grants[g.n] = g
		m.came = append(m.came, g.n)
		if len(m.came) > 2*len(m.grants)+grown {
			m.came = slices.DeleteFunc(m.came, func(n uint64) bool { return m.listed(n) == nil })
		}
	}
	m.mu.Unlock()
	if g.e.forced.Load() == g.n {
		g.lease.Load().Lose(renewal.Cause{Reason: LostForced})
	}
}

// unlist takes out g, which was released or lost. Its clean-up, if it needs one, has begun:
// Close waits for both.
func (m *Manager) unlist(g *grant) {
	m.mu.Lock()
	g.unlisted = true
	delete(m.grants, g.n)
	if g.watched {
		m.went = append(m.went, g.n)
	}
	m.mu.Unlock()
	m.changed.ring()
}

func (m *Manager) grant(n uint64) *grant {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.grants[n]
}

// subscription is told by the wire that the subscription connection has come up, or has ended.
func (m *Manager) subscription(up bool, err error) {
	if up {
		m.confirmAll()
	}
	m.reports.subscription(up, err)
}

// forced is called by the wire when a field of ours was deleted by ForceRelease. It may come
// when the grant has no lease to lose: before its own answer, or while its turn is being
// extended. So the number stays noted, and list looks for it.
func (m *Manager) forced(key, field string) {
	id, n, ok := lettucecompat.ParseField(field)
	if !ok || id != m.cfg.ClientID {
		return
	}
	m.mu.Lock()
	e := m.entries[key]
	m.mu.Unlock()
	if e == nil {
		return // the key is not in use here
	}
	e.forced.Store(n)
	if g := e.cur.Load(); g != nil && g.n == n {
		g.lease.Load().Lose(renewal.Cause{Reason: LostForced})
	}
}

// live returns the live entries. Acquisitions of new keys wait meanwhile: a millisecond
// for 100,000 keys.
func (m *Manager) live() []*entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]*entry, 0, len(m.entries))
	for _, e := range m.entries {
		list = append(list, e)
	}
	return list
}
