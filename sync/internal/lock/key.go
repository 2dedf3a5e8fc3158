// Package lock is the core: how one process and Redis agree on who has a lock.
//
// Read package conversation first. Then key.go; send.go and handle.go, which drive the conversation; acquire.go and exit.go, an owner's
// way in and out; grant.go, release.go and loss.go, what becomes of a grant; and locks.go, which hears messages. What only a Mutex has
// is in taking.go, linger.go and others.go; what only an RWMutex and a Semaphore have is in share.go and the files that begin with
// units. docs/internals/architecture.md follows one Lock through them, and docs/internals/protocol.md has the same as Redis sees it.
package lock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// Key is what a client keeps for one key in use: the queue of its goroutines, and its conversation with Redis.
//
// The queue decides who is inside, and the conversation what that means for Redis. Both change under mu, but for goroutines that come
// and go by the queue alone. Code that changes what the goroutines want, or hears something, calls sendNext or sendAsync, or for a release
// Held.release or Key.giveBack. These send the command that is due, and set the timer for what comes by itself: a later
// command, or the end of what was left.
type Key struct {
	l    *Locks
	name string
	set  *Settings
	refs atomic.Int64 // at 0 the key is over, and stays so
	link *Link
	u    *units // what only an RWMutex and a Semaphore have; nil: a Mutex

	cur     atomic.Pointer[Held]                  // the last grant
	tracked atomic.Pointer[lettucecompat.Tracked] // that, once it is tracked
	failed  atomic.Pointer[string]                // the server from which the last command had no usable answer; nil: it had one

	// Of a Mutex.
	contended    atomic.Uint64 // the newest unit for which another client is known to wait
	deleted      atomic.Uint64 // the newest unit that a message says was deleted; its grant may be still to come
	asked        atomic.Int64  // the Moment of the last answer that would have said so
	others       atomic.Int64  // the Moment at which a foreign holder was last seen; 0: never
	lingersUntil atomic.Int64  // the Moment until which the lock lingers, or last did
	timed        atomic.Int64  // the Moment at which the first timer of lingered fires; 0: none is set
	pausedUntil  atomic.Int64  // the Moment before which the lock does not linger: see pauseLinger

	q queue.Synchronizer

	mu       sync.Mutex
	conv     conversation.Conversation
	freeing  *giving               // what is given back, and not known to be free
	answer   *lettucecompat.Answer // see Answer
	knew     Moment                // when something showed who has the lock, or this process gave it back
	timer    *time.Timer
	tryAfter uint64 // the last command before the try came that waits, if one does: there is one at most
	flying   int32  // commands that have not returned
	retries  int8   // so many leases in a row could not be secured; 6 at most
	longer   bool   // of a Mutex: a unit that nobody has entered was made to last, and that was not enough if it is again
	busy     bool   // counted in Locks.unsettled, with a reference
	silenced bool   // the client is closed: nothing is sent by the timer, only for somebody

	// Of a Mutex, guarded by mu.
	unwatch  chan struct{} // ends listening for a foreign holder's release; nil: nobody listens
	retryAt  Moment        // after a lease that could not be secured nothing is pending until then
	patience Moment        // until then a try waits, in case the lock lingers elsewhere
	took     uint64        // the last command that takes the lock; 0: it had no effect
	takes    *Taking       // who has ordered it
}

// Link leads to a key while that is in use, and keeps nothing of it in memory. A nil one leads nowhere.
type Link struct{ key atomic.Pointer[Key] }

// Key returns the key, which may just be over, or nil.
func (l *Link) Key() *Key {
	if l == nil {
		return nil
	}
	return l.key.Load()
}

// Link returns the one that leads to k.
func (k *Key) Link() *Link { return k.link }

// Name returns the key's name in Redis.
func (k *Key) Name() string { return k.name }

// Settings returns those with which the key is in use.
func (k *Key) Settings() *Settings { return k.set }

// Queue returns the queue of the key, to read and to re-enter.
func (k *Key) Queue() *queue.Synchronizer { return &k.q }

// Held returns the last grant, nil before the first; it may have ended.
func (k *Key) Held() *Held { return k.cur.Load() }

// Owner returns who owns the lock of a Mutex in this process, nil where nobody does. A nil k has none.
func (k *Key) Owner() *Owner {
	if k == nil {
		return nil
	}
	if g := k.Held(); g != nil {
		return g.Current()
	}
	return nil
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

// Over reports whether nobody has a reference any more.
func (k *Key) Over() bool { return k.refs.Load() == 0 }

// Done gives a reference back. The last one forgets the key.
func (k *Key) Done() {
	if k.refs.Add(-1) > 0 {
		return
	}
	k.link.key.Store(nil)
	l := k.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys[k.name] == k {
		delete(l.keys, k.name)
		l.rememberPauseLocked(k)
	}
	l.changedLocked()
}

// busyLocked notes whether the key is in use by itself, and has a reference while it is. It returns true where its caller
// must call Done, which gives that back.
func (k *Key) busyLocked(busy bool) (done bool) {
	if busy == k.busy {
		return false
	}
	if k.busy = busy; !busy {
		k.l.settled()
		return true
	}
	k.l.unsettled.Add(1)
	k.refs.Add(1)
	return false
}

// stirLocked notes that an event has brought a settled conversation something to clean up, before a Close can miss it. It
// returns false where one has found nothing left: then it must not be taken in, and what it is about ends by itself.
func (k *Key) stirLocked() bool {
	k.l.mu.Lock()
	defer k.l.mu.Unlock()
	if !k.l.final {
		k.busyLocked(true)
	}
	return !k.l.final
}

// Leaves reports whether something of this client may be in Redis that is held or waited for no more.
func (k *Key) Leaves() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.busy && k.demandLocked(k.l.now()) == conversation.Demand{}
}

// usableLocked reports whether owners may rely on the units.
func (k *Key) usableLocked() bool { return k.conv.State == conversation.Holding }

// unitsLocked returns how many the client has, but for those that it is to give back again.
func (k *Key) unitsLocked() int64 {
	if k.conv.State == conversation.Leaving {
		return 0
	}
	return k.conv.Units
}

// at is the time of a moment, as package renewal needs it.
func (k *Key) at(m Moment) time.Time { return k.l.leases.Dated(k.l.zero.Add(m)) }

// enqueue lets w enter the queue. For a try it notes which commands were sent before.
func (k *Key) enqueue(w *queue.Waiter) (in bool, order queue.Order, err error) {
	if !w.Kind.IsTry() {
		return k.q.Acquire(w)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if in, order, err = k.q.Acquire(w); !in && err == nil {
		k.tryAfter = k.l.number.Load()
	}
	return in, order, err
}

// limited returns the context in which w waits. A try waits for one answer, and no longer than that may take. Where its own
// command was sent, that has this limit; where an answer to somebody else must come first, the context.
func (k *Key) limited(ctx context.Context, w *queue.Waiter) (context.Context, context.CancelFunc) {
	if w.Kind.IsTry() {
		k.mu.Lock()
		sent := k.conv.LastCommand().N > k.tryAfter
		k.mu.Unlock()
		if !sent || k.set.Linger > 0 { // a second answer may decide
			return context.WithTimeoutCause(ctx, k.set.Timeout, errUnanswered)
		}
	}
	return ctx, func() {}
}

// carryOut carries out an order of the queue.
func (k *Key) carryOut(o queue.Order) {
	switch o {
	case queue.Nothing:
	case queue.GiveBack: // the waiter for whom the grant came has given up, or it has lingered
		if g := k.cur.Load(); g != nil {
			g.giveBack()
		}
	default:
		k.sendAsync()
	}
}

// wakeLocked sets the timer for until.
func (k *Key) wakeLocked(until, now Moment) {
	switch {
	case until == never || k.silenced:
		k.stopLocked()
	case k.timer == nil:
		k.timer = time.AfterFunc(until-now, func() {
			k.handle(conversation.Event{Kind: conversation.Tick})
			k.sendNext()
		})
	default:
		k.timer.Reset(until - now)
	}
}

func (k *Key) stopLocked() {
	if k.timer != nil {
		k.timer.Stop()
	}
}

// silence ends all that the key does by itself.
func (k *Key) silence() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.silenced = true
	k.stopLocked()
	k.unwatchLocked()
}
