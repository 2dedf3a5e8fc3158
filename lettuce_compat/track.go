package lettucecompat

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Tracked is one held field of which Redis is to say when it vanishes: see Client.Track.
type Tracked struct {
	Query
	Owner any // the caller's

	tracking *tracking // nil: nobody watches

	// Guarded by tracking.mu.
	t      *tracker
	held   bool // it is what is tracked of its key
	queue  queued
	due    time.Time // while it is queuedLate
	window time.Time // from when reads counts
	reads  int
}

// queued says in which queue of its tracker a Tracked is.
type queued uint8

const (
	unqueued queued = iota // Redis says when the key changes
	queuedNow
	queuedLate
)

// tracking are the trackers of one client. docs/internals/protocol.md §12 has the rules, T1 to T10.
//
//	Track ─► tracker, one per master ── HEXISTS ─► Redis notes that this connection has read the key
//	            ▲   │ a push names a key that was changed, by anybody: it is read again
//	            └───┤
//	                └ not there ─► Options.OnMissing, which asks a master by a script. Only that ends a hold
type tracking struct {
	c      *Client
	ctx    context.Context // ends with close
	cancel context.CancelFunc
	ended  chan struct{}  // closed after close, when no goroutine is left
	wg     sync.WaitGroup // of trackers and of what they ask
	warned sync.Once

	contradictions int // trackContradictions, fewer in tests

	mu     sync.Mutex
	closed bool
	all    map[string]*tracker // by the master's address; "" is the only server, or one that is not known yet
}

func newTracking(c *Client) *tracking {
	tr := &tracking{c: c, contradictions: trackContradictions, ended: make(chan struct{}), all: map[string]*tracker{}}
	tr.ctx, tr.cancel = context.WithCancel(context.Background())
	return tr
}

// Track asks Redis to say when the key of q changes, until Close of what it returns: Options.OnMissing is called if the
// field is not there then. It returns immediately, without I/O.
//
// That is a hint which may never come. If Redis refuses it, one warning says so.
func (c *Client) Track(q Query, owner any) *Tracked {
	e := &Tracked{Query: q, Owner: owner}
	if c.opt.OnMissing == nil {
		return e
	}
	tr, addr := c.tracking, c.addr(q.Key)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if !tr.closed {
		e.tracking = tr
		tr.addLocked(e, addr)
	}
	return e
}

// Close ends Track. The caller closes before it sends what gives the field back. Closing twice is harmless.
func (e *Tracked) Close() {
	if e.tracking == nil {
		return
	}
	e.tracking.mu.Lock()
	defer e.tracking.mu.Unlock()
	e.leaveLocked()
}

func (e *Tracked) leaveLocked() {
	if e.held {
		delete(e.t.held, e.Key)
		e.held = false
	}
}

// addLocked gives e to the tracker of addr.
func (tr *tracking) addLocked(e *Tracked, addr string) {
	t := tr.all[addr]
	if t == nil {
		t = &tracker{tracking: tr, addr: addr, kick: make(chan struct{}, 1), held: map[string]*Tracked{}}
		t.logins.changed = t.doubt
		tr.all[addr] = t
		tr.wg.Go(t.run)
	}
	if before := t.held[e.Key]; before != nil {
		before.held = false
	}
	e.t, e.held, e.queue = t, true, unqueued
	t.held[e.Key] = e
	t.changedLocked(e)
}

// move gives what from holds to the trackers of the masters that own it by now.
func (tr *tracking) move(from *tracker) {
	if tr.c.route == nil {
		return
	}
	tr.mu.Lock()
	all := slices.Collect(maps.Values(from.held))
	tr.mu.Unlock()
	for _, e := range all {
		addr := tr.c.addr(e.Key)
		tr.mu.Lock()
		if addr != "" && addr != from.addr && !tr.closed && e.held {
			e.leaveLocked()
			tr.addLocked(e, addr)
		}
		tr.mu.Unlock()
	}
}

// doubt makes all trackers connect anew: what they are connected to may be no master any more.
func (tr *tracking) doubt() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, t := range tr.all {
		t.doubtLocked()
	}
}

// close ends all. The channel that it returns is closed when no goroutine is left.
func (tr *tracking) close() <-chan struct{} {
	tr.mu.Lock()
	first := !tr.closed
	tr.closed = true
	tr.mu.Unlock()
	if first {
		tr.cancel()
		go func() {
			tr.wg.Wait()
			close(tr.ended)
		}()
	}
	return tr.ended
}
