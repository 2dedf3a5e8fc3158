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
	HaveUnit         // units: of a Mutex, the lock
)

// FirstNumber and LastNumber bound the numbers of commands. All have 16 digits, as the microseconds since 1970 have
// from 2001 to 2286: that distinguishes our fields from a foreign `uuid:thread`. A client whose clock shows an earlier
// time begins with FirstNumber.
const (
	FirstNumber = 1_000_000_000_000_000
	LastNumber  = 9_999_999_999_999_999

	numberDigits = 16
)

// Command is what a client says of one lock: what it has, what it keeps of that, and what it wants, in units, of which
// Terms say how many there are: a Mutex has one. It is sent once, under a number that the client uses once.
//
//	            have     keep     want
//	acquire     nothing  0        w     0 < w
//	confirm     a place  w        w     what a call on its way gives is kept
//	renew       u units  u        u
//	grow        u units  u or w   w     u < w; keep is u unless the place is known or a call may be on its way
//	shrink      u units  k        k     k < u
//	yield       u units  k        w     k < w: give back, and wait in line again
//	release     u units  0        0
//	cancel      nothing  0        0     also what cleans up
//
// Who has nothing keeps nothing.
type Command struct {
	Key string // any bytes
	N   uint64 // of this command
	// Since is the least number of a record that is the client's. With HaveUnit it is the number under which the client got the
	// unit of a Mutex, or its first units. Of a Mutex it is with HavePlace the number of the last command that kept nothing, and
	// with HaveNothing that of the record of which a mark is left, or 0 for whatever the client has.
	Since      uint64
	Have       Have
	Units      int64 // with HaveUnit: so many it has, at least; of a Mutex 1. Fewer in Redis are a loss
	Keep, Want int64
	// KeepOf and WantOf are the capacities of a Semaphore that what it keeps and wants counts with; 0: Terms.Capacity. The second
	// is at most the first. If it is less, the client waits until what it wants fits in the lesser one.
	KeepOf, WantOf int64
	Try            bool // refused instead of waiting in line
	First          bool // of a Mutex: an acquire or yield takes a free lock ahead of the line
	Again          bool // not of a Mutex: wait in line even if Redis leaves enough
	Terms          *Terms
	// LastToken is the last token that was handed out: of a Mutex from the unit that is given back, else from the units that the
	// process has, 0 once a command with it was answered. It needs Terms.Fenced.
	LastToken int64
	// Mark leaves the key of a Mutex taken for so long after the unit is given back, by the field MarkAs, or where that is "" by
	// one that says whose it was (MinHold). 0 leaves it free, and LeaseLeft is as long as the unit would last. A command
	// with HaveNothing leaves it of whatever the client has. The answer is WordLost if neither that nor the mark is there.
	Mark    time.Duration
	MarkAs  string
	Timeout time.Duration // 0: Options.CommandTimeout
}

// LeaseLeft is Command.Mark for what is left of the lease of the unit.
const LeaseLeft time.Duration = -1

// Do sends a command and returns when Redis has answered, ctx ends or the time limit is reached. Those that keep units
// travel with the renewals: many of them share a round trip.
func (c *Client) Do(ctx context.Context, s Command) (answer Answer) {
	start := time.Now()
	defer func() { c.observe(s.name(), answer.Outcome, start) }()
	if err := c.checkCommand(&s); err != nil {
		return Answer{Outcome: OutcomeFailed, Err: err}
	}
	shard := c.shardOf(s.Key)
	to := shard.locks
	if s.Have == HaveUnit && s.Keep > 0 {
		to = shard.keep
	}
	keepOf, wantOf := s.of()
	lesser := wantOf < keepOf
	alone := s.Have == HaveUnit && s.Want <= min(s.Keep, s.Units) && !lesser && !s.Again // it needs no place
	noted := s.Terms.Shared && s.Keep > 0 && s.LastToken > 0                             // readers beside what is kept get that, or a later one
	cmd, left := c.script(ctx, to, s.Key, start, s.Timeout, alone && !noted, func(lined bool) *redisCmd { return c.commandCmd(&s, lined, start) })
	answer = c.parseAnswer(&s, cmd, left)
	if left == nil {
		c.reuse(cmd)
	}
	return answer
}

// script sends what request makes for the lock key and its line. While a slot moves to another server of a Cluster,
// one may have the lock and not what belongs to it (TRYAGAIN). What can do without line and fencing record (alone) is sent once
// more, without. The others fail: a place is in the line only.
func (c *Client) script(
	ctx context.Context, by room, key string, start time.Time, timeout time.Duration, alone bool, request func(lined bool) *redisCmd,
) (cmd *redisCmd, left error) {
	cmd = request(true)
	left = c.do(ctx, by, cmd, start, timeout)
	if alone && left == nil && hasCode(cmd.Err(), "TRYAGAIN") {
		now := time.Now()
		if remaining := cmp.Or(timeout, c.opt.CommandTimeout) - now.Sub(start); remaining > 0 {
			cmd = request(false)
			left = c.do(ctx, by, cmd, now, remaining)
		}
	}
	return cmd, left
}

// name is what CommandStat calls a command.
func (s *Command) name() string {
	switch {
	case s.Have == HaveUnit && s.Keep > 0:
		return "renew"
	case s.Have == HaveUnit && s.Want > 0:
		return "yield"
	case s.Have == HaveUnit:
		return "release"
	case s.Want == 0:
		return "cancel"
	case s.Have == HavePlace:
		return "confirm"
	}
	return "acquire"
}

var (
	errNumber  = errors.New("a command's number has 16 digits, see FirstNumber")
	errCommand = errors.New("a command is about 0 to the capacity of units, and who has nothing keeps nothing")
)

// checkCommand refuses what no script is to see.
func (c *Client) checkCommand(s *Command) error {
	keepOf, wantOf := s.of()
	switch {
	case s.N < FirstNumber || s.N > LastNumber || s.Since > LastNumber:
		return errNumber
	case max(keepOf, s.Units) > MostUnits, wantOf > keepOf, min(s.Units, s.Keep, s.Want, wantOf-1) < 0, s.Keep > keepOf, s.Want > wantOf,
		!s.Terms.Shared && s.Units > 1,
		s.Have > HaveUnit, (s.Have == HaveUnit) != (s.Units > 0), s.Have == HaveNothing && s.Keep > 0,
		s.Again && (!s.Terms.Shared || s.Want == 0 || s.Try), s.Terms.Shared && (s.First || s.Mark != 0):
		return errCommand
	case s.Have == HaveNothing && s.Want > 0:
		if err := c.CheckKey(s.Key); err != nil {
			return err
		}
		return c.subs.ownRefusal()
	}
	return nil
}

// of returns the capacities that what it keeps and wants counts with.
func (s *Command) of() (keepOf, wantOf int64) {
	_, own := s.Terms.kind()
	wantOf = cmp.Or(s.WantOf, s.KeepOf, own)
	return cmp.Or(s.KeepOf, wantOf), wantOf
}

// kind is said, that of the terms, or what it is with other capacities.
func (s *Command) kind(said string) string {
	name, own := s.Terms.kind()
	keepOf, wantOf := s.of()
	switch {
	case keepOf > wantOf && s.Keep > 0:
		return name + " " + strconv.FormatInt(wantOf, 10) + " " + strconv.FormatInt(keepOf, 10)
	case wantOf != own:
		return name + " " + strconv.FormatInt(wantOf, 10)
	}
	return said
}

// addWhat adds what s says, as one argument of the script: have, keep, want, and a t for Try, an f for First, an a for Again.
func (s *Command) addWhat(cmd *redisCmd) {
	var room [64]byte
	what := append(room[:0], 'p')
	if s.Have != HavePlace {
		what = strconv.AppendInt(room[:0], s.Units, 10)
	}
	what = strconv.AppendInt(append(what, ' '), s.Keep, 10)
	what = strconv.AppendInt(append(what, ' '), s.Want, 10)
	switch {
	case s.Try:
		what = append(what, 't')
	case s.First:
		what = append(what, 'f')
	case s.Again:
		what = append(what, 'a')
	}
	cmd.addBytes(what)
}

// commandCmd is the script with its arguments, which lua/state.lua and lua/units.lua list. Arguments at the end that say
// nothing are omitted.
func (c *Client) commandCmd(s *Command, lined bool, now time.Time) *redisCmd {
	terms, script, fence := s.Terms.of(c), c.scripts().state, ""
	if s.Terms.Fenced && lined {
		fence = c.fence(s.Key)
	}
	if s.Terms.Shared {
		script = c.scripts().units
	}
	cmd := c.newScriptCmd(script, s.Key, lined, fence)
	cmd.add(c.opt.ClientID).addUint(s.N).addUint(s.Since)
	s.addWhat(cmd)
	cmd.add(terms.call, terms.text)
	switch {
	case s.Terms.Shared:
		cmd.add(s.kind(terms.kind))
	case s.Keep == 0 && (s.Have != HaveNothing || s.Want == 0):
		var room [512]byte
		field := appendField(room[:0], c.opt.ClientID, cmp.Or(s.Since, s.N))
		cmd.addBytes(c.opt.Dialect.appendMessage(field[len(field):], s.Key, field, now))
		cmd.addBytes(c.appendWindow(room[:0], s.Key))
	case fence != "" || s.Mark != 0: // an acquire gives back in silence: it takes the lock again immediately
		cmd.add("", "")
	}
	if fence != "" || s.Mark != 0 {
		cmd.add(terms.record)
	}
	if s.LastToken > 0 && (fence != "" || !s.Terms.Shared) || s.Mark != 0 {
		cmd.addInt(s.LastToken)
		if !s.Terms.Shared {
			cmd.add(markMillis(s.Mark))
		}
	}
	if s.Mark != 0 {
		cmd.add(cmp.Or(s.MarkAs, NewField(c.opt.ClientID, s.Since)+keptSuffix))
	}
	return cmd
}

// markMillis prints how long a mark stays: LeaseLeft is -1.
func markMillis(d time.Duration) string {
	if d <= 0 {
		return strconv.FormatInt(int64(d), 10)
	}
	return millis(d)
}
