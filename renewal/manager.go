package renewal

import (
	"context"
	"sync"

	"github.com/anteroom/anteroom/internal/heap"
)

// Manager keeps leases: it renews each in time and notifies its owner when one is lost.
// All its methods are safe for concurrent use. Make one with New.
type Manager struct {
	cfg   Config
	clock *clock

	mu     sync.Mutex
	heap   heap.Heap[*Lease] // every active lease, by its attention
	shards map[string]*shard // those with leases or batches
	losses []*Lease          // concluded and not yet notified, in order
	run    *run              // nil while stopped
	armed  int64             // when the loop's timer fires, as onTimer counts; never while idle, which is without shards
	last   reading           // of the clocks, at the loop's last round
	window window
}

// reading is one reading of the clocks.
type reading struct {
	at    int64
	slept int64 // the part of at in which the machine was suspended
	wall  int64 // zero before the first round
}

// run is what lives from a Start to its Stop.
type run struct {
	ctx     context.Context // of every batch
	cancel  context.CancelFunc
	workers sync.WaitGroup // Add only with mu held and closing false
	loops   sync.WaitGroup // the loop, and those that Restart left behind
	reports sync.WaitGroup // callbacks; added to by workers and loops only
	done    chan struct{}  // closed when Stop is through
	closing bool           // guarded by mu; no new batch begins
	loop    *loop          // guarded by mu; replaced by Restart
}

// loop is one loop goroutine. One that Restart replaced finds that it is not
// its run's loop any more and ends without touching anything.
type loop struct {
	wake chan struct{} // one token: run again before the timer fires
	quit chan struct{} // closed by Restart or Stop
}

// New returns a Manager that keeps no leases and is not running. It panics
// when Config.Sender is nil.
func New(cfg Config) *Manager {
	return &Manager{
		cfg:    cfg.withDefaults(),
		clock:  newClock(),
		shards: make(map[string]*shard),
		armed:  never,
	}
}

// Start starts the loop. Leases that were added before, or left by a Stop,
// are taken up; those whose deadline passed meanwhile are lost. It does
// nothing when the Manager runs, and waits for a Stop that is under way.
func (m *Manager) Start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.run != nil {
		r := m.run
		if !r.closing {
			return
		}
		m.mu.Unlock()
		<-r.done
		m.mu.Lock()
	}
	r := &run{done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	m.run = r
	m.spawnLocked(r)
}

// Stop stops the Manager and returns when its goroutines have ended. Batches
// under way get a cancelled context; what they still answer counts. A loss
// that was concluded before, or by such an answer, is notified before Stop
// returns, none after. The leases stay as they are, no longer renewed or
// guarded; Valid still compares with the clock. Stop does nothing when the
// Manager does not run, and waits for another Stop that is under way. It
// blocks for as long as a RenewBatch ignores its context, or a Lost or an On…
// function does not return.
func (m *Manager) Stop() {
	m.mu.Lock()
	r := m.run
	if r == nil {
		m.mu.Unlock()
		return
	}
	if r.closing {
		m.mu.Unlock()
		<-r.done
		return
	}
	r.closing = true
	m.mu.Unlock()

	// The loop outlives the workers: it guards the deadlines while they end,
	// and notifies the losses that they find.
	r.cancel()
	r.workers.Wait()
	m.mu.Lock()
	close(r.loop.quit)
	m.mu.Unlock()
	r.loops.Wait()
	r.reports.Wait()

	m.mu.Lock()
	m.run, m.armed = nil, never
	m.mu.Unlock()
	close(r.done)
}

// Restart replaces the loop goroutine by a fresh one over the same leases. It
// is the remedy for a loop that is stalled, which only a Lost that blocks can
// do to it; it never waits. The losses that were not notified yet are notified by the new
// loop. The old goroutine ends as soon as it can and does nothing on its way;
// Stop waits for it too. It does nothing when the Manager does not run.
func (m *Manager) Restart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.run
	if r == nil || r.closing {
		return
	}
	close(r.loop.quit)
	m.spawnLocked(r)
}

// spawnLocked gives r a new loop goroutine.
func (m *Manager) spawnLocked(r *run) {
	lp := &loop{wake: make(chan struct{}, 1), quit: make(chan struct{})}
	r.loop = lp
	m.armed = never
	r.loops.Go(func() { m.loop(r, lp) })
}

// Add takes a lease into care and returns it. The lease is guarded and
// renewed while the Manager runs, until it is ended or lost. When its deadline
// has passed already it is lost immediately.
func (m *Manager) Add(s Spec) *Lease {
	l := &Lease{owner: s.Owner}
	l.lease.Store(int64(s.Lease))
	l.period.Store(int64(s.Period))
	l.margin.Store(int64(s.Margin))
	now := m.clock.now() // a suspension while the acquire was under way counts, though nobody has noticed it yet
	sent := m.clock.at(s.SentAt)
	deadline := sent + int64(s.Lease-s.Margin)
	if s.First > 0 {
		deadline = sent + int64(Usable(s.First, s.Margin))
	}
	l.confirmed.Store(sent)
	l.deadline.Store(deadline)
	l.due.Store(never)

	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case s.Period <= 0:
	case s.First > 0:
		l.due.Store(now + min(max(l.deadline.Load()-now, 0)/firstShare, int64(s.Period)))
	default:
		l.due.Store(sent + m.spread(s.Period))
	}
	l.shard = m.shardLocked(s.Shard, now)
	l.shard.leases++
	m.heap.Set(l, l.attention())
	m.nudgeLocked()
	return l
}

// firstLocked returns when the first lease wants attention; never without one.
func (m *Manager) firstLocked() int64 {
	if m.heap.Len() == 0 {
		return never
	}
	_, at := m.heap.First()
	return at
}

// nudgeLocked wakes the loop when it sleeps for longer than it should: there
// is a loss to notify, or a lease needs attention before the timer fires.
func (m *Manager) nudgeLocked() {
	if m.run == nil {
		return
	}
	first := m.firstLocked()
	if len(m.losses) == 0 && m.onTimer(first) >= m.armed {
		return
	}
	if m.armed != never { // those that come after it and want nothing before wake nobody
		m.armed = min(m.armed, m.onTimer(first))
	}
	select {
	case m.run.loop.wake <- struct{}{}:
	default: // the token is there already
	}
}
