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

// sharedTalk is the conversation of a SharedKey, and what the demand of its gate means for that: how long units stay that
// nobody uses, and when Redis is asked whether another client waits. It is a plain value, too.
type sharedTalk struct {
	conversation.Conversation
	contention conversation.Contention
	linger     conversation.Linger
	idle       bool // nobody used the units when they were to be renewed
	answeredAt Moment
	askedAt    Moment // when Redis was asked last, by whatever command, whether another client waits
	admissions uint32 // of the gate when it was asked by a renewal
	lastShown  uint64 // the last answer or call that showed the units
	lastServed uint64 // the last answer or call that counted
	of         int64  // the capacity that the units count with in Redis, or less. With a place: those that a call may give, or less
	sent       ofUnits
}

// ofUnits are the capacities of a Semaphore that what a command keeps and wants counts with. The second is at most the first. If it
// is less, Redis has to give what is kept anew.
type ofUnits struct{ keepOf, wantOf int64 }

// unitsCommand is a command about units.
type unitsCommand struct {
	conversation.Command
	ofUnits
}

// usable reports whether owners may rely on the units.
func (c *sharedTalk) usable() bool { return c.State == conversation.Holding }

// units returns how many the client has, but for those that it is to give back again.
func (c *sharedTalk) units() int64 {
	if c.State == conversation.Leaving {
		return 0
	}
	return c.Units
}

// contended reports whether another client waits for the units.
func (c *sharedTalk) contended() bool { return c.contention.Waits }

// demand returns what d means for the conversation, and when to ask again.
func (c *sharedTalk) demand(d *queue.Demand, now Moment) (conversation.Linger, conversation.Demand, Moment) {
	waits := d.Waiting > 0 && !d.Barred // otherwise somebody of this process has to leave first
	u := conversation.Use{Used: d.Used, Readers: d.Readers > 0, Waiting: waits, Idle: d.Idle, Admissions: d.Admissions}
	if c.usable() {
		u.Units = c.Units
	}
	l, keep, until := c.linger.Keep(u, d.Keep, conversation.Moment(now))
	at, demand := Moment(until), conversation.Demand{Keep: keep, Want: keep}
	if waits {
		demand.Want, demand.Try = max(keep, d.Want), d.Try
		demand.Again = d.Again && demand.Want == keep
	}
	of := c.ofUnits(d)
	demand.Again = demand.Again || of.wantOf < of.keepOf // Fresh units may suffice, and count with too much
	demand.News = c.usable() && of.keepOf > c.of || c.InLine && of.wantOf != c.sent.wantOf
	if c.idle && d.Used == 0 && d.Waiting == 0 { // what nobody uses is never renewed
		demand.Keep, demand.Want = 0, 0
	}
	if d.Contended && d.TurnEnds > now {
		at = min(at, d.TurnEnds)
	}
	return l, demand, at
}

// ofUnits returns the capacities that count. What Redis has given of a capacity may be too much for a lesser one.
func (c *sharedTalk) ofUnits(d *queue.Demand) ofUnits {
	of := ofUnits{max(d.KeepOf, c.of), max(d.KeepOf, c.of)}
	if d.Waiting > 0 && !d.Barred {
		of.wantOf = d.WantOf
	}
	return of
}

// gives reports whether the next command gives units back.
func (c *sharedTalk) gives(d *queue.Demand, now Moment) bool {
	_, demand, _ := c.demand(d, now)
	return c.Gives(demand)
}

// next returns the command to send now: see conversation.Conversation.Next.
func (c sharedTalk) next(d *queue.Demand, n uint64, now Moment) (sharedTalk, unitsCommand, Moment) {
	l, demand, at := c.demand(d, now)
	c.linger = l
	talk, next, until := c.Next(demand, n, conversation.Moment(now))
	cmd := unitsCommand{next, c.ofUnits(d)}
	if c.Conversation, c.idle = talk, false; cmd.N > 0 {
		c.sent, c.of = cmd.ofUnits, cmd.keepOf
	}
	return c.settled(), cmd, min(Moment(until), at)
}

// asks reports whether it is time for a renewal that asks whether another client waits: goroutines have come in without Redis,
// and the message that says so may be lost.
func (c *sharedTalk) asks(d *queue.Demand, now Moment) bool {
	if !c.usable() || c.contended() || d.Admissions == c.admissions || now < c.askedAt+asksAfter {
		return false
	}
	c.askedAt, c.admissions = now, d.Admissions
	return true
}

// handle takes in an event: see conversation.Conversation.Handle. contended: another client waits, an answer or call says. of:
// the units of an answer count with that capacity.
func (c sharedTalk) handle(e conversation.Event, contended bool, of int64, now Moment) (sharedTalk, conversation.Effect) {
	answers := e.Kind < conversation.Silence && c.Unanswered() && e.N == c.LastCommand().N
	if answers || e.Kind == conversation.Called && c.Believes(e.N) {
		c.contention, c.lastServed = c.contention.Answered(e.N, contended), e.N
	}
	if answers {
		c.answeredAt, c.askedAt = now, now
	}
	switch {
	case answers && e.Units > 0 && of > 0:
		c.of = of
	case answers && e.Units == 0, e.Kind == conversation.Called && e.N == c.LastCommand().N:
		c.of = c.sent.wantOf
	}
	talk, f := c.Handle(e, conversation.Moment(now))
	if c.Conversation = talk; (answers || e.Kind == conversation.Called) && c.Units > 0 {
		c.lastShown = max(c.lastShown, e.N)
	}
	return c.settled(), f
}

// settled forgets what was known of units that the client does not have any more.
func (c sharedTalk) settled() sharedTalk {
	if c.units() == 0 && !c.InLine && !c.Unanswered() {
		c.of = 0
	}
	if c.units() == 0 {
		c.contention.Waits = false
	}
	return c
}

// notified notes that another client waits: a message about record n says so.
func (c sharedTalk) notified(n uint64) sharedTalk {
	c.contention = c.contention.Notified(n, &c.Conversation)
	return c.settled()
}
