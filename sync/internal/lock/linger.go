package lock

import (
	"maps"
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// This file is how a process keeps a lock that none of its goroutines wants: see Settings.Linger. The queue says Lingers then,
// and to the conversation the unit is owned. Nothing is sent and nothing renewed, so a process that dies delays others by
// what is left of the lease. It ends when a message says that another client waits, at a close, or after a time that leaves
// half of the lease. A try waits in line for a moment, so that there is such a message.

// lingerPause is for how long the lock does not linger after another client was seen that had it or waited for it. Processes
// that take turns would make each other end a linger each time, for 1.5 round trips; now they do so once a second at most. A longer
// pause saves little more, and costs a process that has the lock to itself again two round trips for each owner.
const lingerPause = time.Second

// lingers reports whether nobody of this process has g or waits for it, which it keeps.
func (g *Held) lingers() bool { return g.k.q.Demand().Lingers && g.k.cur.Load() == g }

// lingersUntil is until when the grant may linger after o, which exits and may hand off; 0: not at all, since somebody may wait
// elsewhere: the message may be lost, so each Linger Redis is asked.
func (o *Owner) lingersUntil(may bool, now Moment) Moment {
	g, k := o.g, o.g.k
	if k.set.Linger == 0 || !may || int64(now) < k.pausedUntil.Load() || g.mustReturn(now) || !k.l.wire.Listening() {
		return 0
	}
	until := now + min(k.set.Linger, g.lease.Remaining(now)/2)
	k.lingersUntil.Store(int64(until))
	g.set(kept)
	return until
}

// lingersFrom: the last owner has left. Whoever waits here takes the grant; else it lingers.
func (g *Held) lingersFrom(until, now Moment) {
	g.k.wakeLingering(until, now)
	g.checkLinger(now) // a message that came before the queue let it linger has ended nothing
}

// wakeLingering sets a timer, unless one is set that fires no later. One serves many tenures; a later grant may last for less.
func (k *Key) wakeLingering(until, now Moment) {
	for set := k.timed.Load(); set == 0 || int64(until) < set; set = k.timed.Load() {
		if k.timed.CompareAndSwap(set, int64(until)) {
			link := k.link // k may be forgotten long before
			time.AfterFunc(until-now, func() {
				if k := link.Key(); k != nil {
					k.lingered(until)
				}
			})
			return
		}
	}
}

// lingered gives back what has lingered for long enough. set is for when its timer was set.
func (k *Key) lingered(set Moment) {
	if !k.timed.CompareAndSwap(int64(set), 0) || !k.q.Demand().Lingers {
		return // an earlier timer has come instead, or the next one to keep the grant sets it
	}
	if until, now := Moment(k.lingersUntil.Load()), k.l.now(); now < until {
		k.wakeLingering(until, now)
		return
	}
	k.endLinger()
}

// pauseLinger: another client was seen. A pause that runs is not prolonged.
func (k *Key) pauseLinger() {
	now := k.l.now()
	if until := k.pausedUntil.Load(); k.set.Linger > 0 && int64(now) >= until {
		k.pausedUntil.CompareAndSwap(until, int64(now+lingerPause))
	}
}

// rememberPauseLocked keeps the pause of k, which is not used any more, for the next Key of its name. Those that are over are
// forgotten each time they may be half of all.
func (l *Locks) rememberPauseLocked(k *Key) {
	until := Moment(k.pausedUntil.Load())
	if until == 0 || l.closing.Load() {
		return
	}
	now := l.now()
	if until <= now {
		return
	}
	if len(l.pauses) >= l.tooMany {
		maps.DeleteFunc(l.pauses, func(_ string, until Moment) bool { return until <= now })
		l.tooMany = 2*len(l.pauses) + 16
	}
	l.pauses[k.name] = until
}

// checkLinger releases g if it lingers and must not.
func (g *Held) checkLinger(now Moment) {
	if g.mustReturn(now) {
		g.k.endLinger()
	}
}

// mustReturn reports whether g must not linger: another client may wait for it, somebody says that it was deleted, or this client is
// closing.
func (g *Held) mustReturn(now Moment) bool {
	return g.k.othersMayWait(g.n, now) || g.said() || g.k.l.closing.Load()
}

// endLinger releases the grant that lingers. It reports whether there was one.
func (k *Key) endLinger() bool {
	order := k.q.EndLinger()
	k.carryOut(order)
	return order != queue.Nothing
}

// awaitCallLocked lets a try in front whose acquire cmd was answered with a place wait for what becomes of that. Where the lock
// lingers, three messages lead to a call: to the holder, its release, and the call.
func (k *Key) awaitCallLocked(cmd *conversation.Command) {
	if at, known := k.conv.SentAt(cmd.N); known && k.set.Linger > 0 && cmd.Keep == 0 && k.q.Demand().Try {
		now := k.l.now()
		k.patience = now + min(3*(now-Moment(at))+2*time.Millisecond, k.set.Timeout)
	}
}
