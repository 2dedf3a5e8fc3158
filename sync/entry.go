package anteroom

import (
	"sync"
	"sync/atomic"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
)

// entry is what a Manager keeps for one live key: its queue, its current grant,
// and what is still being cleaned up in Redis. It exists while somebody holds,
// waits, releases or cleans up (refs).
type entry struct {
	m         *Manager
	key       string
	*settings // fixed while the entry lives
	q         queue.Synchronizer

	refs   atomic.Int64                               // at 0 the entry has ended, and stays there
	cur    atomic.Pointer[grant]                      // what Redis granted last; its n says whether a waiter was admitted to it
	recall bell                                       // the driver's
	answer atomic.Pointer[lettucecompat.AcquireReply] // what Redis said last, to an attempt or a confirmation; nil where it granted

	forced atomic.Uint64 // the number of the grant that ForceRelease deleted last

	mu        sync.Mutex
	burnt     map[uint64]*grant // whose fields may be left in Redis, by number; guarded by mu
	next      *grant            // stands in line since the last turn ended, for the next driver; guarded by mu
	look      bool              // the driver is to ask Redis now; guarded by mu
	stranger  atomic.Int32      // when one who does not stand was last known to hold the lock: see metStranger
	notBefore time.Duration     // the next driver's first attempt, as renewal.Manager.Glance counts; guarded by mu
}

// use returns the entry of the lock's key with one reference more, or an error where
// the Manager is closed or the key is live with another configuration.
func (mu *Mutex) use() (*entry, error) {
	m := mu.m
	if m.closing.Load() {
		return nil, ErrClosed
	}
	// The entry that was found last time is the right one as long as it lives, and its
	// configuration was compared then.
	if e := mu.last.Load(); e != nil && e.tryRef() {
		return e, nil
	}
	e, err := m.use(mu.key, mu.settings)
	if err == nil {
		mu.last.Store(e)
	}
	return e, err
}

// clearLast clears mu.last where e has ended, so that an idle Mutex keeps nothing alive.
func (mu *Mutex) clearLast(e *entry) {
	if e.refs.Load() == 0 {
		mu.last.CompareAndSwap(e, nil)
	}
}

// use is Mutex.use for whoever has not found the entry before.
func (m *Manager) use(key string, s *settings) (*entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing.Load() {
		return nil, ErrClosed
	}
	if e := m.entries[key]; e != nil {
		field := e.differs(s)
		if field != "" && e.refs.Load() > 0 {
			return nil, e.contradicts(field)
		}
		if field == "" && e.tryRef() {
			return e, nil
		}
	}
	e := &entry{m: m, key: key, settings: s}
	e.q.Init(s.cfg.Fair, m.leases.Zero())
	e.refs.Store(1)
	m.entries[key] = e
	return e, nil
}

// contradicts is the error of a configuration that differs in field from the one with which
// the key is in use. It says where both are used, if call sites are recorded.
func (e *entry) contradicts(field string) error {
	text := "differs from the configuration with which this key is in use"
	if here := e.m.callSite(); here != "" {
		text += " (here: " + here
		if g := e.cur.Load(); g != nil {
			if site := g.ownerSite(); site != "" {
				text += ", in use: " + site
			}
		}
		text += ")"
	}
	return configError(field, "%s", text)
}

// find returns the entry of a live key, without a reference, or nil. Whoever owns
// the lock finds the entry in which it does.
func (mu *Mutex) find() *entry {
	if e := mu.last.Load(); e != nil && e.refs.Load() > 0 {
		return e
	}
	mu.m.mu.Lock()
	defer mu.m.mu.Unlock()
	return mu.m.entries[mu.key]
}

// ref takes a further reference; the caller must have one already.
func (e *entry) ref() { e.refs.Add(1) }

// tryRef takes a reference unless the entry has ended.
func (e *entry) tryRef() bool {
	for {
		n := e.refs.Load()
		if n == 0 {
			return false
		}
		if e.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// unref gives one reference back; the last one removes the entry. It has ended with
// that, although others may find it for a moment yet: they make a new one.
func (e *entry) unref() {
	if e.refs.Add(-1) > 0 {
		return
	}
	m := e.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries[e.key] == e {
		delete(m.entries, e.key)
	}
	m.changed.ring()
}

// beginJob takes a reference for work on e that Close waits for: a driver, a release
// without a caller, a clean-up. Each job ends with endJob.
func (e *entry) beginJob() {
	e.ref()
	e.m.jobs.Add(1)
}

func (e *entry) endJob() {
	e.unref()
	e.m.jobs.Add(-1)
	e.m.changed.ring()
}

// lookAgain makes the driver ask Redis now.
func (e *entry) lookAgain() {
	e.mu.Lock()
	e.look = true
	e.mu.Unlock()
	e.recall.ring()
}

// do carries out an order of the queue.
func (e *entry) do(o queue.Order) {
	switch o {
	case queue.StartAttempt:
		e.beginJob()
		go e.drive()
	case queue.SendRelease:
		// The grant has no owner: the waiter for whom it came has given up.
		e.beginJob()
		go func() {
			defer e.endJob()
			// Whoever owned it last came in by one hand-off less than were made.
			e.cur.Load().release(e.q.Word().HandOffs()-1, false)
		}()
	case queue.RecallAttempt:
		e.lookAgain()
	}
}
