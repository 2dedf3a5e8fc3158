// Package lock is the core: how one process and Redis agree on who has a lock.
//
// Read conversation.go first. Then key.go and say.go, which drive it; acquire.go, owner.go and exit.go, an owner's way in
// and out; grant.go, release.go and loss.go, what becomes of a grant; and locks.go, which hears messages and renews.
// docs/internals/architecture.md has a table of them, and docs/internals/protocol.md the same as Redis sees it.
package lock

import (
	"cmp"
	"time"
)

// Redis keeps one record of each client of a key: the unit (the client has the lock) or a place in the line (it
// waits), under the number of the statement that made or last confirmed it. A statement says what the client has,
// what it keeps of that, and what it wants. Redis makes it so and answers what the client has now. A number is sent
// once. What was lost or late is settled by the next statement, which says what is true and demanded by then.
//
//	            | Quiet             | Pending                   | Owned
//	  ----------+-------------------+---------------------------+---------------------------
//	  Nothing   | clean up  - 0 0   | ask      - 0 1            | nothing is stated:
//	  Place     | leave     - 0 0   | confirm  place 1 1        | package renewal
//	  Unit      | release   unit 0 0| renew    unit 1 1, or,    | keeps the unit
//	            |                   | once entered, turn unit 0 1
//	                have keep want: what the client has | keeps | wants
//
// A release whose answer was lost is said again, and a release or turn that had no effect: see names.
//
// Who takes the lock out of turn asks as ever. Beside a place whose number is known it is stated to take the lock
// for that: place 1 2. Until it is known what became of that, the place is confirmed, also when nobody wants it any more:
// a unit that only the wanter may own is given back by name. That ends with the life of the place (doubt).
//
// Two rules make it safe.
//
//   - With the sending all is given back. From the moment before a statement that keeps nothing is sent, no answer and no
//     call of a smaller number gives the client anything (floor). The moment at which an owner is notified of a loss counts as one, too.
//   - A lease counts from the moment before the statement was sent that it was given for.
//
// While somebody owns the unit, package renewal keeps its lease. A renewal names exactly the unit's record, changes
// no number, takes nothing and gives nothing back. However late it lands, its only effect here is that the unit may last
// one lease longer (over).

// Moment is a monotonic time: how long after the Manager's zero.
type Moment = time.Duration

const never Moment = 1<<63 - 1

// Have is what a client has of a key in Redis, as far as it knows.
type Have uint8

// What a client may have.
const (
	Nothing Have = iota
	Place
	Unit
)

// Demand is what the goroutines of the process want of a key.
type Demand uint8

// The demands.
const (
	Quiet     Demand = iota // nobody owns the lock, nobody waits for it, or nobody may have it now
	Pending                 // nobody owns it, somebody waits
	OutOfTurn               // the same, and who is in front takes it from its holder
	Owned                   // somebody owns it, or is about to take what was granted or to give it back
)

// Statement is the one command. Its number is used once, and it is sent once.
type Statement struct {
	N     uint64
	Since uint64 // with Unit the number of the unit; else the least number of a record that is the client's: what is older is as a foreign client's
	Have  Have
	Keep  int
	Want  int     // 2: take it for the place, whose number is Since, from its holder
	By    *Taking // with that: who has ordered it. The Key fills it in
}

// Same reports whether both say the same, under any numbers.
func (s Statement) Same(o Statement) bool {
	return s.Have == o.Have && s.Keep == o.Keep && s.Want == o.Want
}

// Word is what is heard.
type Word uint8

// Answers, then what else is heard.
const (
	Has     Word = iota // answer: the client has the unit, for Lease more
	HasNot              // answer: it has nothing, as it wants, or as a try is refused, or a place that it names or wants is gone
	Waits               // answer: it has a place, and should confirm it after Lease
	Lost                // answer: it does not have the unit that it says it has
	Silence             // no answer to N in time: it may have taken effect, or may yet. Lease is the pause after the second in a row
	Failed              // N had no effect and never will, also since it is void: Redis had seen a later number. Lease is the pause, which grows as those of Silence do
	Called              // message: the place that N made or confirmed was given the unit, for Lease
	Retry               // message: confirm again after Lease
	Ended               // the owner of unit N is notified of its loss; Redis may keep it for Lease more
	Exited              // the owner of unit N has exited
	Clock               // time has passed
)

// News is one thing that is heard.
type News struct {
	Word  Word
	N     uint64
	Unit  uint64 // Has: the number of the unit's record, N where it was granted just now. A call is for N
	Lease time.Duration
	Token int64 // Has, Called: the fencing token of the unit; 0: as known
}

// Event is what news means for the goroutines of the process.
type Event uint8

// The events.
const (
	None     Event = iota
	Granted        // one may enter: see Conversation.Grant
	Vanished       // the unit that somebody has entered is gone, says the answer to a statement that came after a call
	Missing        // a release or turn of a unit that was entered found nothing, and nothing stated before can have removed it
	GivenUp        // all that may have been left has ended by itself, before an answer said so
)

// Terms are the times of a lock. They do not change during a conversation.
type Terms struct {
	Lease  time.Duration // L, what a renewal gives
	Call   time.Duration // K, what a grant or a call gives: min(L, 2 s)
	Life   time.Duration // of a place that nobody confirms
	Margin time.Duration // what an owner has to react after it is notified
	Late   time.Duration // no statement or renewal has an effect later than this after it was sent
}

// Grant is a unit that one may enter.
type Grant struct {
	Unit  uint64        // the number of its record
	Sent  Moment        // the lease counts from here
	Lease time.Duration // for so long Redis keeps it, as far as that counts
	Token int64
}

// Until is the moment until which the grant may be relied on without a renewal. The margin is for what two clocks
// differ by in the time of a lease, and for an owner that is late; a brief lease has a tenth of it.
func (g Grant) Until(margin time.Duration) Moment { return g.Sent + g.Lease - min(margin, g.Lease/10) }

// sentLog has when the last statements were sent. A unit that an older one was given is renewed before anybody enters.
type sentLog [8]struct {
	n  uint64
	at Moment // before it was sent
}

func (l *sentLog) note(n uint64, at Moment) {
	copy(l[1:], l[:])
	l[0].n, l[0].at = n, at
}

// find returns the moment before n was sent, where that is remembered.
func (l *sentLog) find(n uint64) (at Moment, known bool) {
	for _, s := range l {
		if s.n == n {
			return s.at, true
		}
	}
	return 0, false
}

// Conversation is what a process knows of its record of one key. It is a plain value: it starts nothing, sends
// nothing, and has no clock. Next and Heard return what it becomes.
type Conversation struct {
	Terms
	Grant Grant // the unit, if the client has it

	have      Have
	entered   bool   // Granted was returned, and nothing has ended that
	last      uint64 // number of the last statement
	floor     uint64 // news of a smaller number give nothing
	news      uint64 // greatest number whose answer or call was taken in
	took      uint64 // the last statement that takes the lock; 0: it had no effect. What became of it is known if news is not less
	doubt     Moment // until then it matters
	since     uint64 // smallest number that may have left something in Redis; 0: none has
	releasing uint64 // the unit whose release has no answer; 0: none
	stray     uint64 // given back, and now known to have left a record; until the next statement that keeps nothing. 0: nothing

	said        Statement // the last one
	unconfirmed bool      // its answer is awaited
	silent      int32     // so many in a row had none
	missed      int32     // so many in a row that were to take the lock had no usable one, though the place was confirmed in between
	excused     bool      // Lost is no loss of the unit to release: something stated since had no answer, or nobody had entered
	due         Moment    // when to say the same again, or to confirm the place
	over        Moment    // once nothing is had: from then on nothing is left in Redis
	not         Moment    // nothing is stated before, unless the owner of ended exits
	ended       uint64    // the unit whose owner was notified of its loss, and may still be at work

	retryBy Moment // something is to be stated then, at the latest, also after an answer that says later. A pause after silence counts more

	sent sentLog
}

// Have returns what the client has.
func (c *Conversation) Have() Have { return c.have }

// Settled reports whether nothing of the client can be left in Redis but what lands late, on which nobody relies.
func (c *Conversation) Settled() bool { return c.have == Nothing && c.since == 0 }

// says returns what is to be stated, by what is had and demanded; false: nothing.
func (c *Conversation) says(w Demand, now Moment) (Statement, bool) {
	want := 0
	if w == Pending || w == OutOfTurn {
		want = 1
	}
	switch {
	case w == Owned, w == Quiet && c.have == Nothing && (c.since == 0 || now >= c.over):
		return Statement{}, false
	case c.have == Unit && (w == Quiet || c.entered):
		return Statement{Since: c.Grant.Unit, Have: Unit, Want: want}, true
	case c.have == Unit: // too little is left of it to let anybody in
		return Statement{Since: c.Grant.Unit, Have: Unit, Keep: 1, Want: 1}, true
	case c.releasing != 0 && c.names(w):
		return Statement{Since: c.releasing, Have: Unit, Want: want}, true
	case c.have == Place && w == OutOfTurn && c.news == c.last:
		return Statement{Since: c.last, Have: Place, Keep: 1, Want: 2}, true
	case c.have == Place && (w != Quiet || c.took > c.news && now < c.doubt):
		return Statement{Since: c.floor, Have: Place, Keep: 1, Want: 1}, true
	}
	return Statement{Since: c.since, Want: want}, true
}

// names reports whether the next statement names the unit to release, again. Only one that does can find that it had
// been lost, or leave its mark. Where a turn may have left a place, only a clean-up or an ask will do.
//
//	the last was  | excused: it may have been released | not: each try failed, nothing changed
//	--------------+------------------------------------+--------------------------------------
//	a release     | if Quiet                           | yes
//	a turn        | no                                 | yes
//	anything else | no                                 | no
func (c *Conversation) names(w Demand) bool {
	return c.said.Have == Unit && (!c.excused || w == Quiet && c.said.Want == 0)
}

// Next returns the statement to send now, which takes the number n, or until when to wait for news. n is greater
// than the number of every statement before.
func (c Conversation) Next(w Demand, n uint64, now Moment) (Conversation, *Statement, Moment) {
	s, speaks := c.says(w, now)
	again := s.Same(c.said)
	switch {
	case !speaks && c.have == Nothing && c.since != 0:
		return c, nil, c.over // a Clock then ends it
	case !speaks:
		if w == Quiet && c.Settled() { // the next one who wants it begins anew
			c.silent, c.due = 0, 0
		}
		return c, nil, never
	case now < c.not:
		return c, nil, c.not
	case c.unconfirmed && (again || c.releasing != 0 && c.said.Have == Unit): // only its own answer says whether the unit was there
		return c, nil, never
	case (again || s.Have == Place && s.Want == 1) && now < c.due:
		return c, nil, c.due
	}
	if c.since == 0 {
		c.since = n
	}
	if s.Since == 0 {
		s.Since = c.since
	}
	if !again {
		c.silent = 0
	}
	if w != OutOfTurn || s.Have != Place {
		c.missed = 0
	}
	if s.Want > 0 { // it may make a place, and that be called
		c.over = max(c.over, now+c.Life+c.Call+c.Late)
	}
	if s.Have == Unit && s.Keep > 0 {
		c.over = max(c.over, now+c.Lease+c.Late)
	}
	if s.Want == 2 {
		c.took, c.doubt = n, now+c.Life+c.Call+c.Late
	}
	if s.Keep == 0 { // what is sent is given back
		c.stray = 0
		if c.have == Unit {
			c.releasing, c.excused = c.Grant.Unit, !c.entered
			c.over = max(c.over, now+c.Lease+c.Late) // a renewal may have been sent a moment ago
		}
		c = c.empty(n)
	}
	c.sent.note(n, now)
	s.N = n
	c.last, c.said, c.unconfirmed = n, s, true
	if c.retryBy <= now {
		c.retryBy = never
	}
	return c, &s, never
}

// Heard takes in what is heard, and returns what that means.
func (c Conversation) Heard(h News, now Moment) (Conversation, Event) {
	if h.N == c.last && h.Word < Silence {
		c.unconfirmed, c.silent = false, 0
	}
	if h.Word == Called {
		h.Unit = h.N
	}
	switch h.Word {
	case Clock:
		if c.have == Nothing && c.since != 0 && now >= c.over {
			c.since, c.stray, c.releasing, c.unconfirmed = 0, 0, 0, false
			return c.empty(c.last + 1), GivenUp
		}
		return c, None
	case Exited:
		if h.N == c.ended {
			c.not = 0
		}
		return c, None
	case Retry:
		return c.soon(now+h.Lease, now), None
	case Ended:
		if h.N == c.Grant.Unit {
			c.ended, c.not = h.N, now+h.Lease
			c.over = max(c.over, c.not, now+c.Lease+c.Late)
			c = c.empty(c.last + 1)
		}
		return c, None
	case Silence, Failed:
		return c.unanswered(h, now), None
	}
	if h.N < c.floor || h.N > c.last {
		record := h.Word == Waits || h.Unit == h.N
		if record && h.N < c.floor && c.have == Nothing { // it is cleaned up, by a statement that is sent after this
			c.stray, c.over = h.N, max(c.over, now+c.Life+c.Call)
			if c.since == 0 || h.N < c.since {
				c.since = h.N
			}
		}
		return c.doubts(h, now), None
	}
	switch {
	case h.N < c.news: // older than what is known
		return c.doubts(h, now), None
	case c.entered && (h.Word == Waits || (h.Word == Has || h.Word == Called) && h.Unit != c.Grant.Unit):
		return c, None // a master that has failed over knows another one; a renewal shows whether this unit is there
	case h.Word == Has || h.Word == Called:
		return c.has(h, now)
	case h.N == c.news && c.have == Unit: // the call came before this answer to the same statement
		return c, None
	case h.Word == Waits:
		c.have, c.Grant, c.due, c.releasing, c.news = Place, Grant{}, min(now+h.Lease, c.retryBy), 0, h.N
		return c, None
	}
	// HasNot, Lost: it has nothing.
	event := None
	switch {
	case c.entered:
		event = Vanished
	case h.Word == Lost && c.releasing != 0 && !c.excused:
		event = Missing
	}
	if h.N == c.last {
		if c.since, c.releasing = c.stray, 0; c.since == 0 {
			c.over = 0
		}
	}
	c.due = 0
	floor := c.floor
	if event == Vanished {
		floor = c.last + 1
	}
	c = c.empty(floor)
	c.news = h.N
	return c, event
}

// doubts: h gives nothing. If that is a call, a place is confirmed immediately.
func (c Conversation) doubts(h News, now Moment) Conversation {
	if h.Word == Called && c.have == Place {
		return c.soon(now, now)
	}
	return c
}

// soon makes the next statement due at the moment at, at the latest. If that is later, or the answer to the last one is
// waited for, no answer until then may postpone it (retryBy).
func (c Conversation) soon(at, now Moment) Conversation {
	c.due = min(c.due, at)
	if c.unconfirmed || at > now {
		c.retryBy = min(c.retryBy, at)
	}
	return c
}

// unanswered: the last statement has had no usable answer. The next one is due immediately if the answer may be on
// its way, and after growing pauses if that, too, has none.
func (c Conversation) unanswered(h News, now Moment) Conversation {
	if h.Word == Failed && c.took == h.N {
		c.took = 0
	}
	if h.N != c.last || !c.unconfirmed {
		return c
	}
	c.unconfirmed = false
	tries := &c.silent
	if c.said.Want == 2 {
		tries = &c.missed
	}
	if h.Word == Failed {
		*tries = max(*tries, 1)
		if c.since == h.N {
			c.since = 0 // nothing before it can have left anything
		}
	} else {
		c.excused = true
	}
	c.due = now + h.Lease*time.Duration((1<<min(*tries, 6))-1)
	*tries++
	return c
}

// has: Redis has given the unit, or kept it, for h.Lease from some moment after h.N was sent. The moment before that
// is the one to count from; if it is not remembered any more, a renewal comes first.
func (c Conversation) has(h News, now Moment) (Conversation, Event) {
	g := Grant{Unit: h.Unit, Token: h.Token}
	if at, known := c.sent.find(h.N); known {
		g.Sent, g.Lease = at, min(h.Lease, c.Lease) // Redis may keep the time of a ticket, for which the margin is too little
	}
	if c.Grant.Unit == g.Unit { // it is had already
		g.Token = cmp.Or(g.Token, c.Grant.Token)
		if c.Grant.Until(c.Margin) >= g.Until(c.Margin) {
			g.Sent, g.Lease = c.Grant.Sent, c.Grant.Lease
		}
	}
	c.have, c.Grant, c.news, c.releasing, c.due = Unit, g, h.N, 0, 0
	c.over = max(c.over, now+h.Lease+c.Late) // what was taken may last for longer than a renewal gives
	left := g.Until(c.Margin) - now
	whole := h.Word == Has && h.Lease >= c.Lease // a renewal would give no more
	if !c.entered && (left >= c.Call/2 || whole && left > 0) {
		c.entered = true
		c.unconfirmed, c.silent = false, 0 // a turn is not the repetition of the one before
		return c, Granted
	}
	return c, None
}

// Lasts notes that Redis may keep the unit until then, longer than a renewal would.
func (c Conversation) Lasts(until Moment) Conversation {
	c.over = max(c.over, until+c.Late)
	return c
}

// empty: nothing is had, and news of numbers below floor give nothing.
func (c Conversation) empty(floor uint64) Conversation {
	c.have, c.entered, c.Grant, c.floor = Nothing, false, Grant{}, floor
	return c
}
