// Report is what people and programs get to know: by the hooks of an Observer and of a Tracer, by the log, and by
// OnEvent. The core and the services call it with values of their own and with no mutex locked, and know none of the
// four.
package report

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/internal/goroutines"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/observe"
	"github.com/anteroom/anteroom/watchdog"
)

// Config is what Reports are made of.
type Config struct {
	ClientID       string
	Logger         *slog.Logger
	LogKeys        bool
	Observer       *observe.Observer // nil: nobody observes
	Tracer         *observe.Tracer   // nil: nobody traces
	OnEvent        func(observe.Event)
	CommandTimeout time.Duration
	DefaultClass   string // of what concerns no single lock

	Closing  func() bool                                         // whether the Manager is closing, when much fails on purpose
	CallSite func() string                                       // of the caller of the library; "" unless recorded
	Values   func(of *lock.Owner) context.Context                // the context with whose values it was acquired; of may be nil
	Words    func(err error, keys bool, hidden ...string) string // the text of err without hidden names; its keys are named where keys is set
}

// Reports are what one Manager reports.
type Reports struct {
	cfg        Config
	to         observe.Observer // with all hooks
	tracer     observe.Tracer
	troubles   troubles
	capacities capacities
	batches    sync.WaitGroup // reports of renewals and of ended troubles; none begins once both are stopped

	// Of the Manager, from Start on.
	wire   *lettucecompat.Client
	locks  *lock.Locks
	leases *renewal.Manager
	dog    *watchdog.Watchdog

	queue   chan queued
	quit    chan struct{}
	end     sync.Once
	done    sync.WaitGroup
	dropped atomic.Int64 // since the log said so last

	alerts map[alert]bool // those that the log shows; the watchdog's loop's own

	// Only the check for long waits that is under way uses these.
	Scan                func(now time.Time, asked []int64) goroutines.Scan
	forWaits, forCycles time.Time // when goroutines were last inspected
}

// queueLen bounds the events that wait for OnEvent and the log.
const queueLen = 1024

// New returns Reports that deliver nothing yet. Until Attach only what needs no more than cfg may be called.
func New(cfg Config) *Reports {
	p := &Reports{
		cfg: cfg, to: allHooks(cfg.Observer), Scan: goroutines.Inspect,
		queue: make(chan queued, queueLen), quit: make(chan struct{}), alerts: map[alert]bool{},
		capacities: capacities{seen: map[difference]*differs{}},
	}
	if cfg.Tracer != nil {
		p.tracer = *cfg.Tracer
	}
	p.troubles = troubles{p: p, all: map[subject]*trouble{}}
	return p
}

// Start begins to deliver events.
func (p *Reports) Start() { p.done.Go(p.run) }

// Attach gives p what it may ask. It is called before any of them works.
func (p *Reports) Attach(wire *lettucecompat.Client, locks *lock.Locks, dog *watchdog.Watchdog) {
	p.wire, p.locks, p.leases, p.dog = wire, locks, locks.Leases(), dog
}

// Calm ends what reports by itself: no trouble ends any more. Settle waits for what is being reported.
func (p *Reports) Calm() {
	p.troubles.stop()
	p.capacities.stop()
}

// Settle waits until nothing that began before is being reported.
func (p *Reports) Settle() { p.batches.Wait() }

// Stop delivers what is queued and ends the goroutine. Later events are dropped.
func (p *Reports) Stop() {
	p.end.Do(func() { close(p.quit) })
	p.done.Wait()
}

// Observed reports whether anybody observes each operation. If not, nothing below need be called about one.
func (p *Reports) Observed() bool { return p.cfg.Observer != nil || p.cfg.Tracer != nil }

// allHooks returns o with a hook that does nothing in place of each that is nil.
func allHooks(o *observe.Observer) observe.Observer {
	var all observe.Observer
	if o != nil {
		all = *o
	}
	orNothing(&all.Acquired, func(string, observe.Outcome, time.Duration) {})
	orNothing(&all.Called, func(string, string) {})
	orNothing(&all.Released, func(string, observe.Outcome, time.Duration) {})
	orNothing(&all.Renewed, func(string, observe.Outcome, time.Duration) {})
	orNothing(&all.Lost, func(string, observe.LossReason) {})
	orNothing(&all.Command, func(string, string, time.Duration) {})
	orNothing(&all.Checked, func(string, string) {})
	orNothing(&all.Recovered, func(string, string, string) {})
	orNothing(&all.Alert, func(string, string, bool) {})
	orNothing(&all.Subscription, func(bool) {})
	orNothing(&all.EventRaised, func(observe.EventKind, bool) {})
	return all
}

func orNothing[F any](hook *F, nothing F) {
	if reflect.ValueOf(*hook).IsNil() {
		*hook = nothing
	}
}
