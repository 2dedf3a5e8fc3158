// Package conversation is the protocol between one process and Redis about one lock: a plain value with pure methods. Next makes
// the command that is due, and Handle takes in whatever happens.
//
// A lock of any kind has units. A Mutex has one; a Semaphore has as many as its capacity; an RWMutex has very many, of which
// a reader needs one and a writer all. Each client has some of them, or a place in the line. This package does not know the
// kind.
//
// Redis keeps one record of each client: its units, and until when. A command says what the client has, how much of that it
// keeps at most, and how much it wants in all. Redis makes it so and answers what the client has then. A command has a number
// of its own and is sent once. What was lost or late is settled by the next command.
//
//	state   | command   has   keeps wants | is sent if
//	--------+-----------------------------+------------------------------------------------------------
//	Idle    | acquire   -     0     w     | somebody waits
//	Unsure  | acquire   -     0     w     | somebody waits
//	        | cancel    -     0     0     | nobody waits
//	Waiting | confirm   place w     w     | it is due, or fewer or more units are wanted
//	        | take      place w     w     | Seize is demanded, and the number of the place is known
//	        | cancel    place 0     0     | nobody waits
//	Fresh   | renew     u     u     u     | somebody waits; otherwise as in Holding
//	Holding | release   u     0     0     | nobody uses or wants the units
//	        | yield     u     k     w     | other clients are to come in, and somebody waits here
//	        | shrink    u     k     k     | fewer units are needed
//	        | grow      u     w     w     | more units are wanted
//	        | requeue   u     u     u     | somebody is to wait in line though the units suffice (Again)
//	        | renew     u     u     u     | a renewal has found more units than these, or News is demanded
//	Leaving | release   u     0     0     | the first release or yield had no effect
//	        | yield     u     0     w     | the same, and somebody waits
//
// While owners use the units and demand nothing else, nothing is sent: package renewal makes the units last. A renewal names the
// grant and changes nothing but the end of the record. That it finds nothing is a loss, unless a command was sent since: that may
// have given the units back.
//
//	          sent             answered
//	Idle ───────────► Unsure ───────────► Waiting ──► Holding    by a call or an answer
//	                    ▲                      └────► Fresh ──► Holding
//	                    └──── release, yield, cancel, and whatever ends the grant ◄──┘
//
// Three rules make it safe.
//
//  1. A client stops relying on what a command does not keep before it sends the command, not when that is answered. From then
//     on a call that is older than the floor gives nothing. The notification of owners that they have lost
//     their units raises the floor, too.
//  2. A lease counts from before the command was sent that it was given for.
//  3. One command at a time is unanswered, and only the answer to the last one counts. A call that is believed answers it.
//
// What follows from them:
//
//   - The answer to an acquire is lost (Silence), and its call arrives later. Before another acquire is sent, the call is a grant.
//     Afterwards it gives nothing: that acquire keeps nothing, so it gives back what the first one got.
//   - A release fails. If it certainly had no effect (Failed), the state is Leaving: the release is sent again, with its record,
//     and nobody enters by the units. If that is unknown (Silence), the state is Unsure: a cancel or acquire follows. It gives
//     back whatever the client has, and names the record, so that Redis leaves the same mark (MinHold, a ticket).
//   - A failover loses one renewal or shrink. The grant keeps the number under which its first units came, and each record of
//     that number or a later one is its own. So the record that the new master knows is renewed. If it has fewer units than the
//     client, or none, they are lost. If it has more, the next command gives the surplus back (Surplus).
package conversation

import (
	"cmp"
	"time"
)

// State is what a client has of a lock in Redis, as far as it knows.
type State uint8

// The states.
const (
	Idle    State = iota // nothing, and nothing can be left
	Unsure               // nothing, but a command may have left something
	Waiting              // a place in the line
	Fresh                // units that do not last long enough for anybody to enter
	Holding              // units that owners may rely on
	Leaving              // units that a command without effect was to give back
)

// Demand is what the goroutines of the process need.
type Demand struct {
	Keep  int64 // of the units that the client has
	Want  int64 // in all, if that is more than Keep: somebody waits for it
	Again bool  // somebody is to wait in line though Keep suffices
	Try   bool  // who wants more does not wait in line
	Seize bool  // who wants more takes it from the holder, whoever that is
	News  bool  // a command is to be sent though the units stay: their terms have changed, or Redis is to say whether another client waits
}

// Command is the one command to Redis.
type Command struct {
	N uint64 // its number
	// Since: records of a smaller number are not the client's. With units it is the number of the grant; with a place that of the
	// last command that kept nothing, which made the place or came before it; with neither that of the record that may still have
	// to go back, with its own mark, or 0: any record is to go back.
	Since            uint64
	Have, Keep, Want int64
	InLine           bool // the client has a place and no units
	Again            bool // it waits in line though it keeps what it wants
	Try, Seize       bool
	Place            uint64 // for Seize: the number of the place
}

// same reports whether both say the same, under any numbers.
func (c Command) same(o Command) bool {
	c.N, c.Since, c.Seize, c.Place, o.N, o.Since, o.Seize, o.Place = 0, 0, false, 0, 0, 0, false, 0
	return c == o
}

// mayWait reports whether it can make, keep or use a place.
func (c *Command) mayWait() bool { return c.Want > min(c.Have, c.Keep) || c.Again }

// Kind says what has happened.
type Kind uint8

// First the answers to a command, with or without success; then what else happens.
const (
	Has     Kind = iota // the client has Units
	HasNot              // it has nothing
	Waits               // it has a place, to be confirmed After, and perhaps Units
	Lost                // it does not have what the command says
	Silence             // no answer in time: the command may have taken effect, or may yet
	Failed              // the command had no effect and never will
	Called              // a message: the place that command N made or confirmed was given Units
	Retry               // a message: confirm again After
	Ended               // the owners of grant N are notified of its loss; Redis may keep it for Lease more
	Exited              // the owners of grant N have exited
	Surplus             // a renewal, since whose sending no command was sent, has found more units than the client has
	Tick                // time has passed
)

// Event is one thing that has happened.
type Event struct {
	Kind   Kind
	N      uint64        // the command that is answered, or that a message names. Ended, Exited: the grant
	Record uint64        // Has, Waits, Called: the record that gives the units
	Units  int64         // the same: what the client has
	Lease  time.Duration // the same: how long they last from the command on. Ended: see there
	After  time.Duration // Waits, Retry: see there. Silence, Failed: the pause, which grows with each in a row. The first Silence has none
	Token  int64         // of the units; 0: as known
	// Contended: another client waits for the units, an answer or a call says. It means nothing for the conversation: see
	// Contention.
	Contended bool
}

// Effect is what an event means for the goroutines of the process.
type Effect uint8

// The effects.
const (
	None     Effect = iota
	Granted         // owners may enter: see Conversation.Grant
	Vanished        // the units are gone while owners rely on them
	Missing         // the units were gone when they were given back
	GivenUp         // all that may have been left has ended by itself, before an answer said so
)

// Terms are the times of a lock. They do not change.
type Terms struct {
	Lease  time.Duration // what a renewal gives
	Call   time.Duration // what a grant gives: at most Lease
	Life   time.Duration // of a place that nobody confirms
	Margin time.Duration // what owners have to react after they are notified of a loss
	Late   time.Duration // no command has an effect later than this after it was sent
}

// Grant is a possession: from the first units to the moment when none are left.
type Grant struct {
	Record uint64        // the number under which the first units came. It does not move
	Sent   Moment        // the lease counts from here
	Lease  time.Duration // what Redis has given, as far as it counts: one lease at most
	Token  int64         // the newest
}

// Until is the moment until which the grant may be relied on without a renewal. The margin is for what two clocks differ by
// in the time of a lease, and for an owner that reacts late; a brief lease has a tenth of it.
func (g Grant) Until(margin time.Duration) Moment {
	return g.Sent.Add(g.Lease - min(margin, g.Lease/10))
}

// Conversation is what a process knows of its record of one lock. It starts nothing, sends nothing and has no clock. Its zero
// value with Terms is Idle.
type Conversation struct {
	*Terms

	// What the client has.
	State  State
	InLine bool  // it has a place: Waiting, or beside units
	Units  int64 // that it has: Fresh, Holding, Leaving
	Grant  Grant // of the units

	// The last command.
	lastCommand Command
	stateBefore State // before it was sent
	unanswered  bool  // its answer is awaited
	failures    int32 // so many in a row had no answer

	// What earlier commands may have left.
	openRecord    uint64 // it was given back, or taken, and no answer says what became of it; 0: none
	somethingLeft bool   // since the last command something was reported on which nobody relies, or a surplus
	nothingLeftAt Moment // without units or a place: from then on nothing is left in Redis
	keptNothing   uint64 // the last command that kept nothing. Records of a smaller number are not the client's
	floor         uint64 // calls of a smaller number give nothing
	mostCalled    int64  // other calls give at most that: the most that a command wanted since the floor rose

	// When the next command is due.
	dueAt       Moment // the rhythm of a place, or the pause after a failure
	retryAt     Moment // asked for by a Retry, whatever is answered until then; 0: not
	silentUntil Moment // nothing is sent before, unless the owners of lostGrant exit
	lostGrant   uint64 // its owners were notified of its loss, and may still be at work

	sentLog sentLog
}

// LastCommand returns the one that was sent last.
func (c *Conversation) LastCommand() Command { return c.lastCommand }

// Unanswered reports whether its answer is awaited.
func (c *Conversation) Unanswered() bool { return c.unanswered }

// Failures returns how many commands in a row had no answer.
func (c *Conversation) Failures() int { return int(c.failures) }

// OpenRecord returns the record that was given back, or taken, while no answer says what became of it; 0: none.
func (c *Conversation) OpenRecord() uint64 { return c.openRecord }

// Believes reports whether a call of command n counts.
func (c *Conversation) Believes(n uint64) bool { return n >= c.floor && n <= c.lastCommand.N }

// SilentUntil returns the moment before which nothing is sent: owners that have lost their units may be at work.
func (c *Conversation) SilentUntil() Moment { return c.silentUntil }

// SentAt returns the moment before command n was sent, if that is remembered.
func (c *Conversation) SentAt(n uint64) (at Moment, known bool) { return c.sentLog.find(n) }

// Next returns the command to send now, under the number n, or one without a number, and until when to wait for events. n is
// greater than the number of every command before. A command that keeps fewer units than there were must not be sent if those
// inside need more.
func (c Conversation) Next(d Demand, n uint64, now Moment) (Conversation, Command, Moment) {
	cmd, differs := c.command(d)
	repeats := c.failures > 0 && cmd.same(c.lastCommand)
	over := Never // when a Tick ends what was left
	switch {
	case c.unanswered:
		return c, Command{}, Never
	case c.State == Idle && cmd.Want == 0: // the next caller begins anew, without a pause
		c.failures = 0
		return c, Command{}, Never
	case c.mayEnd() && cmd.Want == 0:
		over = max(c.nothingLeftAt, c.silentUntil)
	}
	at := c.dueAt
	if c.retryAt > 0 {
		at = min(at, c.retryAt)
	}
	switch {
	case differs && (!repeats || cmd.Try):
		at = now
	case !differs && !c.InLine && c.failures == 0:
		at = Never
	}
	if at = max(at, c.silentUntil); at > now || over <= now {
		return c, Command{}, min(max(at, now), over)
	}
	if !repeats {
		c.failures = 0
	}
	cmd.N = n
	return c.sending(cmd, now), cmd, Never
}

// mayEnd reports whether all that Redis has of the client ends by itself: nobody relies on it, and nothing renews it.
func (c *Conversation) mayEnd() bool {
	return c.State == Unsure || c.State == Waiting || c.State == Leaving
}

// Gives reports whether the next command gives units back.
func (c *Conversation) Gives(d Demand) bool {
	cmd, _ := c.command(d)
	return cmd.Keep < cmd.Have
}

// command returns what is true and demanded now, and whether Redis does not know that.
func (c *Conversation) command(d Demand) (cmd Command, differs bool) {
	cmd = Command{Have: c.Units, InLine: c.State == Waiting}
	switch c.State {
	case Holding:
		cmd.Keep = min(c.Units, d.Keep)
	case Fresh:
		cmd.Keep = min(c.Units, max(d.Keep, d.Want))
	}
	more := d.Want > max(d.Keep, cmd.Keep)
	cmd.Want = cmd.Keep
	if more {
		cmd.Want, cmd.Try = d.Want, d.Try
		unsettled := c.failures > 0 && c.lastCommand.Keep == c.Units // Redis may still have what the last command gave back
		if cmd.Keep == c.Units && (c.Units > 0 || c.InLine) && !unsettled {
			cmd.Keep = cmd.Want // a call on its way may give it
		}
	}
	cmd.Again = d.Again && !more && cmd.Keep > 0
	switch {
	case c.Units > 0:
		cmd.Since = c.Grant.Record
	case cmd.Keep > 0 && d.Seize && c.failures == 0:
		cmd.Place, cmd.Seize = c.lastCommand.N, true
	case cmd.Keep > 0:
		cmd.Since = c.keptNothing
	default:
		cmd.Since = c.openRecord
	}
	switch waits := more || cmd.Again; {
	case cmd.Keep < cmd.Have, waits != c.InLine, cmd.Try, cmd.Seize, c.State == Fresh, c.State == Holding && c.somethingLeft, d.News && (c.State == Holding || c.InLine):
		return cmd, true
	case waits:
		return cmd, cmd.Want != c.lastCommand.Want || cmd.Again != c.lastCommand.Again
	}
	return cmd, c.State == Unsure
}

// sending returns what is known from before cmd is sent: only what it keeps is relied on.
func (c Conversation) sending(cmd Command, now Moment) Conversation {
	if cmd.mayWait() { // a place may be left, and be called at its end
		c.nothingLeftAt = max(c.nothingLeftAt, now.Add(c.Life+c.Call+c.Late))
	}
	if cmd.Have > 0 && c.State != Leaving { // a renewal may have been sent a moment ago
		c.nothingLeftAt = max(c.nothingLeftAt, now.Add(c.Lease+c.Late))
	}
	if cmd.Keep == 0 {
		c.keptNothing = cmd.N
	}
	if cmd.Keep == 0 || cmd.Keep < c.mostCalled { // a call on its way may give more than it keeps
		c.floor, c.mostCalled = cmd.N, 0
	}
	c.mostCalled = max(c.mostCalled, cmd.Want)
	switch {
	case cmd.Seize:
		c.openRecord = cmd.N
	case cmd.Have > 0:
		c.openRecord = cmd.Since
	}
	c.stateBefore = c.State
	c.Units = min(c.Units, cmd.Keep)
	c.InLine = c.InLine && !cmd.Try && (cmd.Want > c.Units || cmd.Again)
	if c.Units == 0 {
		c = c.withoutUnits(true)
	}
	if c.retryAt <= now {
		c.retryAt = 0
	}
	c.lastCommand, c.unanswered, c.somethingLeft, c.dueAt = cmd, true, false, Never
	c.sentLog.note(cmd.N, now)
	return c
}

// Handle takes in an event, and returns what that means.
func (c Conversation) Handle(e Event, now Moment) (Conversation, Effect) {
	switch e.Kind {
	case Tick:
		if c.mayEnd() && !c.unanswered && now >= max(c.nothingLeftAt, c.silentUntil) {
			c.InLine, c.floor, c.openRecord, c.failures = false, c.lastCommand.N+1, 0, 0
			return c.withoutUnits(false), GivenUp
		}
	case Exited:
		if e.N == c.lostGrant {
			c.silentUntil = 0
		}
	case Ended:
		if c.Units > 0 && e.N == c.Grant.Record || c.silentUntil == Never && e.N == c.lostGrant {
			return c.end(e.N, now.Add(e.Lease), now), None
		}
	case Retry:
		return c.retry(now.Add(e.After), now), None
	case Surplus:
		c.somethingLeft = c.somethingLeft || c.State == Holding && !c.unanswered
	case Called:
		if !c.Believes(e.N) {
			return c.unbelieved(now), None
		}
		later := (c.unanswered || c.failures > 0) && e.N < c.lastCommand.N && c.lastCommand.Want > e.Units // it may yet make a place
		c.InLine, c.unanswered, c.failures, c.openRecord = false, false, 0, 0
		e.Units = max(e.Units, c.Units)
		c, f := c.withUnits(e, now)
		c.somethingLeft = c.somethingLeft || later
		return c, f
	default:
		return c.answer(e, now)
	}
	return c, None
}

// answer takes in an answer, or that there is none. It counts if the last command has no other one.
func (c Conversation) answer(e Event, now Moment) (Conversation, Effect) {
	switch {
	case c.unanswered && e.N == c.lastCommand.N:
		c.unanswered = false
		switch {
		case e.N < c.floor: // its units were given up meanwhile: their owners were notified of a loss
			return c, None
		case e.Kind == Silence || e.Kind == Failed:
			return c.failed(e, now), None
		}
		return c.answered(e, now)
	case e.Kind == Has || e.Kind == Waits:
		return c.unbelieved(now), None
	case e.Kind <= Lost && e.N == c.lastCommand.N && c.State == Holding: // a call granted the place of this confirmation, which then found nothing
		return c.end(c.Grant.Record, Never, now), Vanished
	}
	return c, None
}

// failed: the last command had no effect, or it has no answer. Both lead to a pause, the longer the more there were.
func (c Conversation) failed(e Event, now Moment) Conversation {
	if e.Kind == Failed { // all is as before, but nobody enters by what owners have given back
		c.failures = max(c.failures, 1) // a silence has taken its time; this has not, so the first one leads to a pause, too
		switch last := c.lastCommand; {
		case last.Seize:
			c.openRecord = 0
		case c.Units == 0:
			c.State, c.Units, c.InLine = c.stateBefore, last.Have, last.InLine
			if last.Have > 0 {
				c.Grant.Record = last.Since
			}
			if c.stateBefore == Holding {
				c.State = Leaving
			}
		}
	}
	c.dueAt = now.Add(e.After * time.Duration((1<<min(c.failures, 6))-1))
	c.failures++
	return c
}

// answered takes in what Redis answers to the last command.
func (c Conversation) answered(e Event, now Moment) (Conversation, Effect) {
	last := c.lastCommand
	c.openRecord, c.failures = 0, 0
	c.floor, c.mostCalled = e.N, last.Want
	if c.InLine = e.Kind == Waits; c.InLine {
		c.dueAt = now.Add(e.After)
	}
	switch {
	case e.Kind != Lost && e.Units == 0 && c.Units == 0:
		return c.withoutUnits(c.somethingLeft), None
	case e.Kind != Lost && e.Units >= c.Units:
		return c.withUnits(e, now)
	case c.State == Holding: // a failover, or somebody has deleted them. Nothing is sent before the owners are notified
		return c.end(c.Grant.Record, Never, now), Vanished
	case last.Keep == 0 && c.stateBefore != Fresh: // if it had nothing, neither the record was there nor its mark
		return c.withoutUnits(true), Missing
	}
	return c.withoutUnits(true), None // Lost: the command changed nothing, so another record may be there
}

// withUnits: Redis has e.Units for the client, for e.Lease from some moment after command e.N was sent.
func (c Conversation) withUnits(e Event, now Moment) (Conversation, Effect) {
	g := Grant{Record: e.Record, Token: e.Token}
	if at, known := c.sentLog.find(e.N); known { // otherwise a renewal comes first
		g.Sent, g.Lease = at, min(e.Lease, c.Terms.Lease) // Redis may keep the time of a ticket, for which the margin is too little
	}
	if c.Units > 0 {
		g.Record, g.Token = c.Grant.Record, cmp.Or(g.Token, c.Grant.Token)
		if c.Grant.Until(c.Margin) > g.Until(c.Margin) {
			g.Sent, g.Lease = c.Grant.Sent, c.Grant.Lease
		}
	}
	c.Units, c.Grant, c.nothingLeftAt = e.Units, g, max(c.nothingLeftAt, now.Add(e.Lease+c.Late))
	if c.State == Holding {
		return c, None
	}
	c.State, c.somethingLeft = Fresh, false // what was reported before is older than this grant
	left := g.Until(c.Margin).Sub(now)
	if left >= c.Call/2 || left > 0 && e.Kind != Called && e.Lease >= c.Lease { // a renewal would give no more
		c.State = Holding
		return c, Granted
	}
	return c, None
}

// withoutUnits: the client has none. left: a command may have left some, or a place.
func (c Conversation) withoutUnits(left bool) Conversation {
	c.Units, c.Grant = 0, Grant{}
	switch {
	case c.InLine:
		c.State = Waiting
	case left:
		c.State = Unsure
	default:
		c.State, c.nothingLeftAt = Idle, 0
	}
	return c
}

// end ends the grant, of whose loss its owners are notified. Nothing is sent before silent, unless they exit.
func (c Conversation) end(grant uint64, silent, now Moment) Conversation {
	c.lostGrant, c.silentUntil = grant, silent
	if silent < Never {
		c.nothingLeftAt = max(c.nothingLeftAt, silent, now.Add(c.Lease+c.Late))
	}
	c.InLine, c.floor, c.openRecord = false, c.lastCommand.N+1, 0
	return c.withoutUnits(true)
}

// retry makes the next command of who waits due at the moment at, at the latest.
func (c Conversation) retry(at, now Moment) Conversation {
	c.dueAt = min(c.dueAt, at)
	if (at > now || c.unanswered) && (c.retryAt == 0 || at < c.retryAt) {
		c.retryAt = max(at, 1)
	}
	return c
}

// unbelieved: something was reported that gives nothing. A place is confirmed immediately. A client that has nothing sends a
// cancel or acquire, which removes what was reported.
func (c Conversation) unbelieved(now Moment) Conversation {
	switch c.State {
	case Waiting:
		c.dueAt = now
	case Idle, Unsure:
		c.State, c.somethingLeft, c.nothingLeftAt = Unsure, true, max(c.nothingLeftAt, now.Add(c.Life+c.Call))
	}
	return c
}

// Lasts notes that Redis may keep the units until then, longer than a renewal would.
func (c Conversation) Lasts(until Moment) Conversation {
	c.nothingLeftAt = max(c.nothingLeftAt, until.Add(c.Late))
	return c
}
