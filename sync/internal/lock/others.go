package lock

import (
	"sync/atomic"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// This file is what a key knows of others: a foreign holder, and whether another client waits for its unit.

const (
	othersTime    = 10 * time.Second // a foreign holder is believed to come again for so long
	contendedTime = time.Second      // a turn that has not asked for longer, or for Linger, asks at its end
)

// watchLocked listens for the release of a foreign holder, which calls nobody.
func (k *Key) watchLocked() {
	if k.unwatch != nil || k.silenced {
		return
	}
	w, end := k.l.wire.Watch(k.name), make(chan struct{})
	k.unwatch = end
	go func() {
		defer w.Close()
		for {
			select {
			case <-w.C():
				k.handle(conversation.Event{Kind: conversation.Retry})
				k.sendNext()
			case <-end:
				return
			}
		}
	}()
}

func (k *Key) unwatchLocked() {
	if k.unwatch != nil {
		close(k.unwatch)
		k.unwatch = nil
	}
}

// foreign reports whether a foreign holder was seen lately.
func (k *Key) foreign(now Moment) bool {
	at := k.others.Load()
	return at != 0 && now-Moment(at) < othersTime
}

// heardOfOthers notes what the answer a to cmd says of other clients, and so when e has the place confirmed.
func (k *Key) heardOfOthers(cmd *conversation.Command, e *conversation.Event, a *lettucecompat.Answer) {
	if e.Kind >= conversation.Silence {
		return
	}
	if cmd.N > k.l.unheard.Load() {
		k.asked.Store(int64(k.l.now()))
	}
	if e.Kind == conversation.Waits {
		k.pauseLinger()
		if k.set.StringHolders && a.Ahead <= nearFront {
			e.After = min(e.After, stringPoll)
		}
	}
	if (a.Word == lettucecompat.WordWaits || a.Word == lettucecompat.WordRefused) && (a.Holder == "" && k.set.StringHolders || !k.l.wire.Ours(a.Holder)) {
		k.others.Store(int64(k.l.now()))
	}
}

// notified takes in a message: another client waits for the units of record n.
func (k *Key) notified(n uint64) {
	if k.u != nil {
		k.unitsWanted(n)
		return
	}
	k.noteContended(n)
	if g := k.cur.Load(); g != nil {
		g.checkLinger(k.l.now())
	}
}

// unheard: messages may have been lost.
func (k *Key) unheard() {
	if k.u != nil {
		if g := k.Held(); g != nil {
			g.lease.Hurry() // its answer says whether another client waits
		}
		return
	}
	k.asked.Store(int64(-k.set.askAfter()))
	k.endLinger()
}

// noteContended notes that another client waits for a unit.
func (k *Key) noteContended(unit uint64) {
	k.pauseLinger()
	k.l.newest(&k.contended, unit)
}

// newest keeps the unit that a message is about, if it is the newest such. The message may come before the answer that gives the
// unit, and one about an earlier unit after it. Anybody can send one, so it must not be about a later one than there is.
func (l *Locks) newest(known *atomic.Uint64, unit uint64) {
	for old := known.Load(); unit > old && unit <= l.number.Load(); old = known.Load() {
		if known.CompareAndSwap(old, unit) {
			return
		}
	}
}

// othersMayWait reports whether another client may wait for the unit, which this client has.
func (k *Key) othersMayWait(unit uint64, now Moment) bool {
	return k.contended.Load() == unit || now-Moment(k.asked.Load()) > k.set.askAfter()
}

// askAfter is how long after an answer a turn asks at its end.
func (s *Settings) askAfter() time.Duration { return max(contendedTime, s.Linger) }
