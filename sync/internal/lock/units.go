package lock

import (
	"sync/atomic"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// This file is what the units of an RWMutex or a Semaphore are used for, and what that makes the key state.

// Times of shared locks.
const (
	linger    = 10 * time.Millisecond // units that nobody uses are kept for so long
	asksAfter = time.Second           // who lets goroutines in without Redis asks after so long whether another client waits
)

// units is what only the Key of an RWMutex or a Semaphore has.
type units struct {
	lossy atomic.Bool  // a grant was lost, and somebody who was inside has not left
	slept atomic.Int64 // the suspensions that the deadline of the queue counts with

	// Guarded by Key.mu.
	use
	deleted uint64  // the newest record of which somebody says that it was deleted on purpose
	least   int64   // the capacity that counts
	ended   Moment  // when all units were given back last
	next    *giving // what is to be given back by the next command
}

func newUnits(s *Settings) *units {
	u := &units{ended: -linger, least: s.Capacity}
	if s.Capacity == 0 {
		u.least = lettucecompat.AllUnits
	}
	return u
}

// use is what the goroutines make of the units: how long units stay that nobody uses, and when Redis is asked
// whether another client waits.
type use struct {
	contention conversation.Contention
	linger     conversation.Linger
	idle       bool   // nobody used the units when they were to be renewed
	askedAt    Moment // when Redis was asked last, by whatever command, whether another client waits
	admissions uint32 // of the queue when it was asked by a renewal
	lastShown  uint64 // the last answer or call that showed the units
	lastServed uint64 // the last answer or call that counted
	of         int64  // the units count with this capacity in Redis, or with less. With a place: so do those that a call may give
	sent       capacities
	sentN      uint64 // the command that has said so
}

// capacities are the capacities of a Semaphore that what a command keeps and wants counts with. The second is at most the first. If it
// is less, Redis has to give what is kept anew.
type capacities struct{ keep, want int64 }

// contendedLocked reports whether another client waits for the units.
func (k *Key) contendedLocked() bool { return k.u.contention.Waits }

// meansLocked returns what d means for the conversation, and when to ask again.
func (k *Key) meansLocked(d *queue.Demand, now Moment) (conversation.Linger, conversation.Demand, Moment) {
	waits := d.Waiting > 0 && !d.Barred // otherwise somebody of this process has to leave first
	u := conversation.Use{Used: d.Used, Readers: d.Readers > 0, Waiting: waits, Idle: d.Idle, Admissions: d.Admissions}
	if k.usableLocked() {
		u.Units = k.conv.Units
	}
	l, keep, until := k.u.linger.Keep(u, d.Keep, conversation.Moment(now))
	at, demand := Moment(until), conversation.Demand{Keep: keep, Want: keep}
	if waits {
		demand.Want, demand.Try = max(keep, d.Want), d.Try
		demand.Again = d.Again && demand.Want == keep
	}
	of := k.ofLocked(d)
	demand.Again = demand.Again || of.want < of.keep // Fresh units may suffice, and count with too much
	demand.News = k.usableLocked() && of.keep > k.u.of || k.conv.InLine && of.want != k.u.sent.want
	if d.Over && d.Used > 0 && d.Waiting == 0 && k.usableLocked() { // who waited may be served, or have given up: an answer says so
		ask := k.u.askedAt + asksAfter
		if demand.News = demand.News || now >= ask; now < ask {
			at = min(at, ask)
		}
	}
	if k.u.idle && d.Used == 0 && d.Waiting == 0 { // what nobody uses is never renewed
		demand.Keep, demand.Want = 0, 0
	}
	if d.Contended && d.TurnEnds > now {
		at = min(at, d.TurnEnds)
	}
	return l, demand, at
}

// ofLocked returns the capacities that count. What Redis has given of a capacity may be too much for a lesser one.
func (k *Key) ofLocked(d *queue.Demand) capacities {
	of := max(d.KeepOf, k.u.of)
	if d.Waiting > 0 && !d.Barred {
		return capacities{of, d.WantOf}
	}
	return capacities{of, of}
}

// givesLocked reports whether the next command gives units back.
func (k *Key) givesLocked(d *queue.Demand, now Moment) bool {
	_, demand, _ := k.meansLocked(d, now)
	return k.conv.Gives(demand)
}

// asksLocked reports whether it is time for a renewal that asks whether another client waits: goroutines have come in without
// Redis, and the message that says so may be lost.
func (k *Key) asksLocked(d *queue.Demand, now Moment) bool {
	u := &k.u.use
	if !k.usableLocked() || u.contention.Waits || d.Admissions == u.admissions || now < u.askedAt+asksAfter {
		return false
	}
	u.askedAt, u.admissions = now, d.Admissions
	return true
}

// handleLocked takes in an event: see conversation.Conversation.Handle. of: the units of an answer count with that capacity.
func (k *Key) handleLocked(e conversation.Event, of int64, now Moment) conversation.Effect {
	u, shows := &k.u.use, e.Kind == conversation.Called
	answers := e.Kind < conversation.Silence && k.conv.Unanswered() && e.N == k.conv.LastCommand().N
	if answers || shows && k.conv.Believes(e.N) {
		u.contention, u.lastServed = u.contention.Answered(e.N, e.Contended), e.N
	}
	if answers {
		u.askedAt = now
	}
	switch {
	case answers && e.Units > 0 && of > 0:
		u.of = of
	case answers && e.Units == 0, shows && e.N == k.conv.LastCommand().N:
		u.of = u.sent.want
	}
	conv, f := k.conv.Handle(e, conversation.Moment(now))
	if k.conv = conv; (answers || shows) && conv.Units > 0 {
		u.lastShown = max(u.lastShown, e.N)
	}
	k.settledLocked()
	return f
}

// notifiedLocked notes that another client waits: a message about record n says so.
func (k *Key) notifiedLocked(n uint64) {
	k.u.contention = k.u.contention.Notified(n, &k.conv)
	k.settledLocked()
}

// settledLocked forgets what was known of units that the client does not have any more.
func (k *Key) settledLocked() {
	if k.unitsLocked() == 0 && !k.conv.InLine && !k.conv.Unanswered() {
		k.u.of = 0
	}
	if k.unitsLocked() == 0 {
		k.u.contention.Waits = false
	}
}

// unitsDemandLocked returns what the goroutines need.
func (k *Key) unitsDemandLocked(now Moment) queue.Demand {
	d := k.q.Demand()
	if d.Contended && now >= d.TurnEnds { // which the queue notices only when somebody comes or leaves
		k.q.Contended()
		d = k.q.Demand()
	}
	if d.Try && (now < Moment(k.conv.SilentUntil()) || d.Barred) { // a try waits for answers only, and none is to come
		k.q.Refuse(ErrRefused)
		d = k.q.Demand()
	}
	if d.Idle { // only if nobody was here a moment before: who comes again and again, and keeps the Key, asks Redis once
		d.Idle = k.cur.Load().since-k.u.ended > linger
	}
	if k.l.closing.Load() { // who is parked in Lock stays parked
		d.Idle, d.Waiting = true, 0
	}
	return d
}

// nextUnitsLocked takes the command that is due now. Where there is none, which has no number, it sets the timer.
func (k *Key) nextUnitsLocked() conversation.Command {
	for {
		if k.u.lossy.Load() { // somebody may have left by the queue alone
			k.exitedLocked(k.cur.Load())
		}
		now := k.l.now()
		d := k.unitsDemandLocked(now)
		lingers, demand, at := k.meansLocked(&d, now)
		conv, s, until := k.planLocked(demand, now)
		before := k.usableLocked()
		of := k.ofLocked(&d)
		if s.N > 0 {
			if conv.State == conversation.Holding && !k.q.CountsWith(of.keep) || s.Keep < d.Units && !k.q.Shrink(s.Keep) {
				continue // somebody has come in
			}
			if s.Keep == 0 && before {
				g := k.cur.Load()
				if !g.lease.End() {
					return conversation.Command{} // it was lost, and Lost is on its way
				}
				k.l.unregister(g, nil)
				k.u.ended = now
			}
			k.sendsLocked(&s, now)
			k.u.sent, k.u.sentN, k.u.of = of, s.N, of.keep
		}
		k.conv, k.u.linger, k.u.idle = conv, lingers, false
		k.settledLocked()
		switch {
		case s.Keep < s.Have && before:
			if k.u.next == nil {
				k.u.next = &giving{g: k.cur.Load()}
			}
			k.u.next.n, k.u.next.before, k.freeing, k.u.next = s.N, k.freeing, k.u.next, nil
		case k.u.next != nil && k.usableLocked() && !k.givesLocked(&d, now): // somebody has come in
			k.u.next.endLocked(ExitResult{HandedOff: true})
			k.u.next = nil
		}
		if k.busyLocked(conv.State != conversation.Idle || k.flying > 0 || d.Units > 0 || d.Used > 0 || d.Lost) {
			defer k.Done()
		}
		if s.N == 0 {
			if k.asksLocked(&d, now) {
				if g := k.cur.Load(); g.lease.Healthy() { // otherwise it has the pauses of an outage
					g.lease.Hurry()
				}
			}
			k.wakeLocked(min(until, at), now)
		}
		return s
	}
}
