package faults_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// setup is the configuration of a party. It is sent to processes as JSON.
type setup struct {
	Addr    string
	User    string // of the ACL; "": the default user
	Key     string
	Timeout time.Duration // C
	Slow    float64       // see cell.slow
	Fencing bool
	Shared  bool // the lock is an RWMutex, or else a Mutex
	Lingers bool
	Idle    int // idle connections that exist when the fault strikes
	Who     string
}

// The configuration of every lock in the matrix, on an idle machine. The letters are those of docs/guarantees.md.
const (
	lease   = 2 * time.Second        // L
	renewal = 400 * time.Millisecond // R
	margin  = 200 * time.Millisecond // M
	period  = 400 * time.Millisecond // W
	timeout = 400 * time.Millisecond // C, unless a fault needs more
	backoff = 1250 * time.Millisecond
)

// The orders to a party.
const (
	doAcquire = "acquire" // waits up to For
	doRead    = "read"    // the same, beside others that read
	doTry     = "try"
	doTryHere = "try the same" // as doTry, but of the contended lock
	doRelease = "release"      // of the hold that order Hold acquired
	doHeld    = "held"         // returns Err of that hold
	doState   = "state"        // returns the number of live keys and of waiting callers
	doStarve  = "starve"       // takes the CPU from the party for For
	doFreeze  = "freeze"       // stops the world until the heap dump is read
	doClose   = "close"        // ends the Manager
	doQuit    = "quit"         // ends its client
)

// order and note are what a cell and its parties send each other.
type order struct {
	ID   int
	Do   string
	Hold int
	For  time.Duration
}

type note struct {
	ID            int
	Told          bool   // a hold was lost, not an answer to the order
	Got           string // what the caller got, in the words of the table
	Began, At     moment // when the call was made, when it returned
	Since         moment // of a loss: from when on the lock cannot be relied on
	Live, Waiting int
}

// party is one Manager and its callers. It runs in the test's process or in one of its own, with the same code.
type party struct {
	rdb   *redis.Client
	m     *anteroom.Manager
	slow  float64          // see cell.slow
	enter map[string]entry // by order
	tell  func(note)

	lock    sync.Mutex
	holds   map[int]*anteroom.Hold             // by the order that acquired them
	reasons map[string]chan observe.LossReason // by field
}

// entry is a way to acquire a lock.
type entry func(context.Context, ...anteroom.AcquireOption) (*anteroom.Hold, error)

func newParty(s setup, tell func(note), opts ...func(*redis.Options)) (*party, error) {
	o := &redis.Options{Addr: s.Addr, ReadTimeout: 3 * time.Second}
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled} // its connections race for it
	if s.User != "" {
		o.Username, o.Password = s.User, password
	}
	for _, f := range opts {
		f(o)
	}
	p := &party{rdb: redis.NewClient(o), tell: tell, slow: s.Slow, holds: map[int]*anteroom.Hold{}, reasons: map[string]chan observe.LossReason{}}
	cfg := anteroom.LockConfig{
		Key: s.Key, LeaseTime: stretch(lease, s.Slow), RenewalTime: stretch(renewal, s.Slow), Margin: stretch(margin, s.Slow), WatchdogPeriod: stretch(period, s.Slow),
		Fencing: s.Fencing, Fair: true, MaxHandoffs: 1, MaxHandoffTime: time.Minute,
	}
	defaults := cfg
	defaults.Key = ""
	if s.Lingers {
		cfg.Linger = stretch(lease, s.Slow) / 2
	}
	var err error
	p.m, err = anteroom.NewManager(p.rdb, anteroom.Config{
		ClientID: s.Who, Logger: slog.New(slog.DiscardHandler), CommandTimeout: s.Timeout, Defaults: defaults, OnEvent: p.event,
	})
	if err != nil {
		return nil, err
	}
	warm := p.m.Mutex("warm:" + s.Who).Acquire
	if s.Shared {
		warm = p.m.RWMutex("warm:" + s.Who).Acquire
		cfg.MaxHandoffTime = time.Millisecond // its default
		rw, err := p.m.NewRWMutex(cfg)
		if err != nil {
			return nil, err
		}
		p.enter = map[string]entry{doAcquire: rw.Acquire, doRead: rw.RAcquire, doTryHere: rw.TryAcquire}
	} else {
		mu, err := p.m.NewMutex(cfg)
		if err != nil {
			return nil, err
		}
		cfg.Key = sideKey
		side, err := p.m.NewMutex(cfg) // uncontended, so that only its own clean-up removes what a try leaves
		if err != nil {
			return nil, err
		}
		p.enter = map[string]entry{doAcquire: mu.Acquire, doTryHere: mu.TryAcquire, doTry: side.TryAcquire}
	}
	// Connections, scripts and the subscription exist before any fault.
	for range 2 {
		h, err := warm(context.Background())
		if err != nil {
			return nil, err
		}
		if err := h.Release(context.Background()); err != nil {
			return nil, err
		}
	}
	return p, p.connect(s.Idle)
}

// connect opens n connections that are then idle, and greeted: another one would have to be greeted before a command
// is sent on it.
func (p *party) connect(n int) error {
	var errs []error
	for range n {
		c := p.rdb.Conn()
		defer c.Close()
		errs = append(errs, c.Ping(context.Background()).Err())
	}
	return errors.Join(errs...)
}

const password = "matrix"

func (p *party) event(e observe.Event) {
	if e.Kind == observe.EventLost {
		p.reason(e.Holder) <- e.Reason
	}
}

// reason returns the channel for the reason of a field's loss; holds of one grant share it.
func (p *party) reason(field string) chan observe.LossReason {
	p.lock.Lock()
	defer p.lock.Unlock()
	c := p.reasons[field]
	if c == nil {
		c = make(chan observe.LossReason, 8)
		p.reasons[field] = c
	}
	return c
}

// obey carries out one order; the answer goes to tell.
func (p *party) obey(o order) {
	n := note{ID: o.ID, Began: now()}
	switch o.Do {
	case doAcquire, doRead, doTry, doTryHere:
		n.Got = p.acquire(o)
	case doRelease:
		n.Got, n.Since = p.release(o)
	case doHeld:
		n.Got = wording(p.hold(o.Hold).Err())
	case doState:
		for _, s := range p.m.Snapshot() {
			n.Live++
			n.Waiting += len(s.Waiters)
		}
	case doStarve:
		starve(o.For)
	case doFreeze:
		p.tell(n) // it cannot be sent any more once this is done
		debug.WriteHeapDump(dumpFD)
		return
	case doClose:
		n.Got = p.close()
	case doQuit:
		n.Got = wording(p.rdb.Close())
	}
	n.At = now()
	p.tell(n)
}

func (p *party) acquire(o order) string {
	ctx := context.Background()
	if o.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.For)
		defer cancel()
	}
	h, err := p.enter[o.Do](ctx)
	if err != nil {
		return wording(err)
	}
	p.lock.Lock()
	p.holds[o.ID] = h
	p.lock.Unlock()
	go p.watch(o.ID, h)
	return wording(nil)
}

// watch reports the loss of the hold.
func (p *party) watch(id int, h *anteroom.Hold) {
	<-h.Context().Done()
	told := now()
	e, ok := errors.AsType[*anteroom.Error](context.Cause(h.Context()))
	if !ok || e.Outcome != observe.OutcomeLost {
		return // released
	}
	p.tell(note{ID: id, Told: true, Got: "told: " + string(<-p.reason(h.Holder())), At: told, Since: at(e.Since)})
}

func (p *party) hold(id int) *anteroom.Hold {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.holds[id]
}

// release also reports, for a lost lock, since when.
func (p *party) release(o order) (string, moment) {
	ctx, cancel := context.WithTimeout(context.Background(), o.For)
	defer cancel()
	err := p.hold(o.Hold).Release(ctx)
	if e, ok := errors.AsType[*anteroom.Error](err); ok && !e.Since.IsZero() {
		return wording(err), at(e.Since)
	}
	return wording(err), 0
}

func (p *party) close() string {
	ctx, cancel := context.WithTimeout(context.Background(), stretch(lease+timeout+busy, p.slow))
	defer cancel()
	return wording(p.m.Close(ctx))
}

// starve runs that many spinning goroutines on one processor, so that every other one gets a small part of it.
func starve(d time.Duration) {
	was := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(was)
	end := time.Now().Add(d)
	var spinning sync.WaitGroup
	for range spinners {
		spinning.Go(func() {
			for n := 0; ; n++ {
				if n%1000 == 0 && time.Now().After(end) {
					return
				}
			}
		})
	}
	spinning.Wait()
}

// spinners leaves the party a fifth of one processor, in turns of 10 ms: each goroutine that is woken waits four of
// them.
const spinners = 4
