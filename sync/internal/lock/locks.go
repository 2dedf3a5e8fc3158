package lock

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// Config is what Locks are made of.
type Config struct {
	Wire     *lettucecompat.Client // its messages go to Locks.Heard, and its re-subscriptions to Locks.Resubscribed
	ClientID string                // the wire's
	Reporter Reporter
	// Timeout is the time limit of a command about a lock with this lease.
	Timeout func(lease time.Duration) time.Duration
	// Renewal is for the renewals, whose leases belong to *Held. New sets Sender and OnLost.
	Renewal renewal.Config
}

// Reporter receives what people and programs may want to know. Its methods are called with no mutex held, and must
// not block.
type Reporter interface {
	// Failed: a command for k had no usable answer from the server shard.
	Failed(k *Key, shard string, err error)
	// Answered: one had. before is the server from which the last one had none; nil: it had an answer, too.
	Answered(k *Key, before *string)
	// Called: Redis gave the lock of k, or units of it, to this process, which had a place. found: no message said so, but an
	// answer.
	Called(k *Key, found bool)
	// Lost: g was lost, or l.Of of it. Its owners were notified, if they can be.
	Lost(g *Held, l *Loss)
	// ReleaseFailed: the first answer to the release of g is missing or is err, and nothing has shown since how it
	// ended.
	ReleaseFailed(g *Held, err error)
	// ReleaseGivenUp: no answer showed how the release of g ended until the lease had ended what may have been left of
	// it.
	ReleaseGivenUp(g *Held)
	// Capacity: an answer says that this process counts with so many units of k here, and another one with so many there.
	Capacity(k *Key, here, there int64)
}

// Locks is one client of the locks in one Redis: the keys in use, the grants, and the leases of these.
//
// Lock order: Key.mu, then Locks.mu or the queue's or the renewal's.
type Locks struct {
	cfg     Config
	wire    *lettucecompat.Client
	leases  *renewal.Manager
	zero    time.Time
	number  atomic.Uint64 // of the last command
	unheard atomic.Uint64 // of the last one before the subscription came up: what was said after its answer may be lost

	closing   atomic.Bool
	open      context.Context // ends with closing
	shut      context.CancelFunc
	unsettled atomic.Int64 // conversations that are not settled, and callers that give a grant back and come again
	flying    atomic.Int64 // commands that were not dealt with yet
	waiters   sync.Pool    // of *queue.Waiter: a channel must not leave a test bubble that has these Locks

	mu      sync.Mutex
	keys    map[string]*Key
	grants  map[uint64]*Held  // neither released nor lost, by their numbers
	lost    map[uint64]*Held  // lost, and their owner, who cannot be notified, has not exited
	owners  map[uint64]*Owner // of units, who are known by name, by their numbers
	pauses  map[string]Moment // of keys that are not in use: until when they do not linger
	tooMany int               // pauses to look for some that are over
	young   []*Held           // that have come a moment ago, in that order: see grow
	growing bool              // grow runs, or is to
	came    []uint64          // since Changes was called
	went    []uint64          // of those that Changes has named
	final   bool              // Settle has found nothing left: see Key.stirLocked
	changed chan struct{}     // closed and replaced when Close may have less to wait for
}

// New returns the Locks of a client, and starts its renewals.
func New(cfg Config) *Locks {
	l := &Locks{
		cfg: cfg, wire: cfg.Wire, keys: map[string]*Key{}, grants: map[uint64]*Held{}, lost: map[uint64]*Held{}, owners: map[uint64]*Owner{},
		pauses: map[string]Moment{}, changed: make(chan struct{}), waiters: sync.Pool{New: func() any { return new(queue.Waiter) }},
	}
	l.open, l.shut = context.WithCancel(context.Background())
	l.number.Store(max(uint64(time.Now().UnixMicro()), lettucecompat.FirstNumber))
	cfg.Renewal.Sender = sender{l}
	cfg.Renewal.OnLost = func(lease *renewal.Lease) {
		g, is := lease.Owner().(*Held)
		if !is {
			return
		}
		g.report(g.Loss())
		if g.u != nil {
			l.unregister(g, nil) // the report says what the watchdog has found of it
		}
	}
	l.leases = renewal.New(cfg.Renewal)
	l.zero = l.leases.Zero()
	l.leases.Start()
	return l
}

// Leases are the renewals, and the clock of all that is counted here.
func (l *Locks) Leases() *renewal.Manager { return l.leases }

// Field is the field in Redis of the unit of that number; "" for 0.
func (l *Locks) Field(n uint64) string {
	if n == 0 {
		return ""
	}
	return lettucecompat.NewField(l.cfg.ClientID, n)
}

func (l *Locks) now() Moment { return time.Since(l.zero) }

// moment is now for a conversation.
func (l *Locks) moment() conversation.Moment { return conversation.Moment(l.now()) }

// Key returns the key with one reference more; Done gives that back. An unused key is made with the settings s; one that is in use
// may have others, and be of another kind of lock.
func (l *Locks) Key(name string, s *Settings) *Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.keys[name]; k != nil && k.Use() {
		return k
	}
	k := &Key{l: l, name: name, set: s, link: new(Link)}
	k.link.key.Store(k)
	k.refs.Store(1)
	k.conv.Terms = &k.set.times
	if s.Shared {
		k.u = newUnits(s)
	}
	k.q.Init(l.policyOf(s))
	if until, is := l.pauses[name]; is {
		k.pausedUntil.Store(int64(until))
		delete(l.pauses, name)
	}
	l.keys[name] = k
	return k
}

// Find returns the key with one reference more, or nil where it is not in use.
func (l *Locks) Find(name string) *Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.keys[name]; k != nil && k.Use() {
		return k
	}
	return nil
}

// All returns the keys in use, without references. Acquisitions of new keys wait meanwhile: a millisecond for 100,000.
func (l *Locks) All() []*Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.keys))
}

// landed: one command was dealt with.
func (l *Locks) landed() {
	if l.flying.Add(-1) == 0 && l.closing.Load() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.changedLocked()
	}
}

// settled: one less is unsettled.
func (l *Locks) settled() {
	l.unsettled.Add(-1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changedLocked()
}

// changedLocked makes Close check again.
func (l *Locks) changedLocked() {
	if l.closing.Load() {
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

// Heard takes in a message of the wire. It does not block.
func (l *Locks) Heard(m lettucecompat.Message) {
	k := l.Find(m.Key)
	if k == nil {
		return // what an unused key has left in Redis ends by itself
	}
	defer k.Done()
	switch m.Kind {
	case lettucecompat.MessageContended:
		k.notified(m.N)
	case lettucecompat.MessageForced:
		k.forced(m.N)
	case lettucecompat.MessageRetry:
		k.handle(conversation.Event{Kind: conversation.Retry, After: m.After})
	case lettucecompat.MessageCalled:
		set := k.Settings()
		e := conversation.Event{
			Kind: conversation.Called, N: m.N, Record: m.N, Units: m.Units, Lease: set.times.Call, Token: m.Token, Contended: m.Contended,
		}
		switch { // the client that has called may not have Fencing, and the other way round
		case !set.Fencing:
			e.Token = 0
		case m.Token == 0:
			k.handle(conversation.Event{Kind: conversation.Retry}) // a confirmation makes the token
			k.sendAsync()
			return
		}
		k.handle(e)
	}
	k.sendAsync()
}

// Forced notes that the grant of that number was deleted by this process.
func (l *Locks) Forced(n uint64) {
	if g, _ := l.OfNumber(n); g != nil {
		g.set(deleteOnLoss)
		g.lease.Lose(renewal.Cause{Reason: renewal.ReasonForced})
	}
}

// Resubscribed: messages may have been lost, so all places are confirmed, all turns ask at their end, and
// nothing lingers.
func (l *Locks) Resubscribed() {
	l.unheard.Store(l.number.Load())
	for _, k := range l.All() {
		k.unheard()
		k.handle(conversation.Event{Kind: conversation.Retry})
		k.sendAsync()
	}
}
