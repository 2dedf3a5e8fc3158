package queue_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/queue"
)

// gateRedis plays the other side of an RWMutex or a Semaphore as package sync would: one goroutine states what the gate needs, and the
// answers are drawn at random: refusals, grants, calls to give way, losses.
type gateRedis struct {
	t    *testing.T
	g    *synchronizer
	all  int32
	zero time.Time
	kick chan struct{}
	n    gateTally
	lose bool
	mu   sync.Mutex // makes a loss one step for those who check whether their stay has ended
}

// gateTally counts what happened, so that the test can check that everything did.
type gateTally struct {
	grants, losses, contended, turns, shrinks, inVain, refused, joined, entered, left, again, downgraded atomic.Int64
}

func (r *gateRedis) now() time.Duration { return time.Since(r.zero) }

func (r *gateRedis) obey(o queue.Order) {
	if o == queue.Restate {
		select {
		case r.kick <- struct{}{}:
		default:
		}
	}
}

// drive states until stop is closed. Without an order it checks as rarely as a timer would.
func (r *gateRedis) drive(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-r.kick:
		case <-time.After(time.Duration(rand.IntN(400)) * time.Microsecond): // as who waits elsewhere
			if rand.IntN(2) == 0 {
				r.n.contended.Add(1)
				r.g.Contended()
			}
		}
		r.state()
	}
}

// state does what package sync does with one Demand.
func (r *gateRedis) state() {
	d := r.g.Demand()
	now := r.now()
	switch {
	case r.lose && rand.IntN(20) == 0:
		r.n.losses.Add(1)
		r.mu.Lock()
		r.g.LoseAll()
		r.mu.Unlock()
	case d.Contended && now >= d.TurnEnds:
		r.n.turns.Add(1)
		r.g.Contended()
	case d.Idle && rand.IntN(2) == 0, rand.IntN(50) == 0:
		r.shrink(d.Used)
	}
	d = r.g.Demand()
	if d.Keep < d.Units {
		r.shrink(d.Keep)
	}
	if d.Want <= d.Keep && !d.Again {
		return
	}
	if rand.IntN(4) == 0 {
		r.n.refused.Add(1)
		r.g.Refuse(errRefused)
		r.obey(queue.Restate) // a client in line is called some time
		return
	}
	r.n.grants.Add(1)
	r.g.Granted(max(d.Want, d.Keep), rand.IntN(3) == 0, now+time.Minute)
	r.obey(queue.Restate)
}

func (r *gateRedis) shrink(keep int64) {
	if r.g.Shrink(keep) {
		r.n.shrinks.Add(1)
		if d := r.g.Demand(); d.Used > keep {
			r.t.Errorf("I17: %d units are used, %d are kept", d.Used, keep)
		}
		return
	}
	r.n.inVain.Add(1)
}

// place is what the visitors of a hammer share. Writers write it, readers read it: -race finds who is not excluded.
type place struct {
	value            int
	readers, writers atomic.Int32
}

// hammer runs visits against a simulated Redis until all have come in as often as they should, or hang.
func (r *gateRedis) hammer(goroutines int, visit func(id uint64)) {
	r.t.Helper()
	stop, done := make(chan struct{}), make(chan struct{})
	var redis, wg sync.WaitGroup
	redis.Go(func() { r.drive(stop) })
	for id := range goroutines {
		wg.Go(func() {
			for range rounds() {
				visit(uint64(id + 1))
			}
		})
	}
	go func() { defer close(done); wg.Wait() }()
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		r.t.Fatalf("the gate hangs: %+v, first waiters %+v", r.g.Demand(), r.g.Waiting(3))
	}
	close(stop)
	redis.Wait()
	if d := r.g.Demand(); d.Used != 0 || d.Waiting != 0 || d.Readers != 0 || d.Lost || !r.g.Shrink(0) {
		r.t.Errorf("left behind: %+v", d)
	}
}

func newGateRedis(t *testing.T, all int32, fair, lose bool) *gateRedis {
	r := &gateRedis{t: t, g: new(synchronizer), all: all, zero: time.Now(), kick: make(chan struct{}, 1), lose: lose}
	r.g.Init(&queue.Policy{All: all, Fair: fair, Turn: 200 * time.Microsecond, Zero: r.zero})
	return r
}

// enter comes in as w says, or returns why not.
func (r *gateRedis) enter(ctx context.Context, w *queue.Waiter) error {
	in, order, err := r.g.Acquire(w)
	r.obey(order)
	if in || err != nil {
		return err
	}
	order, err = r.g.Park(ctx, w)
	r.obey(order)
	return err
}

// rounds is how often each goroutine of a hammer test enters.
func rounds() int {
	if testing.Short() {
		return 100
	}
	return 1000
}

// Locks only, as a program uses a sync.RWMutex: the plain value is exact, and -race proves exclusion.
func TestShared_HammerLocks(t *testing.T) {
	for name, fair := range map[string]bool{"fair": true, "non-fair": false} {
		t.Run(name, func(t *testing.T) {
			r := newGateRedis(t, all, fair, false)
			var p place
			var writes atomic.Int64
			r.hammer(16, func(id uint64) {
				if rand.IntN(20) > 0 {
					if r.g.AcquireShared(r.now()) {
						r.n.joined.Add(1)
					} else if err := r.enter(context.Background(), &queue.Waiter{Stay: &queue.Stay{Need: 1, Kind: queue.NoNotify, Goroutine: id}}); err != nil {
						t.Error(err)
						return
					}
					_ = p.value
					r.obey(r.g.ReleaseShared(0, 1, 0))
					return
				}
				w := &queue.Waiter{Stay: &queue.Stay{Need: all, Kind: queue.NoNotify, Goroutine: id}}
				if err := r.enter(context.Background(), w); err != nil {
					t.Error(err)
					return
				}
				p.value++
				writes.Add(1)
				r.obey(r.g.Exit(w))
			})
			if int64(p.value) != writes.Load() {
				t.Errorf("%d writes left %d", writes.Load(), p.value)
			}
			if r.n.joined.Load() == 0 {
				t.Error("nobody joined by the word")
			}
		})
	}
}

// Everything in parallel: losses, contexts that end, tries, downgrades, closing, waiters that come again. Those that cannot
// be notified exclude each other whatever is lost; the others as long as their stay has not ended.
func TestShared_HammerEverything(t *testing.T) {
	for name, fair := range map[string]bool{"fair": true, "non-fair": false} {
		t.Run(name, func(t *testing.T) {
			r := newGateRedis(t, all, fair, true)
			var p place
			for end := time.Now().Add(20 * time.Second); ; { // on a busy machine a round may miss something
				r.hammer(16, func(id uint64) { r.visit(&p, id) })
				missed := r.n.missed()
				if missed == "" || testing.Short() {
					return
				}
				if time.Now().After(end) {
					t.Fatal("the hammer never had: " + missed)
				}
			}
		})
	}
}

// missed names something that has not happened.
func (n *gateTally) missed() string {
	for name, count := range map[string]*atomic.Int64{
		"grants": &n.grants, "losses": &n.losses, "contended": &n.contended, "turns": &n.turns, "shrinks": &n.shrinks, "refused": &n.refused,
		"joined": &n.joined, "entered": &n.entered, "left": &n.left, "again": &n.again, "downgraded": &n.downgraded,
	} {
		if count.Load() == 0 {
			return name
		}
	}
	return ""
}

// visit is one goroutine's way through the gate.
func (r *gateRedis) visit(p *place, id uint64) {
	if rand.IntN(2) == 0 && r.g.AcquireShared(r.now()) {
		r.n.joined.Add(1)
		p.read(r.t)
		r.obey(r.g.ReleaseShared(0, 1, 0))
		return
	}
	w := &queue.Waiter{Stay: &queue.Stay{Need: 1, Kind: queue.Kind(rand.IntN(8)), Goroutine: id}}
	if rand.IntN(8) == 0 {
		w.Need = all
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if w.Kind&queue.Refusable != 0 {
		switch rand.IntN(4) {
		case 0:
			cancel()
		case 1:
			defer time.AfterFunc(time.Duration(rand.IntN(300))*time.Microsecond, cancel).Stop()
		}
	}
	for {
		switch err := r.enter(ctx, w); {
		case errors.Is(err, context.Canceled):
			r.n.left.Add(1)
			return
		case err != nil:
			return
		case rand.IntN(30) > 0:
			r.stay(p, w)
			return
		}
		r.n.again.Add(1)
		r.obey(r.g.Exit(w))
		w.Again()
	}
}

// stay is from the admission of w to its exit.
func (r *gateRedis) stay(p *place, w *queue.Waiter) {
	r.n.entered.Add(1)
	if w.Kind.CanNotify() {
		r.mu.Lock() // no loss now: a stay that has not ended excludes
		if d := r.g.Demand(); !d.Lost && d.Grant == w.Grant && !(w.Need == all && d.Used == all || w.Need == 1 && d.Used >= 1) {
			r.t.Errorf("I1: a stay with need %d: %+v", w.Need, d)
		}
		r.mu.Unlock()
		if rand.IntN(2) == 0 {
			r.obey(r.g.Downgrade(w.Stay))
			r.n.downgraded.Add(1)
		}
		r.obey(r.g.Exit(w))
		return
	}
	if w.Need == all {
		p.write(r.t)
		if rand.IntN(2) == 0 {
			p.readers.Add(1)
			r.obey(r.g.Downgrade(w.Stay))
			r.n.downgraded.Add(1)
			p.readers.Add(-1)
			p.read(r.t)
		}
		r.obey(r.g.Exit(w))
		return
	}
	p.read(r.t)
	r.obey(r.g.ReleaseShared(0, 1, 0))
}

func (p *place) read(t *testing.T) {
	p.readers.Add(1)
	if p.writers.Load() != 0 {
		t.Error("I1: a reader beside a writer")
	}
	_ = p.value
	p.readers.Add(-1)
}

func (p *place) write(t *testing.T) {
	if p.writers.Add(1) != 1 || p.readers.Load() != 0 {
		t.Error("I1: a writer beside another")
	}
	p.value++
	p.writers.Add(-1)
}

// Permits of different sizes, given up, lost, and released by any goroutine.
func TestShared_HammerSemaphore(t *testing.T) {
	for name, lose := range map[string]bool{"calm": false, "losses": true} {
		t.Run(name, func(t *testing.T) {
			r := newGateRedis(t, 0, true, lose)
			r.hammer(16, func(id uint64) {
				w := &queue.Waiter{Stay: &queue.Stay{Need: int32(1 + rand.IntN(5)), Kind: queue.Kind(rand.IntN(8)), Goroutine: id}}
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if rand.IntN(8) == 0 {
					defer time.AfterFunc(time.Duration(rand.IntN(300))*time.Microsecond, cancel).Stop()
				}
				if r.enter(ctx, w) != nil {
					return
				}
				if d := r.g.Demand(); d.Used > d.Units {
					t.Errorf("I1: %+v", d)
				}
				if w.Kind.CanNotify() || rand.IntN(2) == 0 {
					r.obey(r.g.Exit(w))
				} else {
					r.obey(r.g.ReleaseShared(0, int64(w.Need)-1, 0))
					r.obey(r.g.ReleaseShared(0, 1, 0))
				}
			})
		})
	}
}

// A wake-up that is lost at the end of a burst hangs it: nothing happens then that could make up for it.
func TestShared_HammerBursts(t *testing.T) {
	for name, fair := range map[string]bool{"fair": true, "non-fair": false} {
		t.Run(name, func(t *testing.T) {
			r := newGateRedis(t, all, fair, false)
			r.g.Granted(all, false, forever)
			var p place
			for range rounds() {
				var wg sync.WaitGroup
				for id := range 6 {
					wg.Go(func() {
						for range 4 {
							r.visit(&p, uint64(id+1))
						}
					})
				}
				done := make(chan struct{})
				go func() { defer close(done); wg.Wait() }()
				select {
				case <-done:
				case <-time.After(30 * time.Second):
					t.Fatalf("the gate hangs: %+v, first waiters %+v", r.g.Demand(), r.g.Waiting(3))
				}
				if d := r.g.Demand(); d.Used != 0 || d.Waiting != 0 || d.Readers != 0 {
					t.Fatalf("left behind: %+v", d)
				}
			}
		})
	}
}

// Under steady contention everybody comes in, and nobody waits for much longer than the others.
func TestShared_HammerNobodyStarves(t *testing.T) {
	for name, fair := range map[string]bool{"fair": true, "non-fair": false} {
		t.Run(name, func(t *testing.T) {
			g := newRWGate(fair)
			stop := make(chan struct{})
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() { // busy ones, whom nobody counts
					for {
						select {
						case <-stop:
							return
						default:
						}
						if i < 2 {
							g.Lock()
							runtime.KeepAlive(g)
							g.Unlock()
						} else {
							g.RLock()
							runtime.KeepAlive(g)
							g.RUnlock()
						}
					}
				})
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range 2_000 {
					g.Lock()
					runtime.KeepAlive(g)
					g.Unlock()
					g.RLock()
					runtime.KeepAlive(g)
					g.RUnlock()
				}
			}()
			select {
			case <-done:
			case <-time.After(60 * time.Second):
				t.Errorf("starved: %+v", g.Demand())
			}
			close(stop)
			wg.Wait()
		})
	}
}

// S26: a writer closes first, then counts. It meets an open gate that nobody is inside of, and a reader that joins at that
// moment.
func TestShared_I12_AReaderThatJoinsBesideAWriter(t *testing.T) {
	g := new(synchronizer)
	zero := time.Now()
	g.Init(&queue.Policy{All: all, Turn: time.Hour, Zero: zero})
	now := func() time.Duration { return time.Since(zero) }
	first := &queue.Waiter{Stay: &queue.Stay{Need: all}}
	if in, _, err := g.Acquire(first); in || err != nil {
		t.Fatal(in, err)
	}
	g.Granted(all, false, time.Hour)
	if _, err := g.Park(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	g.Exit(first)
	open := func() { // a reader opens the gate for others
		r := &queue.Waiter{Stay: &queue.Stay{Need: 1, Kind: queue.NoNotify}}
		if in, _, err := g.Acquire(r); !in || err != nil {
			t.Fatal(in, err)
		}
		g.ReleaseShared(0, 1, 0)
	}
	open()
	var inside atomic.Int64
	var stop atomic.Bool
	spin := func(n int) {
		for range n {
			stop.Load()
		}
	}
	var reader sync.WaitGroup
	reader.Go(func() {
		for !stop.Load() {
			if g.AcquireShared(now()) {
				inside.Add(1)
				spin(100)
				inside.Add(-1)
				g.ReleaseShared(0, 1, 0)
				spin(200)
			}
		}
	})
	refused, alone := 0, 0
	for end := time.Now().Add(20 * time.Second); (refused < 20_000 || alone < 20_000) && time.Now().Before(end); {
		open()
		w := &queue.Waiter{Stay: &queue.Stay{Need: all, Kind: queue.Try}}
		in, _, _ := g.Acquire(w)
		if !in {
			refused++
			continue
		}
		alone++
		for range 100 {
			if inside.Load() > 0 {
				t.Error("a reader is inside beside a writer")
				break
			}
		}
		g.Exit(w)
	}
	stop.Store(true)
	reader.Wait()
	if refused == 0 || alone == 0 {
		t.Errorf("%d writers found a reader, %d were alone", refused, alone)
	}
}

// I12: Shrink and Lose close first, then count. They meet an open gate, and a reader that joins at that moment: nobody is
// inside by units that went back, and nobody is let in beside one who relies on lost ones.
func TestShared_I17_AReaderThatJoinsBesideAShrink(t *testing.T) {
	g := new(synchronizer)
	zero := time.Now()
	g.Init(&queue.Policy{All: all, Turn: time.Hour, Zero: zero})
	now := func() time.Duration { return time.Since(zero) }
	open := func() {
		g.Granted(all, false, time.Hour)
		for range 2 {
			r := &queue.Waiter{Stay: &queue.Stay{Need: 1, Kind: queue.NoNotify}}
			if in, _, err := g.Acquire(r); !in || err != nil {
				t.Fatal(in, err, g.Demand())
			}
			g.ReleaseShared(0, 1, 0)
		}
	}
	var inside atomic.Int64
	var stop atomic.Bool
	var reader sync.WaitGroup
	reader.Go(func() {
		for !stop.Load() {
			if g.AcquireShared(now()) {
				inside.Add(1)
				for range 100 {
					stop.Load()
				}
				inside.Add(-1)
				g.ReleaseShared(0, 1, 0)
			}
		}
	})
	open()
	shrunk, lost := 0, 0
	for end := time.Now().Add(5 * time.Second); (shrunk < 100_000 || lost < 100_000) && time.Now().Before(end); {
		switch {
		case shrunk > lost:
			lost++
			g.LoseAll()
			for g.Demand().Lost { // until the reader has left
				runtime.Gosched()
			}
		case g.Shrink(0):
			shrunk++
		default:
			continue
		}
		for range 100 {
			if inside.Load() > 0 {
				t.Fatalf("a reader is inside by no unit: %+v", g.Demand())
			}
		}
		open()
	}
	stop.Store(true)
	reader.Wait()
	if shrunk == 0 || lost == 0 {
		t.Errorf("%d shrunk, %d lost", shrunk, lost)
	}
}
