package lock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// Config is what Locks are made of.
type Config struct {
	Wire     *lettucecompat.Client // its messages go to Locks.Heard, and its re-subscriptions to Locks.Resubscribed
	ClientID string                // the wire's
	Reporter Reporter
	// Timeout is the time limit of a command about a lock with this lease.
	Timeout func(lease time.Duration) time.Duration
	// InFlight is renewal.Config.InFlight.
	InFlight int
}

// Reporter is told what people and programs may want to know. Its methods are called with no mutex held, and must
// not block.
type Reporter interface {
	// Acquiring: a statement for k failed (err), or was answered after one had failed (nil).
	Acquiring(k *Key, err error)
	// Called: Redis gave the lock of k to this process by a message.
	Called(k *Key)
	// Lost: the owners of g were notified of l.
	Lost(g *Held, l *Loss)
	// ReleaseFailed: the first answer to the release of g is missing or is err.
	ReleaseFailed(g *Held, err error)
	// ReleaseGivenUp: nothing was confirmed until the lease has ended what may have been left of k.
	ReleaseGivenUp(k *Key)
}

// Locks is one client of the locks in one Redis: the keys in use, the grants, and the leases of these.
//
// Lock order: Key.mu, then Locks.mu or the queue's or the renewal's.
type Locks struct {
	cfg    Config
	wire   *lettucecompat.Client
	leases *renewal.Manager
	zero   time.Time
	number atomic.Uint64 // of the last statement

	closing   atomic.Bool
	closeErr  atomic.Pointer[error]
	unsettled atomic.Int64 // conversations that are not settled

	mu      sync.Mutex
	keys    map[string]*Key
	grants  map[uint64]*Held // held; by the number of their record
	changed chan struct{}    // closed and replaced when Close may have less to wait for
}

// New returns the Locks of a client, and starts its renewals.
func New(cfg Config) *Locks {
	l := &Locks{cfg: cfg, wire: cfg.Wire, keys: map[string]*Key{}, grants: map[uint64]*Held{}, changed: make(chan struct{})}
	l.number.Store(max(uint64(time.Now().UnixMicro()), lettucecompat.FirstNumber))
	l.leases = renewal.New(renewal.Config{Sender: sender{l}, InFlight: cfg.InFlight})
	l.zero = l.leases.Zero()
	l.leases.Start()
	return l
}

func (l *Locks) now() Moment { return time.Since(l.zero) }

// Key returns the key with one reference more; Done gives that back. An unused key is made with the settings s.
func (l *Locks) Key(name string, s *Settings) *Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.keys[name]; k != nil && k.Use() {
		return k
	}
	k := &Key{l: l, name: name, set: s}
	k.refs.Store(1)
	k.times = s.times()
	k.talk.Terms = k.times
	k.q.Init(s.Fair, l.zero)
	l.keys[name] = k
	return k
}

// Use takes a reference, unless the key is over.
func (k *Key) Use() bool {
	for {
		n := k.refs.Load()
		if n == 0 {
			return false
		}
		if k.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Done gives a reference back. The last one forgets the key.
func (k *Key) Done() {
	if k.refs.Add(-1) > 0 {
		return
	}
	l := k.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys[k.name] == k {
		delete(l.keys, k.name)
	}
	l.changedLocked()
}

// find returns the key with one reference more, or nil where it is not in use.
func (l *Locks) find(name string) *Key {
	l.mu.Lock()
	k := l.keys[name]
	l.mu.Unlock()
	if k == nil || !k.Use() {
		return nil
	}
	return k
}

// changedLocked tells Close to look again.
func (l *Locks) settled() {
	l.unsettled.Add(-1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changedLocked()
}

func (l *Locks) changedLocked() {
	if l.closing.Load() {
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

func (l *Locks) list(g *Held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grants[g.n] = g
}

func (l *Locks) unlist(g *Held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.grants, g.n)
	l.changedLocked()
}

// Heard takes in a message of the wire. It does not block.
func (l *Locks) Heard(m lettucecompat.Message) {
	k := l.find(m.Key)
	if k == nil {
		return // what an unused key has left in Redis ends by itself
	}
	defer k.Done()
	switch m.Kind {
	case lettucecompat.MessageTold:
		k.told.Store(true)
	case lettucecompat.MessageForced:
		if g := k.cur.Load(); g != nil && g.n == m.N {
			g.forced()
		}
	case lettucecompat.MessageLook:
		k.hear(News{Word: Look, Lease: m.After}, nil)
		k.kick()
	case lettucecompat.MessageCalled:
		k.told.Store(m.Told)
		if k.hear(News{Word: Called, N: m.N, Unit: m.N, Lease: k.times.Call, Token: m.Token}, nil) == Granted {
			l.cfg.Reporter.Called(k)
		}
		k.kick()
	}
}

// Resubscribed: messages may have been lost, so all places are confirmed.
func (l *Locks) Resubscribed() {
	l.mu.Lock()
	keys := make([]*Key, 0, len(l.keys))
	for _, k := range l.keys {
		keys = append(keys, k)
	}
	l.mu.Unlock()
	for _, k := range keys {
		k.hear(News{Word: Look}, nil)
		k.kick()
	}
}

// Close refuses who comes, fails with err who waits and can be told, and waits until nobody owns a lock and nothing is
// left to clean up, or ctx ends. Owners that remain then lose their locks, and their leases end by themselves.
func (l *Locks) Close(ctx context.Context, err error) (left int) {
	l.mu.Lock()
	l.closing.Store(true)
	keys := make([]*Key, 0, len(l.keys))
	for _, k := range l.keys {
		keys = append(keys, k)
	}
	l.mu.Unlock()
	l.closeErr.Store(&err)
	for _, k := range keys {
		k.carryOut(k.q.Fail(err))
		k.kick()
	}
	for {
		l.mu.Lock()
		grants, changed := make([]*Held, 0, len(l.grants)), l.changed
		for _, g := range l.grants {
			grants = append(grants, g)
		}
		l.mu.Unlock()
		if len(grants) == 0 && l.unsettled.Load() == 0 {
			break
		}
		select {
		case <-changed:
			continue
		case <-ctx.Done():
		}
		left = len(grants)
		for _, g := range grants {
			g.lease.Load().Lose(renewal.Cause{Reason: renewal.ReasonClosed})
		}
		break
	}
	l.leases.Stop()
	for _, k := range keys {
		k.mute()
	}
	return left
}

// sender is the renewal.Sender.
type sender struct{ l *Locks }

// RenewBatch renews the leases of one shard. A slot may have moved since the batch was put together, so it asks by
// shard again.
func (s sender) RenewBatch(ctx context.Context, _ string, items []renewal.Item, at time.Time) []renewal.Result {
	l := s.l
	end := at.Add(l.cfg.Timeout(items[0].Lease)) // of all: see Grant.shard
	results := make([]renewal.Result, len(items))
	shards := map[string][]int{}
	for i, it := range items {
		shard := l.wire.Shard(it.Key)
		shards[shard] = append(shards[shard], i)
	}
	var all sync.WaitGroup
	for _, some := range shards {
		all.Go(func() {
			left := time.Until(end)
			if left <= 0 { // it has waited for a processor for so long
				for _, i := range some {
					results[i].Err = lettucecompat.ErrTimeout
				}
				return
			}
			batch := make([]lettucecompat.Renewal, len(some))
			for j, i := range some {
				batch[j] = lettucecompat.Renewal{Key: items[i].Key, Field: items[i].Field, Lease: items[i].Lease, Reacquire: items[i].Reacquire}
			}
			for j, r := range l.wire.Renew(ctx, batch, left) {
				results[some[j]] = renewal.Result{
					Renewed: r.Outcome == lettucecompat.OutcomeOK, Reacquired: r.Reacquired,
					Gone: r.Outcome == lettucecompat.OutcomeGone, SentAt: r.SentAt, Err: r.Err,
				}
			}
		})
	}
	all.Wait()
	return results
}

// carryOut carries out an order of the queue.
func (k *Key) carryOut(o queue.Order) {
	switch o {
	case queue.Nothing:
	case queue.SendRelease: // the waiter for whom the grant came has given up
		if g := k.cur.Load(); g != nil {
			go g.release(g.lastToken(), false) // the conversation, which is not settled, keeps the key in use
		}
	default:
		k.kick()
	}
}
