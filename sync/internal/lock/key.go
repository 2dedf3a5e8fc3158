// Package lock is the core: how one process and Redis agree on who has a lock.
//
// Read package conversation first. Then what all kinds of lock have in common: base.go and say.go, which drive it; acquire.go, a
// waiter's way in; locks.go, which hears messages; and renewals.go. Of a Mutex key.go, owner.go and exit.go have the rest, and
// grant.go, release.go and loss.go what becomes of a grant; of an RWMutex and a Semaphore the files that begin with shared.
// docs/internals/architecture.md has a table of them, and docs/internals/protocol.md the same as Redis sees it.
package lock

import (
	"sync/atomic"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// Key is what a client keeps for one key in use: the queue of its goroutines, and its conversation with Redis.
//
// Code that changes what the goroutines want, or hears something, calls speak or kick, or for a release Held.release.
// These state what the conversation says is to be stated, and set the timer for when it has something to say by itself.
type Key struct {
	base
	link *Link

	cur          atomic.Pointer[Held] // the last one
	renews       atomic.Uint64        // the unit that was made to last because too little was left of it
	contended    atomic.Uint64        // the newest unit for which another client is known to wait
	deleted      atomic.Uint64        // the newest unit that a message says was deleted; its grant may be still to come
	asked        atomic.Int64         // the Moment of the last answer that would have said so
	others       atomic.Int64         // the Moment at which a foreign holder was last seen; 0: never
	lingersUntil atomic.Int64         // the Moment until which the lock lingers, or last did
	timed        atomic.Int64         // the Moment at which the first timer of lingered fires; 0: none is set
	pausedUntil  atomic.Int64         // the Moment before which the lock does not linger: see pauseLinger

	// Guarded by mu.
	unwatch  chan struct{} // ends listening for a foreign holder's release; nil: nobody listens
	retryAt  Moment        // after a lease that could not be secured nothing is pending until then
	retries  int           // so many in a row could not
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

// Leaves reports whether something of this client may be in Redis that is held or waited for no more.
func (k *Key) Leaves() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.busy && k.demandLocked(k.l.now()) == conversation.Demand{}
}

// Owner returns who owns the lock in this process, nil where nobody does. A nil k has none.
func (k *Key) Owner() *Owner {
	if k == nil {
		return nil
	}
	if g := k.Held(); g != nil {
		return g.Current()
	}
	return nil
}

// Held returns the last grant, nil before the first; it may have ended.
func (k *Key) Held() *Held { return k.cur.Load() }

// quietUntilLocked returns until when nothing is pending, though somebody may wait.
func (k *Key) quietUntilLocked() Moment {
	if g := k.cur.Load(); g != nil {
		return max(k.retryAt, g.mark)
	}
	return k.retryAt
}

// hasLocked reports whether this client has the unit.
func (k *Key) hasLocked() bool { return k.unitsLocked() > 0 }

// openLocked returns the record that was given back, or taken, while no answer says what became of it; 0: none.
func (k *Key) openLocked() uint64 {
	if k.talk.State == conversation.Holding {
		return 0
	}
	return k.talk.OpenRecord()
}

// demandLocked returns what the goroutines want.
func (k *Key) demandLocked(now Moment) conversation.Demand {
	switch d := k.q.Demand(); {
	case d.Units > 0:
		return conversation.Demand{Keep: 1, Want: 1}
	case d.Want > 0 && !k.l.closing.Load() && now >= k.quietUntilLocked(): // else who is parked in Lock stays parked
		return conversation.Demand{Want: 1}
	}
	return conversation.Demand{}
}

// nextLocked takes what there is to send now. If that is nothing, it returns nil and sets the timer.
func (k *Key) nextLocked() *conversation.Command {
	now := k.l.now()
	pause := k.quietUntilLocked()
	k.checkTryLocked(now, pause)
	demand := k.demandLocked(now)
	pauses := [...]Moment{pause, k.patience, 0}
	var takes *Taking
	if demand.Want > demand.Keep {
		if takes = k.taker(); takes != nil {
			demand.Seize, pauses[2] = now >= takes.notBefore, takes.notBefore
		}
	}
	var next conversation.Command
	until := never
	if demand.Keep == 0 || k.talk.State == conversation.Holding { // otherwise its owner is notified of a loss, or still to come
		k.talk, next, until = k.takeLocked(demand, now)
	}
	var cmd *conversation.Command
	if next.N > 0 {
		sent := next // only what is sent is to be allocated
		if cmd = &sent; cmd.Seize {
			k.took, k.takes = cmd.N, takes
		}
		k.sendsLocked(cmd, now)
	}
	if k.busyLocked(k.talk.State != conversation.Idle || k.flying > 0) {
		defer k.Done()
	}
	if cmd == nil {
		for _, at := range pauses {
			if now < at {
				until = min(until, at)
			}
		}
		k.wakeLocked(k, until, now)
	}
	return cmd
}

// checkTryLocked refuses a try in front that would have to wait for more than the answer to the first command that was sent after
// it came. A pause after failures is not its own, so it does not wait for that.
func (k *Key) checkTryLocked(now, pause Moment) {
	if d := k.q.Demand(); d.Units > 0 || !d.Try {
		return
	}
	asked := k.talk.LastCommand().N > k.tryAfter
	switch {
	case now < Moment(k.talk.SilentUntil()), now < pause:
		k.q.Refuse(ErrRefused)
	case k.talk.Unanswered():
	case asked && k.talk.State == conversation.Fresh:
		k.q.Refuse(errLate)
	case asked && k.talk.InLine && now < k.patience:
	case asked && k.talk.InLine:
		k.q.Refuse(ErrRefused)
	default:
		k.talk, _ = k.talk.Handle(conversation.Event{Kind: conversation.Retry}, conversation.Moment(now))
	}
}

func (k *Key) speak(mayBeHeld bool) { speak(k, mayBeHeld) }
func (k *Key) kick()                { kick(k) }

func (k *Key) silence() {
	k.base.silence()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unwatchLocked()
}

// hear takes in an event, and carries out what that means. Its caller then calls speak or kick.
func (k *Key) hear(e conversation.Event) { k.take(e, nil, nil) }

// take is hear. cmd is what e answers, if it is an answer, and a that as it came.
func (k *Key) take(e conversation.Event, cmd *conversation.Command, a *lettucecompat.Answer) (settled bool) {
	if e.Contended {
		k.noteContended(e.Record)
	}
	k.mu.Lock()
	g, had := k.cur.Load(), k.talk.Grant.Record // before enterLocked makes the next one
	if e.Kind == conversation.Failed && e.N == k.took {
		k.took = 0
	}
	before := k.talk
	var f conversation.Effect
	k.talk, f = k.talk.Handle(e, k.l.moment())
	if !k.busy && k.talk.State != conversation.Idle && !k.stirLocked() {
		k.talk = before
		k.mu.Unlock()
		return false
	}
	got := k.talk.Grant.Record
	if e.Kind == conversation.Has && e.Record == k.took && e.Record == got {
		k.takes.lasts(e, &k.talk)
	}
	called := got != had && k.hasLocked() && got != k.took && (cmd == nil || cmd.InLine && cmd.Keep > 0 && got != cmd.N)
	if called { // another client had it; the answer that says so may be still to come
		k.pauseLinger()
	}
	if cmd != nil {
		k.flying--
		k.answeredLocked(cmd, a)
		if e.Kind == conversation.Waits {
			k.awaitCallLocked(cmd)
		}
	}
	gone, givenUp := false, false
	if g != nil && g.concludeLocked(cmd, e, f) {
		gone, givenUp = g.stage == missing && g.bequestLocked() == nil, g.stage == lapsed && g.freed != nil
	}
	settled = f == conversation.Granted && k.enterLocked()
	switch {
	case !k.talk.InLine:
		k.unwatchLocked()
	case e.Kind == conversation.Waits && a.Ahead <= nearFront && !k.l.wire.Ours(a.Holder):
		k.watchLocked()
	}
	k.mu.Unlock()
	if f == conversation.Vanished { // of g, which was granted
		g.lease.Lose(renewal.Cause{Reason: renewal.ReasonGone})
	}
	if gone {
		k.kick() // who waits does not wait for an Observer that is slow
		g.verdict(ReleaseResult{})
	}
	if called {
		k.l.cfg.Reporter.Called(k, cmd != nil)
	}
	if givenUp {
		k.l.cfg.Reporter.ReleaseGivenUp(g)
	}
	return settled
}

// enterLocked makes the grant that Redis has given, and lets the first in. Where nobody may come in, or nobody wants it any
// more, it returns false, and the conversation gives it back.
func (k *Key) enterLocked() bool {
	g := k.newGrantLocked()
	if !k.l.closing.Load() {
		if taken, _ := k.q.Granted(g.n, 1, false, queue.Forever); taken {
			return true
		}
	}
	g.lease.End()
	k.l.unregister(g, nil)
	return false
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
		k.kick()
	}
}
