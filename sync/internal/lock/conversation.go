package lock

import (
	"time"

	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// This file is the words of a Mutex for the one conversation. It goes once Key speaks those of package conversation.

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

// Statement is a command about one unit.
type Statement struct {
	N     uint64
	Since uint64 // the record that it names: see conversation.Command
	Have  Have
	Keep  int
	Want  int     // 2: take it for the place, whose number is Since, from its holder
	By    *Taking // with that: who has ordered it. The Key fills it in
}

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

// News is an event about one unit.
type News struct {
	Word  Word
	N     uint64
	Unit  uint64        // Has: the number of the unit's record. A call is for N
	Lease time.Duration // of the unit; or the time after which the word says that something is due
	Token int64
}

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

// Terms and Grant are those of package conversation, with moments of this one.
type Terms = conversation.Terms

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

// Conversation is the one conversation with the words of a Mutex. The fields beside it are what the Key reads.
type Conversation struct {
	Terms
	Grant Grant

	one         conversation.Conversation
	last        uint64
	took        uint64 // the last command that takes the lock; 0: it had no effect
	releasing   uint64 // the record that was given back, or taken, and no answer says what became of it
	entered     bool
	unconfirmed bool
	not         Moment
	silent      int
	said        Statement
}

// Have returns what the client has.
func (c *Conversation) Have() Have {
	switch {
	case c.one.Units > 0 && c.one.State != conversation.Leaving:
		return Unit
	case c.one.InLine:
		return Place
	}
	return Nothing
}

// Settled reports whether nothing of the client can be left in Redis but what lands late, on which nobody relies.
func (c *Conversation) Settled() bool { return c.one.State == conversation.Idle }

// mirrored fills in what the Key reads.
func (c Conversation) mirrored() Conversation {
	o := &c.one
	c.Grant, c.last = grantOf(o.Grant), max(c.last, o.LastCommand().N)
	c.entered, c.unconfirmed = o.State == conversation.Holding, o.Unanswered()
	c.not, c.silent = Moment(o.SilentUntil()), o.Failures()
	if c.releasing = 0; !c.entered {
		c.releasing = o.OpenRecord()
	}
	return c
}

// Next returns the statement to send now: see conversation.Conversation.Next.
func (c Conversation) Next(w Demand, n uint64, now Moment) (Conversation, *Statement, Moment) {
	if w == Owned && c.one.State != conversation.Holding { // its owner is notified of a loss, or still to come
		return c, nil, never
	}
	c.one.Terms = c.Terms
	d := [...]conversation.Demand{Pending: {Want: 1}, OutOfTurn: {Want: 1, Seize: true}, Owned: {Keep: 1, Want: 1}}[w]
	one, cmd, until := c.one.Next(d, n, conversation.Moment(now))
	if c.one = one; cmd == nil {
		return c.mirrored(), nil, Moment(until)
	}
	s := &Statement{N: cmd.N, Since: max(cmd.Since, cmd.Returns), Keep: int(cmd.Keep), Want: int(cmd.Want)}
	switch {
	case cmd.Have > 0:
		s.Have = Unit
	case cmd.InLine && cmd.Keep > 0:
		s.Have = Place
	}
	if cmd.Seize {
		s.Want, c.took = 2, s.N
	}
	c.said = *s
	return c.mirrored(), s, never
}

// Heard takes in an event: see conversation.Conversation.Handle.
func (c Conversation) Heard(h News, now Moment) (Conversation, Event) {
	c.one.Terms = c.Terms
	e := conversation.Event{Kind: h.Word, N: h.N, Record: h.Unit, Lease: h.Lease, After: h.Lease, Token: h.Token}
	switch h.Word {
	case Has:
		e.Units = 1
	case Called:
		e.Units, e.Record = 1, h.N
	case Failed:
		if h.N == c.took {
			c.took = 0
		}
	}
	one, f := c.one.Handle(e, conversation.Moment(now))
	c.one = one
	return c.mirrored(), f
}

func (c Conversation) soon(at, now Moment) Conversation {
	c, _ = c.Heard(News{Word: Retry, Lease: at - now}, now)
	return c
}

// Lasts notes that Redis may keep the unit until then, longer than a renewal would.
func (c Conversation) Lasts(until Moment) Conversation {
	c.one = c.one.Lasts(conversation.Moment(until))
	return c
}

// sentAt returns the moment before statement n was sent, if that is remembered.
func (c *Conversation) sentAt(n uint64) (Moment, bool) {
	at, known := c.one.SentAt(n)
	return Moment(at), known
}
