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

// driver is a Key or a SharedKey.
type driver interface {
	Named
	its() *base
	Use() bool
	Done()

	nextLocked() *conversation.Command // takes what there is to state now; nil: nothing, and the timer is set
	// ask sends cmd, and returns what its answer means. mayBeHeld is as in lettucecompat.Statement.
	ask(cmd *conversation.Command, mayBeHeld bool) (conversation.Event, lettucecompat.Answer)
	// take carries out what e means, the answer a to cmd. settled: there is nothing to state because of it.
	take(e conversation.Event, cmd *conversation.Command, a *lettucecompat.Answer) (settled bool)
	hear(conversation.Event) // is take for what is no answer; its caller then calls speak or kick
	speak(mayBeHeld bool)    // states what there is to state now, and returns after the answer
	kick()                   // is speak for callers that must not be held up

	carryOut(queue.Order)
	parks(*queue.Waiter)               // it is about to
	gaveUp(*queue.Waiter, error) error // says why it has not come in
	patientLocked() bool               // a try waits though its place has others before it

	notified(n uint64) // a message: another client waits for the units of record n
	forced(n uint64)   // a message, and anybody can send it: record n was deleted on purpose
	unheard()          // messages may have been lost
	beginClose()       // fails who waits and can be refused
	silence()          // ends all that the key does by itself
}

// base is what a Key and a SharedKey have in common.
type base struct {
	l    *Locks
	name string
	set  *Settings
	refs atomic.Int64 // at 0 the key is over, and stays so

	tracked atomic.Pointer[lettucecompat.Tracked] // its grant, once that is tracked
	failed  atomic.Pointer[string]                // the server from which the last statement had no usable answer; nil: it had one

	q queue.Synchronizer

	mu       sync.Mutex
	talk     conversation.Conversation
	answer   *lettucecompat.Answer // see Answer
	knew     Moment                // when something showed who has the lock, or this process gave it back
	timer    *time.Timer
	tryAfter uint64 // the last command before the try came that waits, if one does: there is one at most
	flying   int32  // statements whose command has not returned
	busy     bool   // counted in Locks.unsettled, with a reference
	silenced bool   // the client is closed: nothing is stated at a time, only for somebody
}

func (b *base) its() *base { return b }

// Name returns the key's name in Redis.
func (b *base) Name() string { return b.name }

// Settings returns those with which the key is in use.
func (b *base) Settings() *Settings { return b.set }

// Use takes a reference, unless the key is over.
func (b *base) Use() bool {
	for {
		n := b.refs.Load()
		if n == 0 {
			return false
		}
		if b.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Over reports whether nobody has a reference any more.
func (b *base) Over() bool { return b.refs.Load() == 0 }

// busyLocked notes whether the key is in use by itself, and has a reference while it is. It returns true where its caller
// must call Done, which gives that back.
func (b *base) busyLocked(busy bool) (done bool) {
	if busy == b.busy {
		return false
	}
	if b.busy = busy; !busy {
		b.l.settled()
		return true
	}
	b.l.unsettled.Add(1)
	b.refs.Add(1)
	return false
}

// stirLocked notes that news has brought a settled conversation something to clean up, before a Close can miss it. It
// returns false where one has found nothing left: then it must not be taken in, and what it is about ends by itself.
func (b *base) stirLocked() bool {
	b.l.mu.Lock()
	defer b.l.mu.Unlock()
	if !b.l.final {
		b.busyLocked(true)
	}
	return !b.l.final
}

// report reports that a statement had no usable answer, or that it had one.
func (b *base) report(err error) {
	if err == nil {
		b.l.cfg.Reporter.Answered(b, b.failed.Swap(nil))
		return
	}
	shard := b.l.wire.Shard(b.name)
	b.failed.Store(&shard)
	b.l.cfg.Reporter.Failed(b, shard, err)
}

// Queue returns the queue of the key, to read and to re-enter.
func (b *base) Queue() *queue.Synchronizer { return &b.q }

// enqueue lets w enter the queue. For a try it notes which commands were sent before.
func (b *base) enqueue(w *queue.Waiter) (in bool, order queue.Order, err error) {
	if !w.Kind.IsTry() {
		return b.q.Acquire(w)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if in, order, err = b.q.Acquire(w); !in && err == nil {
		b.tryAfter = b.l.number.Load()
	}
	return in, order, err
}

// limited returns the context in which w waits. A try waits for one answer, and no longer than that may take. Where its own
// command was sent, that has this limit; where an answer to somebody else must come first, the context.
func (b *base) limited(ctx context.Context, w *queue.Waiter) (context.Context, context.CancelFunc) {
	if w.Kind.IsTry() {
		b.mu.Lock()
		sent := b.talk.LastCommand().N > b.tryAfter
		b.mu.Unlock()
		if !sent || b.set.Linger > 0 { // a second answer may decide
			return context.WithTimeoutCause(ctx, b.set.Timeout, errUnanswered)
		}
	}
	return ctx, func() {}
}

// takeLocked returns the next command that demand makes of the conversation, and that as it is once the command is sent: see
// conversation.Conversation.Next.
func (b *base) takeLocked(demand conversation.Demand, now Moment) (conversation.Conversation, conversation.Command, Moment) {
	n, at := b.l.number.Load()+1, conversation.Moment(now)
	talk, cmd, until := b.talk.Next(demand, n, at)
	if cmd.N > 0 { // only now a number is taken
		if taken := b.l.number.Add(1); taken != n {
			talk, cmd, until = b.talk.Next(demand, taken, at)
		}
	}
	return talk, cmd, Moment(until)
}

// sendsLocked notes that cmd is about to be sent.
func (b *base) sendsLocked(cmd *conversation.Command, now Moment) {
	b.flying++
	b.l.flying.Add(1)
	if cmd.Have > 0 {
		b.knew = now
	}
}

// wakeLocked sets the timer for until. k is the key whose base b is.
func (b *base) wakeLocked(k driver, until, now Moment) {
	switch {
	case until == never || b.silenced:
		b.stopLocked()
	case b.timer == nil:
		b.timer = time.AfterFunc(until-now, func() {
			k.hear(conversation.Event{Kind: conversation.Tick})
			k.speak(false)
		})
	default:
		b.timer.Reset(until - now)
	}
}

// silence ends all that the key does by itself.
func (b *base) silence() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.silenced = true
	b.stopLocked()
}

func (b *base) stopLocked() {
	if b.timer != nil {
		b.timer.Stop()
	}
}
