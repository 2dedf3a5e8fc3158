package lock

import (
	"cmp"
	"time"

	"github.com/anteroom/anteroom/queue"
)

// This file is the conversation about a lock that several clients may have together: a Semaphore, of whose units each has
// some, or an RWMutex, which is a semaphore of lettucecompat.AllUnits. A reader needs one of them, and a writer all.
//
// The rules are those of Conversation, with numbers in place of one unit. A statement says how many units the client has,
// how many of them it keeps at most, and how many it wants:
//
//	ask         -  0  want     nothing is had, and nothing of an earlier ask is kept
//	confirm     p  want want   what a call on its way gives is kept
//	more        u  want want   likewise
//	renew       u  u  u        takes back what no answer has said
//	shrink      u  k  k        also leaves the line
//	turn        u  k  want     gives back what nobody here uses, since others wait, and waits in line
//	wait again  u  u  u again  waits in line though it has enough: who waits here would keep others out
//	release     u  0  0
//	leave       -  0  0        also what cleans up
//
// What is sent is given back: from before a statement is sent its client relies on at most what that keeps, and no call of
// a smaller number counts that may give more (floor). At most one statement is unconfirmed at a time.

// Times of shared locks.
const (
	linger  = 10 * time.Millisecond // units that nobody uses are kept for so long
	hearsBy = time.Second           // who lets others in without Redis asks after so long whether another client waits
)

// UnitsStatement is the one command about a shared lock.
type UnitsStatement struct {
	N     uint64
	Since uint64 // with units: an older record is not had
	Place bool   // it has no units, and a place
	Have  int64
	Keep  int64
	Want  int64
	Again bool // it waits in line though it has what it wants
	Try   bool // it does not wait in line
}

func (s UnitsStatement) same(o UnitsStatement) bool {
	s.N, s.Since, o.N, o.Since = 0, 0, 0, 0
	return s == o
}

// UnitsNews is one thing that is heard.
type UnitsNews struct {
	Word      Word
	N         uint64
	Units     int64         // Has, Waits, Called: what the client has
	Lease     time.Duration // Has, Waits, Called: what is left of their lease. Ended: what may be
	After     time.Duration // Waits, Retry, Silence, Failed: as Lease of News
	Token     int64         // Has, Called; 0: as known
	Contended bool          // Has, Waits, Called: another client waits
}

// UnitsConversation is what a process knows of its record of one shared lock. It is a plain value, as Conversation is.
type UnitsConversation struct {
	Terms
	Capacity  int64
	Units     int64 // that Redis has for the client, and keeps for the lease of Grant
	Grant     Grant // Unit is the number under which the first of them came; Token is the newest
	Contended bool  // another client waits

	usable     bool   // Granted was returned for Units, and nothing has ended them
	place      bool   // it has a place, says the last answer
	left       bool   // something may be left in Redis
	last       uint64 // number of the last statement
	floor      uint64 // calls of a smaller number give nothing
	most       int64  // calls of others give at most that
	news       uint64 // greatest number whose answer or call was taken in
	since      uint64 // the number by which Units are known
	contendedN uint64 // the record that a message named: another client waits for it

	said        UnitsStatement // the last one
	unconfirmed bool           // its answer is awaited
	of          uint64         // the grant whose units it had; 0: nobody had entered by them
	silent      int            // so many in a row had none
	due         Moment         // when to state though nothing differs
	retryBy     Moment         // at the latest, also after an answer that says later
	answered    Moment
	lingers     Moment // units that nobody uses are given back; 0: all are used
	unusedSince Moment // since then the gate was not seen to be used: entries has not changed
	entries     uint32
	over        Moment // once nothing is had: from then on nothing is left in Redis
	not         Moment // nothing is stated before, unless the owners of ended exit
	ended       uint64 // the grant whose owners were notified of its loss, and may still be at work

	sent sentLog
}

// Settled reports whether nothing of the client can be left in Redis but what lands late, on which nobody relies.
func (c *UnitsConversation) Settled() bool { return c.Units == 0 && !c.place && !c.left }

// says returns what is true and demanded now, and whether Redis does not know that.
func (c *UnitsConversation) says(d *queue.Demand, now Moment) (s UnitsStatement, differs bool) {
	keep, want := c.Units, d.Want
	switch {
	case c.usable && (d.Waiting > 0 || !d.Idle && (c.lingers == 0 || now < c.lingers)):
		keep = min(keep, d.Keep)
	case c.usable:
		keep = min(keep, d.Used)
	case d.Waiting == 0:
		keep = 0
	}
	if d.Waiting == 0 || want > c.Capacity { // in that case somebody of this process has to leave first
		want = 0
	}
	s = UnitsStatement{Since: c.since, Place: c.place && c.Units == 0, Have: c.Units, Keep: keep, Want: keep, Again: want > 0 && d.Again && want <= keep}
	if want > keep {
		s.Want, s.Try = want, d.Try
		if keep == c.Units && (keep > 0 || c.place) {
			s.Keep = want
		}
	}
	switch waits := s.Again || want > keep; {
	case keep < c.Units, waits != c.place, s.Try, c.Units > 0 && !c.usable:
		return s, true
	case waits:
		return s, s.Want != c.said.Want || s.Again != c.said.Again
	}
	return s, c.Units == 0 && c.left && now < c.over
}

// Gives reports whether the next statement gives units back.
func (c *UnitsConversation) Gives(d *queue.Demand, now Moment) bool {
	s, _ := c.says(d, now)
	return s.Keep < c.Units
}

// Next returns the statement to send now, which takes the number n, or until when to wait for news. n is greater than the
// number of every statement before. Where the statement keeps less than there was, those inside must not need more.
func (c UnitsConversation) Next(d *queue.Demand, n uint64, now Moment) (UnitsConversation, *UnitsStatement, Moment) {
	c = c.noteUse(d, now)
	s, differs := c.says(d, now)
	again := c.silent > 0 && s.same(c.said)
	at := c.due
	switch {
	case c.Settled() && s.Want == 0:
		c.silent = 0
		at = never
	case c.Units == 0 && !c.place && s.Want == 0 && now >= c.over && now >= c.not && !c.unconfirmed:
		return c, nil, c.over // a Clock then ends it
	case differs && (!again || s.Try):
		at = now
	case c.Units > 0 && d.Readers > 0 && d.Waiting == 0 && !c.Contended && c.silent == 0:
		at = min(at, c.answered+hearsBy)
	}
	if at = max(at, c.not); c.unconfirmed || at > now {
		if c.unconfirmed {
			at = never
		}
		return c, nil, min(at, c.wakes(d, now))
	}
	if !again {
		c.silent = 0
	}
	if !differs && d.Used == 0 && d.Waiting == 0 { // what nobody uses is never renewed
		s.Keep, s.Want = 0, 0
	}
	if s.Want > s.Have || s.Again || c.place { // it may have a place, and that be called
		c.over = max(c.over, now+c.Life+c.Call+c.Late)
	}
	if s.Have > 0 {
		c.over = max(c.over, now+c.Lease+c.Late)
	}
	if s.Keep < c.most {
		c.floor, c.most = n, 0
	}
	c.most = max(c.most, s.Keep, s.Want)
	c.of = 0
	if c.usable {
		c.of = c.Grant.Unit
	}
	if c.Units = min(c.Units, s.Keep); c.Units == 0 {
		c = c.empty(c.floor)
	}
	c.place = c.place && !s.Try && (s.Want > c.Units || s.Again)
	c.left = c.left || s.Have > 0 || s.Want > 0
	c.sent.note(n, now)
	s.N = n
	c.last, c.said, c.unconfirmed, c.due, c.retryBy = n, s, true, never, never
	return c, &s, never
}

// noteUse notes since when units are not used.
func (c UnitsConversation) noteUse(d *queue.Demand, now Moment) UnitsConversation {
	switch used := d.Admissions != c.entries; {
	case d.Waiting > 0 || d.Used >= c.Units:
		c.lingers = 0
	case c.lingers == 0 || used && d.Used == 0:
		c.lingers = now + linger
	}
	if d.Admissions != c.entries || d.Readers == 0 {
		c.unusedSince, c.entries = now, d.Admissions
	}
	return c
}

// wakes returns the next moment after now at which says may change by itself. The last reader to leave an open gate
// says nothing, so the process checks for that: the less often, the longer nobody comes.
func (c *UnitsConversation) wakes(d *queue.Demand, now Moment) Moment {
	at := never
	if c.lingers > now {
		at = c.lingers
	}
	if c.Units == 0 && !c.place && c.left && c.over > now {
		at = min(at, c.over)
	}
	if d.Contended && d.TurnEnds > now {
		at = min(at, d.TurnEnds)
	}
	if c.Units > 0 && d.Readers > 0 && d.Waiting == 0 && !d.Contended {
		at = min(at, now+min(max(linger, now-c.unusedSince), hearsBy))
	}
	return at
}

// Heard takes in what is heard, and returns what that means.
func (c UnitsConversation) Heard(h UnitsNews, now Moment) (UnitsConversation, Event) {
	switch h.Word {
	case Clock:
		if c.Units == 0 && !c.place && c.left && !c.unconfirmed && now >= c.over {
			c.left, c.silent = false, 0
			return c.empty(c.last + 1), GivenUp
		}
	case Exited:
		if h.N == c.ended {
			c.not = 0
		}
	case Retry:
		return c.soon(now + h.After), None
	case Ended:
		if h.N == c.Grant.Unit || h.N == c.ended && c.not == never {
			c.ended, c.not = h.N, now+h.Lease
			c.over = max(c.over, c.not, now+c.Lease+c.Late)
			c.place = false
			c = c.empty(c.last + 1)
		}
	case Called:
		return c.called(h, now)
	default:
		if h.N == c.last && c.unconfirmed {
			c.unconfirmed = false
			if h.N >= c.floor { // else its units were given up meanwhile: their owners were notified of a loss
				return c.answer(h, now)
			}
		}
	}
	return c, None
}

// soon makes the next statement due at the moment at, at the latest.
func (c UnitsConversation) soon(at Moment) UnitsConversation {
	c.due = min(c.due, at)
	if c.unconfirmed {
		c.retryBy = min(c.retryBy, at)
	}
	return c
}

// called takes in that Redis has given units to the place that h.N made or confirmed.
func (c UnitsConversation) called(h UnitsNews, now Moment) (UnitsConversation, Event) {
	switch {
	case h.N > c.last:
	case h.N < c.floor: // what nobody relies on is given back, by a statement that is sent after this
		c.left, c.over = true, max(c.over, now+c.Life+c.Call)
		return c.soon(now), None
	case h.N >= c.news:
		h.Units = max(h.Units, c.Units)
		c.place = false
		if c.silent == 0 {
			c.due = never
		}
		return c.has(h, now)
	case c.place:
		return c.soon(now), None
	}
	return c, None
}

// answer takes in the answer to the last statement, or that there is none.
func (c UnitsConversation) answer(h UnitsNews, now Moment) (UnitsConversation, Event) {
	if h.Word == Silence || h.Word == Failed {
		if h.Word == Failed {
			c.silent = max(c.silent, 1)
		}
		c.due = min(now+h.After*time.Duration((1<<min(c.silent, 6))-1), c.retryBy)
		c.silent++
		return c, None
	}
	c.silent, c.answered, c.due = 0, now, c.retryBy
	c.retryBy = never
	if h.N == c.news && h.Units <= c.Units && c.Units > 0 { // the call came before the answer to the same statement
		return c, None
	}
	c.place = h.Word == Waits
	if h.Word == Waits {
		c.due = min(c.due, now+h.After)
	}
	switch {
	case h.Word == Lost || h.Units < c.Units: // a failover, or somebody has deleted it
		e, floor := None, c.floor
		switch {
		case c.usable:
			e, floor = Vanished, c.last+1
			c.ended, c.not = c.Grant.Unit, never // until the owners are notified
		case c.of > 0 && c.said.Keep == 0:
			e = Missing
		}
		c.left = h.Word == Lost || h.Word == Waits || h.Units > 0
		return c.empty(floor), e
	case h.Units > 0:
		if c.Units == 0 && !c.place { // nothing is left to ask for
			c.due = never
		}
		return c.has(h, now)
	}
	c.left, c.news = h.Word == Waits, h.N
	return c.empty(c.floor), None
}

// has: Redis has h.Units for the client, for h.Lease from some moment after h.N was sent.
func (c UnitsConversation) has(h UnitsNews, now Moment) (UnitsConversation, Event) {
	g := Grant{Unit: h.N, Token: h.Token}
	if at, known := c.sent.find(h.N); known {
		g.Sent, g.Lease = at, h.Lease
	}
	if c.Units > 0 {
		g.Unit, g.Token = c.Grant.Unit, cmp.Or(g.Token, c.Grant.Token)
		if c.Grant.Until(c.Margin) > g.Until(c.Margin) {
			g.Sent, g.Lease = c.Grant.Sent, c.Grant.Lease
		}
	}
	c.Units, c.Grant, c.left = h.Units, g, true
	c.since, c.news = h.N, h.N
	c.Contended = h.Contended || c.contendedN >= h.N
	left := g.Until(c.Margin) - now
	if !c.usable && (left >= c.Call/2 || left > 0 && h.Lease >= c.Lease) { // a renewal would give no more
		c.usable, c.silent = true, 0
		return c, Granted
	}
	return c, None
}

// NoteContended notes that another client waits: a message about record n says so. It may come before the answer that gives
// the units.
func (c UnitsConversation) NoteContended(n uint64) UnitsConversation {
	if n <= c.last {
		c.contendedN = max(c.contendedN, n)
		c.Contended = c.Contended || c.Units > 0 && n >= c.since
	}
	return c
}

// empty: no units are had, and calls of numbers below floor give nothing.
func (c UnitsConversation) empty(floor uint64) UnitsConversation {
	c.Units, c.Grant, c.usable, c.Contended, c.floor = 0, Grant{}, false, false, floor
	return c
}
