package lock

import (
	"time"

	"github.com/anteroom/anteroom/queue"
)

// This file is how a process keeps a lock that none of its goroutines wants: see Settings.Linger. The queue is Idle then,
// and to the conversation the unit is owned. Nothing is stated and nothing renewed, so a process that dies delays others by
// what is left of the lease. It ends when a message says that another client waits, at a close, or after a time that leaves
// half of the lease. A try waits in line for a moment, so that there is such a message.

// Idle reports whether nobody of this process has g or waits for it, which it keeps.
func (g *Held) Idle() bool { return g.k.q.Word().State() == queue.Idle && g.k.cur.Load() == g }

// keep ends the tenure of o, which exits, and keeps its grant. It changes nothing where that must not be, where o has
// another unit, or somebody waits here, or may wait elsewhere: the message may be lost, so each Linger Redis is asked.
func (o *Owner) keep(now time.Duration) bool {
	g, k := o.g, o.g.k
	if !g.mayPass(o, now) || k.somebody(g.n, now) {
		return false
	}
	lasts := min(k.set.Linger, g.lease.Load().Remaining(now)/2)
	k.idleUntil.Store(int64(now + lasts))
	if !k.q.Keep(o.number) {
		return false
	}
	if !k.timed.Swap(true) {
		time.AfterFunc(lasts, k.lingered)
	}
	k.recallFor(g.n) // what was heard before the queue was Idle has recalled nothing
	return true
}

// lingered gives back what has lingered for long enough. One timer serves many tenures: who finds it set leaves it.
func (k *Key) lingered() {
	k.timed.Store(false)
	if k.q.Word().State() != queue.Idle {
		return // the next one to keep the grant sets the timer
	}
	if left := Moment(k.idleUntil.Load()) - k.l.now(); left > 0 {
		if !k.timed.Swap(true) {
			time.AfterFunc(left, k.lingered)
		}
		return
	}
	k.recall()
}

// recallFor gives the unit back if nobody wants it here and another client waits for it, or this one is closing.
func (k *Key) recallFor(unit uint64) {
	if k.contended.Load() == unit || k.l.closing.Load() {
		k.recall()
	}
}

// recall gives back what nobody wants here.
func (k *Key) recall() { k.carryOut(k.q.Recall()) }

// patientLocked reports whether a try whose ask s was answered with a place waits for what becomes of that. Where the lock
// lingers, three messages lead to a call: to the holder, its release, and the call.
func (k *Key) patientLocked(s *Statement) bool {
	at, known := k.talk.sentAt(s.N)
	if k.set.Linger == 0 || s.Keep > 0 || !known {
		return false
	}
	now := k.l.now()
	k.patience = now + min(3*(now-at)+2*time.Millisecond, k.set.Timeout)
	return true
}
