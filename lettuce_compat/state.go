package lettucecompat

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"
)

// Have is what a client has of a lock, as it has learnt from an answer or a call.
type Have uint8

// What a client can have.
const (
	HaveNothing Have = iota
	HavePlace        // a place in the line
	HaveUnit         // the lock
)

// FirstNumber and LastNumber bound the numbers of statements. All have 16 digits, as the microseconds since 1970 have
// from 2001 to 2286: that distinguishes our fields from a foreign `uuid:thread`. A client whose clock shows an earlier
// time begins with FirstNumber.
const (
	FirstNumber = 1_000_000_000_000_000
	LastNumber  = 9_999_999_999_999_999

	numberDigits = 16
)

// Statement is what a client says of one lock: what it has, what it keeps of that, and what it wants. It is sent
// once, under a number that the client uses once. Units are 0 or 1.
//
//	            have     keep  want
//	ask         nothing  0     1
//	confirm     place    1     1
//	renew       unit     1     1
//	release     unit     0     0
//	turn        unit     0     1     release, and wait in line again
//	leave       nothing  0     0     also what cleans up
type Statement struct {
	Key string // any bytes
	N   uint64 // of this statement
	// Since is the least number of a record that is the client's. With HaveUnit it is the number of the unit's field;
	// with HavePlace that of the last statement that kept nothing; with HaveNothing the record of which a mark is left, or
	// 0 for whatever the client has.
	Since      uint64
	Have       Have
	Keep, Want uint8
	Try        bool // an ask is refused instead of waiting in line
	First      bool // an ask or turn takes a free lock ahead of the line
	Terms      *Terms
	// LastToken is the last token that was handed out from a unit that is given back. It needs Terms.Fenced.
	LastToken int64
	// Mark leaves the key taken for so long after the unit is given back, by the field MarkAs, or where that is "" by
	// one that says whose it was (MinHold). 0 leaves it free, and LeaseLeft is as long as the unit would last. A statement
	// with HaveNothing leaves it of whatever the client has. The answer is WordLost if neither that nor the mark is there.
	Mark    time.Duration
	MarkAs  string
	Timeout time.Duration // 0: Options.CommandTimeout
	// MayBeHeld: the caller cannot leave, and may be held for the client's own time limits while Redis hangs. So it
	// may send the command itself, also on a client that ignores deadlines.
	MayBeHeld bool
}

// LeaseLeft is Statement.Mark for what is left of the lease of the unit.
const LeaseLeft time.Duration = -1

// State sends a statement and returns when Redis has answered, ctx ends or the time limit is reached.
func (c *Client) State(ctx context.Context, s Statement) (answer Answer) {
	start, g := time.Now(), gist{s.Key, s.N, s.Since, s.Have, s.Keep > 0, s.Want > 0, s.Want > s.Keep, s.Timeout}
	defer func() { c.observe(g.name(), answer.Outcome, start) }()
	if s.Keep > 1 || s.Want > 1 {
		return Answer{Outcome: OutcomeFailed, Err: errStatement}
	}
	cmd, left, err := c.say(ctx, g, start, func(line string) *scriptRequest { return c.stateRequest(&s, line, start) })
	if err != nil {
		return Answer{Outcome: OutcomeFailed, Err: err}
	}
	return c.parseState(&s, cmd, left)
}

// gist is what the sender minds of a statement about any kind of lock.
type gist struct {
	key          string
	n, since     uint64
	have         Have
	keeps, wants bool // something
	waits        bool // it may have a place in line after that
	timeout      time.Duration
}

// say sends the statement that request makes of the line's key. err refuses what no script is to see; left is why the statement
// was left without an answer.
func (c *Client) say(ctx context.Context, g gist, start time.Time, request func(line string) *scriptRequest) (cmd *command, left, err error) {
	if err := c.checkGist(g); err != nil {
		return nil, nil, err
	}
	l := c.senders(g.key).locks
	if g.have == HaveUnit && g.keeps {
		l = c.senders(g.key).keep
	}
	cmd, left = c.script(ctx, l, g.key, start, g.timeout, g.have == HaveUnit && !g.waits, request)
	return cmd, left, nil
}

// script sends what request makes for the key of the line of the lock key. While a slot moves to another server of a Cluster,
// one may have the lock and not what belongs to it (TRYAGAIN). What can do without line and fencing record (alone) is sent once
// more, without. The others fail: a place is in the line only.
func (c *Client) script(
	ctx context.Context, l *sender, key string, start time.Time, timeout time.Duration, alone bool, request func(line string) *scriptRequest,
) (cmd *command, left error) {
	k := request(c.line(key))
	left = l.do(ctx, &k.request, start, timeout)
	if alone && left == nil && hasCode(k.command.Err(), "TRYAGAIN") {
		now := time.Now()
		if remaining := cmp.Or(timeout, c.opt.CommandTimeout) - now.Sub(start); remaining > 0 {
			k = request(key)
			left = l.do(ctx, &k.request, now, remaining)
		}
	}
	return &k.command, left
}

// name is what CommandStat calls a statement.
func (g *gist) name() string {
	switch {
	case g.have == HaveUnit && g.keeps:
		return "renew"
	case g.have == HaveUnit && g.wants:
		return "turn"
	case g.have == HaveUnit:
		return "release"
	case !g.wants:
		return "leave"
	case g.have == HavePlace:
		return "confirm"
	}
	return "ask"
}

var (
	errNumber    = errors.New("a statement's number has 16 digits, see FirstNumber")
	errStatement = errors.New("a statement is about 0 or 1 unit of what can be had")
)

func (c *Client) checkGist(g gist) error {
	switch {
	case g.n < FirstNumber || g.n > LastNumber || g.since > LastNumber:
		return errNumber
	case g.have > HaveUnit:
		return errStatement
	case g.have == HaveNothing && g.wants:
		if err := c.CheckKey(g.key); err != nil {
			return err
		}
		return c.subs.ownRefusal()
	}
	return nil
}

// whats has what a statement says, as one argument of the script: have, keep, want, and a t for Try, an f for First.
var whats = func() (all [3][2][2][3]any) {
	for have, name := range []string{"0 ", "p ", "1 "} {
		for keep := range 2 {
			for want := range 2 {
				what := name + strconv.Itoa(keep) + " " + strconv.Itoa(want)
				all[have][keep][want] = [3]any{what, what + "t", what + "f"}
			}
		}
	}
	return all
}()

// stateRequest is the script with its arguments, which lua/state.lua lists. Arguments at the end that say nothing are
// omitted.
func (c *Client) stateRequest(s *Statement, line string, now time.Time) *scriptRequest {
	terms, fence, how := s.Terms.of(c), "", 0
	if s.Terms.Fenced && line != s.Key {
		fence = c.fence(s.Key)
	}
	switch {
	case s.Try:
		how = 1
	case s.First:
		how = 2
	}
	var n any = strconv.FormatUint(s.N, 10)
	since := n
	if s.Since != s.N {
		since = strconv.FormatUint(s.Since, 10)
	}
	var room [11]any
	argv := append(room[:0], c.id, n, since, whats[s.Have][s.Keep][s.Want][how], terms.call, terms.text)
	switch {
	case s.Keep == 0 && (s.Have != HaveNothing || s.Want == 0):
		argv = append(argv, c.opt.Dialect.message(s.Key, NewField(c.opt.ClientID, cmp.Or(s.Since, s.N)), now), c.window(s.Key))
	case fence != "": // an ask gives back in silence: it takes the lock again immediately
		argv = append(argv, "", "")
	}
	if fence != "" || s.Mark != 0 {
		argv = append(argv, terms.record)
	}
	if s.LastToken > 0 || s.Mark != 0 {
		argv = append(argv, strconv.FormatInt(s.LastToken, 10), markMillis(s.Mark))
	}
	if s.Mark != 0 {
		argv = append(argv, cmp.Or(s.MarkAs, NewField(c.opt.ClientID, s.Since)+keptSuffix))
	}
	k := newScriptRequest(c.scripts().state, s.Key, line, fence, argv...)
	k.mayBeHeld = s.MayBeHeld
	return k
}

// markMillis prints how long a mark stays. Without one it is 0, and LeaseLeft is -1.
func markMillis(d time.Duration) string {
	switch {
	case d < 0:
		return "-1"
	case d == 0:
		return "0"
	}
	return millis(d)
}
