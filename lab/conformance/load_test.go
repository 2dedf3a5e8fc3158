package conformance_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

const (
	// watch and commandTimeout are W and C of docs/guarantees.md in these tests.
	watch, commandTimeout = time.Second, time.Second
	// loadLease is the lease of the locks that the load works with, L of docs/guarantees.md.
	loadLease = 5 * time.Second
	// stuck bounds an acquire in the load. A failover takes some seconds; nothing may hang for longer.
	stuck = 90 * time.Second
	// oldMaster is longer than Sentinel lets a replaced master go on.
	oldMaster = 20 * time.Second
	// pace is how long the load works under a lock.
	pace = 2 * time.Millisecond
)

// party is a Manager like that of a separate process, and its events.
type party struct {
	*anteroom.Manager
	mu     sync.Mutex
	events []observe.Event
}

func newParty(t *testing.T, rdb anteroom.Redis) *party {
	t.Helper()
	p := &party{}
	m, err := anteroom.NewManager(rdb, anteroom.Config{
		CommandTimeout: commandTimeout, Logger: slog.New(slog.DiscardHandler),
		Defaults: anteroom.LockConfig{WatchdogPeriod: watch}, // of the delivery probe
		OnEvent: func(e observe.Event) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.events = append(p.events, e)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Manager = m
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = m.Close(ctx)
	})
	return p
}

// lost returns the loss events.
func (p *party) lost() (list []observe.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.Kind == observe.EventLost {
			list = append(list, e)
		}
	}
	return list
}

// lock returns a lock of p with the watch of these tests.
func (p *party) lock(t *testing.T, cfg anteroom.LockConfig) *anteroom.Mutex {
	t.Helper()
	if cfg.LeaseTime == 0 {
		cfg.LeaseTime = loadLease
	}
	cfg.WatchdogPeriod = watch
	mu, err := p.NewMutex(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return mu
}

// load is goroutines that count in a register, each under a lock with a token.
type load struct {
	t        *testing.T
	fenced   bool
	reg      *register
	finish   func() // stops it and waits for it; may be called twice
	wg       sync.WaitGroup
	acquired atomic.Int64
	lost     atomic.Int64 // holds whose owner was notified of the loss
	unknown  atomic.Int64 // releases whose answer was lost
	rightful atomic.Int64 // holds that were refused although the other lost its lock
}

// startLoad starts that many goroutines of each party on keys. Without fencing the register cannot check them.
func startLoad(t *testing.T, parties []*party, keys []string, goroutines int, fenced bool) *load {
	t.Helper()
	l := &load{t: t, fenced: fenced, reg: newRegister()}
	stop := make(chan struct{})
	l.finish = sync.OnceFunc(func() { close(stop); l.wg.Wait() })
	t.Cleanup(l.finish) // before the Managers are closed
	for _, p := range parties {
		var locks []*anteroom.Mutex
		for _, key := range keys {
			locks = append(locks, p.lock(t, anteroom.LockConfig{Key: key, Fencing: fenced}))
		}
		for range goroutines {
			l.wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						l.visit(p, locks[rand.IntN(len(locks))])
					}
				}
			})
		}
	}
	return l
}

// visit counts once. If the register refuses it, its holder must be notified of the loss.
func (l *load) visit(p *party, mu *anteroom.Mutex) {
	ctx, cancel := context.WithTimeout(context.Background(), stuck)
	defer cancel()
	h, err := mu.Acquire(ctx)
	if err != nil {
		l.t.Errorf("%s could not be acquired within %v: %v", mu.Key(), stuck, err)
		return
	}
	l.acquired.Add(1)
	token, fenced := h.Token()
	if fenced != l.fenced {
		l.t.Errorf("%s has a token: %v; fenced: %v", mu.Key(), fenced, l.fenced)
	}
	value, ok := l.reg.read(mu.Key(), token)
	if ok {
		timer := time.NewTimer(pace)
		<-timer.C
		ok = l.reg.write(mu.Key(), token, value+1)
	}
	l.reg.leave(mu.Key())
	if !ok {
		l.mustBeTold(p, h)
	}
	switch err := h.Release(ctx); {
	case errors.Is(err, anteroom.ErrLost):
		l.lost.Add(1)
	case errors.Is(err, anteroom.ErrUnknown), errors.Is(err, anteroom.ErrUnavailable):
		l.unknown.Add(1)
	case err != nil:
		l.t.Errorf("release: %v", err)
	}
}

// mustBeTold: a holder with a newer token has been at work, so one of the two has lost its lock. A master that is
// replaced while healthy goes on serving clients that have not noticed, for some seconds. So h's holder is notified
// within the bound after the server that its Manager uses was last seen to have the lock; and if that server has it
// for as long as no old master can go on, the other has lost its lock: of the grants of two masters, the newer by
// their clocks may be the invalid one.
func (l *load) mustBeTold(p *party, h *anteroom.Hold) {
	const bound = watch + 2*commandTimeout + time.Second
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	begin := time.Now()
	for seen := begin; time.Since(seen) < bound; {
		select {
		case <-h.Context().Done():
			return
		case <-tick.C:
		}
		info, err := p.Inspect(context.Background(), h.Key())
		if err == nil && len(info.Holders) == 1 && info.Holders[0].Field == h.Holder() {
			if seen = time.Now(); seen.Sub(begin) > oldMaster {
				l.rightful.Add(1)
				return
			}
		}
	}
	l.t.Errorf("the register has refused token %d of %s, %v ago, and its holder is not told", tokenOf(h), h.Key(), time.Since(begin))
}

// moves waits until the load has acquired n more locks.
func (l *load) moves(n int64) {
	l.t.Helper()
	want := l.acquired.Load() + n
	eventually(l.t, stuck, "the load goes on", func() bool { return l.acquired.Load() >= want })
}

// end stops the load and judges it. exclusive: nothing that happened can have lost a lock, so no two may have been
// inside at once, fenced or not.
func (l *load) end(exclusive bool) {
	l.t.Helper()
	l.finish()
	accepted, refused, overlaps, older, lost := l.reg.account()
	if n := l.rightful.Load(); n != 0 {
		l.t.Logf("%d refused though Redis has their lock: two masters granted at once", n)
	}
	l.t.Logf("%d acquired, %d writes accepted, %d visits refused, %d overlaps, %d told of a loss, %d releases without an answer",
		l.acquired.Load(), accepted, refused, overlaps, l.lost.Load(), l.unknown.Load())
	if older != 0 || lost != 0 || accepted == 0 {
		l.t.Errorf("the register accepted %d writes, %d with an older token, and lost %d", accepted, older, lost)
	}
	if exclusive && (overlaps != 0 || refused != 0 || l.lost.Load() != 0) {
		l.t.Errorf("%d overlaps, %d refused, %d told of a loss, where no lock can be lost", overlaps, refused, l.lost.Load())
	}
}

// eventually waits until f is true.
func eventually(t *testing.T, within time.Duration, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
		<-tick.C
	}
}
