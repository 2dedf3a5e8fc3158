package lock

import (
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// This file is the words of units for the one conversation. It goes once SharedKey speaks those of package conversation.

// Times of shared locks.
const (
	linger  = 10 * time.Millisecond // units that nobody uses are kept for so long
	hearsBy = time.Second           // who lets others in without Redis asks after so long whether another client waits
)

// Word is the kind of an event.
type Word = conversation.Kind

// Those of package conversation.
const (
	Has     = conversation.Has
	HasNot  = conversation.HasNot
	Waits   = conversation.Waits
	Lost    = conversation.Lost
	Silence = conversation.Silence
	Failed  = conversation.Failed
	Called  = conversation.Called
	Retry   = conversation.Retry
	Ended   = conversation.Ended
	Exited  = conversation.Exited
	Clock   = conversation.Tick
)

// Event is an effect.
type Event = conversation.Effect

// Those of package conversation.
const (
	None     = conversation.None
	Granted  = conversation.Granted
	Vanished = conversation.Vanished
	Missing  = conversation.Missing
	GivenUp  = conversation.GivenUp
)

// Grant is a possession: see conversation.Grant.
type Grant struct {
	Unit  uint64
	Sent  Moment
	Lease time.Duration
	Token int64
}

func grantOf(g conversation.Grant) Grant {
	return Grant{g.Record, Moment(g.Sent), g.Lease, g.Token}
}

// UnitsStatement is a command about units.
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

// UnitsNews is an event about units.
type UnitsNews struct {
	Word      Word
	N         uint64
	Units     int64         // Has, Waits, Called: what the client has
	Lease     time.Duration // Has, Waits, Called: what is left of their lease. Ended: what may be
	After     time.Duration // Waits, Retry, Silence, Failed: see conversation.Event
	Token     int64         // Has, Called; 0: as known
	Contended bool          // Has, Waits, Called: another client waits
}

// UnitsConversation is the one conversation with the words of units, and how long they stay. The fields beside that are what
// the SharedKey reads.
type UnitsConversation struct {
	Terms
	Capacity  int64
	Units     int64
	Grant     Grant
	Contended bool

	one        conversation.Conversation
	contention conversation.Contention
	linger     conversation.Linger
	renewAt    Moment // the units are to be renewed then; 0: not
	answered   Moment

	usable      bool
	place       bool
	unconfirmed bool
	last, of    uint64
	since, news uint64 // of the last answer or call that showed the units; of the last that was believed
	not         Moment
	said        UnitsStatement
}

// Settled reports whether nothing of the client can be left in Redis but what lands late, on which nobody relies.
func (c *UnitsConversation) Settled() bool { return c.one.State == conversation.Idle }

// mirrored fills in what the SharedKey reads.
func (c UnitsConversation) mirrored() UnitsConversation {
	o := &c.one
	c.Grant, c.Units, c.usable, c.place = grantOf(o.Grant), o.Units, o.State == conversation.Holding, o.InLine
	c.unconfirmed, c.last, c.not = o.Unanswered(), o.LastCommand().N, Moment(o.SilentUntil())
	if o.State == conversation.Leaving {
		c.Units = 0
	}
	if c.Units == 0 {
		c.contention.Waits, c.renewAt = false, 0
	}
	c.Contended = c.contention.Waits
	return c
}

// demand returns what d means for the conversation, and when to ask again.
func (c *UnitsConversation) demand(d *queue.Demand, now Moment) (conversation.Linger, conversation.Demand, Moment) {
	u := conversation.Use{Used: d.Used, Readers: d.Readers > 0, Waiting: d.Waiting > 0, Idle: d.Idle, Admissions: d.Admissions}
	if c.usable {
		u.Units = c.Units
	}
	l, keep, until := c.linger.Keep(u, d.Keep, conversation.Moment(now))
	at, demand := Moment(until), conversation.Demand{Keep: keep, Want: keep}
	if d.Waiting > 0 && d.Want <= c.Capacity { // otherwise somebody of this process has to leave first
		demand.Want, demand.Try = max(keep, d.Want), d.Try
		demand.Again = d.Again && demand.Want == keep
	}
	renewAt := c.renewAt
	if c.usable && u.Readers && !u.Waiting && !c.Contended && c.one.Failures() == 0 {
		if hears := c.answered + hearsBy; renewAt == 0 || hears < renewAt {
			renewAt = hears
		}
	}
	if c.usable && renewAt > 0 {
		if demand.Renew = now >= renewAt; !demand.Renew {
			at = min(at, renewAt)
		} else if d.Used == 0 && d.Waiting == 0 { // what nobody uses is never renewed
			demand.Keep, demand.Want = 0, 0
		}
	}
	if d.Contended && d.TurnEnds > now {
		at = min(at, d.TurnEnds)
	}
	return l, demand, at
}

// Gives reports whether the next statement gives units back.
func (c *UnitsConversation) Gives(d *queue.Demand, now Moment) bool {
	_, demand, _ := c.demand(d, now)
	return c.one.Gives(demand)
}

// Next returns the statement to send now: see conversation.Conversation.Next.
func (c UnitsConversation) Next(d *queue.Demand, n uint64, now Moment) (UnitsConversation, *UnitsStatement, Moment) {
	c.one.Terms = c.Terms
	l, demand, at := c.demand(d, now)
	c.linger = l
	state := c.one.State
	one, cmd, until := c.one.Next(demand, n, conversation.Moment(now))
	if c.one = one; cmd.N == 0 {
		return c.mirrored(), nil, min(Moment(until), at)
	}
	s := &UnitsStatement{
		N: cmd.N, Since: max(cmd.Since, cmd.Returns), Place: cmd.InLine, Have: cmd.Have, Keep: cmd.Keep, Want: cmd.Want, Again: cmd.Again, Try: cmd.Try,
	}
	if c.of = 0; state == conversation.Holding {
		c.of = s.Since
	}
	c.said, c.renewAt = *s, 0
	return c.mirrored(), s, never
}

// Heard takes in an event: see conversation.Conversation.Handle.
func (c UnitsConversation) Heard(h UnitsNews, now Moment) (UnitsConversation, Event) {
	c.one.Terms = c.Terms
	e := conversation.Event{Kind: h.Word, N: h.N, Record: h.N, Units: h.Units, Lease: h.Lease, After: h.After, Token: h.Token}
	answers := h.Word < Silence && c.unconfirmed && h.N == c.last
	if answers || h.Word == Called && c.one.Believes(h.N) {
		c.contention, c.news = c.contention.Answered(h.N, h.Contended), h.N
	}
	if answers {
		c.answered = now
	}
	if h.Word == Retry && c.usable {
		c = c.soon(now + h.After)
	}
	one, f := c.one.Handle(e, conversation.Moment(now))
	if c.one = one; (answers || h.Word == Called) && one.Units > 0 {
		c.since = max(c.since, h.N)
	}
	return c.mirrored(), f
}

// soon makes the units be renewed at the moment at, at the latest.
func (c UnitsConversation) soon(at Moment) UnitsConversation {
	if c.renewAt == 0 || at < c.renewAt {
		c.renewAt = max(at, 1)
	}
	return c
}

// NoteContended notes that another client waits: a message about record n says so.
func (c UnitsConversation) NoteContended(n uint64) UnitsConversation {
	c.contention = c.contention.Notified(n, &c.one)
	return c.mirrored()
}

// sentAt returns the moment before statement n was sent, if that is remembered.
func (c *UnitsConversation) sentAt(n uint64) (Moment, bool) {
	at, known := c.one.SentAt(n)
	return Moment(at), known
}
