package lock

import (
	"sync/atomic"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// Key is what a client keeps for one key in use: the queue of its goroutines, and its conversation with Redis.
//
// Code that changes what the goroutines want, or hears something, calls speak or kick, or for a release Held.release.
// These state what the conversation says is to be stated, and set the timer for when it has something to say by itself.
type Key struct {
	base
	q    queue.Synchronizer
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
	talk     Conversation
	answer   *lettucecompat.Answer // see Answer
	knew     Moment                // when something showed who has the lock, or this process gave it back
	unwatch  chan struct{}         // ends listening for a foreign holder's release; nil: nobody listens
	retryAt  Moment                // after a lease that could not be secured nothing is pending until then
	retries  int                   // so many in a row could not
	patience Moment                // until then a try waits, in case the lock lingers elsewhere
	takes    *Taking               // who has ordered the last statement that takes the lock, talk.took
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

// Queue returns the queue of the key, to read and to re-enter.
func (k *Key) Queue() *queue.Synchronizer { return &k.q }

// Leaves reports whether something of this client may be in Redis that is held or waited for no more.
func (k *Key) Leaves() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.busy && k.demandLocked(k.l.now()) == Quiet
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

// Answer returns what was heard last of who has the lock, or why nothing was; nil since somebody of this process had it.
func (k *Key) Answer() *lettucecompat.Answer {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.answer
}

// quietUntilLocked returns until when nothing is pending, though somebody may wait.
func (k *Key) quietUntilLocked() Moment {
	if g := k.cur.Load(); g != nil {
		return max(k.retryAt, g.mark)
	}
	return k.retryAt
}

// demandLocked returns what the goroutines want.
func (k *Key) demandLocked(now Moment) Demand {
	switch k.q.Word().State() {
	case queue.Acquiring:
		if k.l.closing.Load() || now < k.quietUntilLocked() { // who is parked in Lock stays parked
			return Quiet
		}
		return Pending
	case queue.Granted, queue.Owned, queue.Lingers, queue.Releasing:
		return Owned
	}
	return Quiet
}

// nextLocked takes what there is to state now. Where that is nothing, it returns nil and sets the timer.
func (k *Key) nextLocked() *Statement {
	now := k.l.now()
	pause := k.quietUntilLocked()
	k.checkTryLocked(now, pause)
	demand, n := k.demandLocked(now), k.l.number.Load()+1
	var takes *Taking
	if demand == Pending {
		if takes = k.taker(); takes != nil {
			demand = OutOfTurn
		}
	}
	talk, s, until := k.talk.Next(demand, n, now)
	if s != nil { // only now a number is taken
		if taken := k.l.number.Add(1); taken != n {
			talk, s, until = k.talk.Next(demand, taken, now)
		}
	}
	k.talk = talk
	if s != nil {
		if s.Want == 2 {
			s.By, k.takes = takes, takes
		}
		k.flying++
		k.l.flying.Add(1)
		if s.Have == Unit {
			k.knew = now
		}
	}
	if k.busyLocked(!talk.Settled() || k.flying > 0) {
		defer k.Done()
	}
	if s == nil {
		for _, at := range []Moment{pause, k.patience} {
			if now < at {
				until = min(until, at)
			}
		}
		k.wakeLocked(k, until, now)
	}
	return s
}

// checkTryLocked refuses a try in front that would have to wait for more than answers, the one to its ask among them. A pause
// after failures is not its own, so it does not wait for that.
func (k *Key) checkTryLocked(now, pause Moment) {
	if k.q.Word().State() != queue.Acquiring || !k.tries() {
		return
	}
	switch {
	case k.talk.Have() == Unit && !k.talk.entered:
		k.q.Refuse(errLate)
	case k.talk.Have() == Place && now < k.patience:
	case k.talk.Have() == Place, now < k.talk.not, now < pause:
		k.q.Refuse(ErrRefused)
	case !k.talk.unconfirmed:
		k.talk = k.talk.soon(now, now)
	}
}

func (k *Key) timerFired() {
	k.hear(News{Word: Clock})
	k.speak(false)
}

// speak states what there is to state now, and returns after the answer. mayBeHeld is as in lettucecompat.Statement.
func (k *Key) speak(mayBeHeld bool) {
	k.mu.Lock()
	s := k.nextLocked()
	k.mu.Unlock()
	if s != nil {
		k.say(s, mayBeHeld)
	}
}

// kick is speak for callers that must not be held up.
func (k *Key) kick() {
	k.mu.Lock()
	s := k.nextLocked()
	k.mu.Unlock()
	if s != nil {
		go k.say(s, false)
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

// hear takes in news, and carries out what that means. Its caller then calls speak or kick.
func (k *Key) hear(h News) { k.take(h, nil, nil) }

// take is hear. s is what h answers, if it is an answer, and a that as it came.
func (k *Key) take(h News, s *Statement, a *lettucecompat.Answer) Event {
	k.mu.Lock()
	g, had := k.cur.Load(), k.talk.Grant.Unit // before enterLocked makes the next one
	var e Event
	k.talk, e = k.talk.Heard(h, k.l.now())
	got := k.talk.Grant.Unit
	if h.Word == Has && h.Unit == k.talk.took && h.Unit == got {
		k.takes.lasts(h, &k.talk)
	}
	called := got != had && got != 0 && got != k.talk.took && (s == nil || s.Have == Place && got != s.N)
	if s != nil {
		k.flying--
		k.answeredLocked(s, a)
		if h.Word == Waits {
			k.patientLocked(s)
		}
	}
	gone, givenUp := false, false
	if g != nil && g.concludeLocked(s, h, e) {
		gone, givenUp = g.stage == missing && g.bequestLocked() == nil, g.stage == lapsed && g.freed != nil
	}
	if e == Granted && !k.enterLocked() {
		e = None
	}
	switch {
	case k.talk.Have() != Place:
		k.unwatchLocked()
	case h.Word == Waits && a.Ahead <= nearFront && !k.l.wire.Ours(a.Holder):
		k.watchLocked()
	}
	k.mu.Unlock()
	if e == Vanished { // of g, which was granted
		g.lease.Load().Lose(renewal.Cause{Reason: renewal.ReasonGone})
	}
	if gone {
		k.kick() // who waits does not wait for an Observer that is slow
		g.verdict(ReleaseResult{})
	}
	if called {
		k.l.cfg.Reporter.Called(k, s != nil)
	}
	if givenUp {
		k.l.cfg.Reporter.ReleaseGivenUp(g)
	}
	return e
}

// answeredLocked keeps the answer a to s for who gives up: not an older one, nor a good one to what wants nothing, nor any
// while this process has the lock.
func (k *Key) answeredLocked(s *Statement, a *lettucecompat.Answer) {
	if s.N == k.talk.last && !k.talk.entered && (a.Err != nil || s.Want == 1) {
		k.answer = a
		if a.Err == nil && a.Word != lettucecompat.WordVoid {
			k.knew = k.l.now()
		}
	}
}

// enterLocked makes the grant that Redis has given, and lets the first in. Where nobody may come in, or nobody wants it any
// more, it returns false, and the conversation gives it back.
func (k *Key) enterLocked() bool {
	g := k.newGrantLocked()
	if !k.l.closing.Load() && k.q.Granted(g.n) {
		return true
	}
	g.lease.Load().End()
	k.l.unregister(g, nil)
	return false
}

// carryOut carries out an order of the queue.
func (k *Key) carryOut(o queue.Order) {
	switch o {
	case queue.Nothing:
	case queue.SendRelease: // the waiter for whom the grant came has given up, or it has lingered
		if g := k.cur.Load(); g != nil {
			g.giveBack()
		}
	default:
		k.kick()
	}
}
