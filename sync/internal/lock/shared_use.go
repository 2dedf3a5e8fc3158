package lock

import (
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// Times of shared locks.
const (
	linger    = 10 * time.Millisecond // units that nobody uses are kept for so long
	asksAfter = time.Second           // who lets goroutines in without Redis asks after so long whether another client waits
)

// use is what the goroutines of a SharedKey make of its units: how long units stay that nobody uses, and when Redis is asked
// whether another client waits.
type use struct {
	contention conversation.Contention
	linger     conversation.Linger
	idle       bool   // nobody used the units when they were to be renewed
	askedAt    Moment // when Redis was asked last, by whatever command, whether another client waits
	admissions uint32 // of the queue when it was asked by a renewal
	lastShown  uint64 // the last answer or call that showed the units
	lastServed uint64 // the last answer or call that counted
	of         int64  // the capacity that the units count with in Redis, or less. With a place: those that a call may give, or less
	sent       ofUnits
	sentN      uint64 // the command that has said so
}

// ofUnits are the capacities of a Semaphore that what a command keeps and wants counts with. The second is at most the first. If it
// is less, Redis has to give what is kept anew.
type ofUnits struct{ keep, want int64 }

// usableLocked reports whether owners may rely on the units.
func (b *base) usableLocked() bool { return b.talk.State == conversation.Holding }

// unitsLocked returns how many the client has, but for those that it is to give back again.
func (b *base) unitsLocked() int64 {
	if b.talk.State == conversation.Leaving {
		return 0
	}
	return b.talk.Units
}

// contendedLocked reports whether another client waits for the units.
func (k *SharedKey) contendedLocked() bool { return k.use.contention.Waits }

// meansLocked returns what d means for the conversation, and when to ask again.
func (k *SharedKey) meansLocked(d *queue.Demand, now Moment) (conversation.Linger, conversation.Demand, Moment) {
	waits := d.Waiting > 0 && !d.Barred // otherwise somebody of this process has to leave first
	u := conversation.Use{Used: d.Used, Readers: d.Readers > 0, Waiting: waits, Idle: d.Idle, Admissions: d.Admissions}
	if k.usableLocked() {
		u.Units = k.talk.Units
	}
	l, keep, until := k.use.linger.Keep(u, d.Keep, conversation.Moment(now))
	at, demand := Moment(until), conversation.Demand{Keep: keep, Want: keep}
	if waits {
		demand.Want, demand.Try = max(keep, d.Want), d.Try
		demand.Again = d.Again && demand.Want == keep
	}
	of := k.ofLocked(d)
	demand.Again = demand.Again || of.want < of.keep // Fresh units may suffice, and count with too much
	demand.News = k.usableLocked() && of.keep > k.use.of || k.talk.InLine && of.want != k.use.sent.want
	if k.use.idle && d.Used == 0 && d.Waiting == 0 { // what nobody uses is never renewed
		demand.Keep, demand.Want = 0, 0
	}
	if d.Contended && d.TurnEnds > now {
		at = min(at, d.TurnEnds)
	}
	return l, demand, at
}

// ofLocked returns the capacities that count. What Redis has given of a capacity may be too much for a lesser one.
func (k *SharedKey) ofLocked(d *queue.Demand) ofUnits {
	of := max(d.KeepOf, k.use.of)
	if d.Waiting > 0 && !d.Barred {
		return ofUnits{of, d.WantOf}
	}
	return ofUnits{of, of}
}

// givesLocked reports whether the next command gives units back.
func (k *SharedKey) givesLocked(d *queue.Demand, now Moment) bool {
	_, demand, _ := k.meansLocked(d, now)
	return k.talk.Gives(demand)
}

// asksLocked reports whether it is time for a renewal that asks whether another client waits: goroutines have come in without
// Redis, and the message that says so may be lost.
func (k *SharedKey) asksLocked(d *queue.Demand, now Moment) bool {
	u := &k.use
	if !k.usableLocked() || u.contention.Waits || d.Admissions == u.admissions || now < u.askedAt+asksAfter {
		return false
	}
	u.askedAt, u.admissions = now, d.Admissions
	return true
}

// handleLocked takes in an event: see conversation.Conversation.Handle. of: the units of an answer count with that capacity.
func (k *SharedKey) handleLocked(e conversation.Event, of int64, now Moment) conversation.Effect {
	u, shows := &k.use, e.Kind == conversation.Called
	answers := e.Kind < conversation.Silence && k.talk.Unanswered() && e.N == k.talk.LastCommand().N
	if answers || shows && k.talk.Believes(e.N) {
		u.contention, u.lastServed = u.contention.Answered(e.N, e.Contended), e.N
	}
	if answers {
		u.askedAt = now
	}
	switch {
	case answers && e.Units > 0 && of > 0:
		u.of = of
	case answers && e.Units == 0, shows && e.N == k.talk.LastCommand().N:
		u.of = u.sent.want
	}
	talk, f := k.talk.Handle(e, conversation.Moment(now))
	if k.talk = talk; (answers || shows) && talk.Units > 0 {
		u.lastShown = max(u.lastShown, e.N)
	}
	k.settledLocked()
	return f
}

// notifiedLocked notes that another client waits: a message about record n says so.
func (k *SharedKey) notifiedLocked(n uint64) {
	k.use.contention = k.use.contention.Notified(n, &k.talk)
	k.settledLocked()
}

// settledLocked forgets what was known of units that the client does not have any more.
func (k *SharedKey) settledLocked() {
	if k.unitsLocked() == 0 && !k.talk.InLine && !k.talk.Unanswered() {
		k.use.of = 0
	}
	if k.unitsLocked() == 0 {
		k.use.contention.Waits = false
	}
}
