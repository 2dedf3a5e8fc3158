package lettucecompat

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"
)

// An RWMutex and a Semaphore are one thing to Redis: so many units, of which a client has some. This file is the
// statement about them; lua/units.lua answers it.

const (
	// AllUnits are the units of an RWMutex: a reader needs one of them, a writer all.
	AllUnits = 1 << 20
	// MostUnits bounds the capacity of a Semaphore: package queue adds two such numbers in 32 bits.
	MostUnits = 1 << 29

	unitsHeader = ":" // the field of the hash that is no client
)

// UnitsStatement is what a client says of an RWMutex or a Semaphore, as Statement is of a Mutex, in units. It is sent
// once, under a number that the client uses once.
//
//	            have     keep     want
//	ask         nothing  0        w     0 < w
//	confirm     a place  w        w     what a call on its way gives is kept
//	renew       u units  u        u
//	want more   u units  u or w   w     u < w; keep is u unless the place is known or a call may be on its way
//	shrink      u units  k        k     k < u
//	turn        u units  k        w     k < w: give back, and wait in line again
//	release     u units  0        0
//	leave       nothing  0        0     also what cleans up
//
// Who has nothing keeps nothing.
type UnitsStatement struct {
	Key string // any bytes
	N   uint64 // of this statement
	// Since is the least number of a record that is the client's: with HaveUnit that of the statement whose answer or
	// call said last what it has; else it says nothing.
	Since      uint64
	Have       Have
	Units      int64 // with HaveUnit: so many it has, at least. Fewer in Redis are a loss
	Keep, Want int64
	// KeepOf and WantOf are the capacities of a Semaphore that what it keeps and wants counts with; 0: Terms.Capacity. The second
	// is at most the first. If it is less, the client waits until what it wants fits in the lesser one.
	KeepOf, WantOf int64
	Try            bool // refused instead of waiting in line
	Again          bool // wait in line even if Redis leaves enough
	// Terms.Capacity says whether it is a Semaphore.
	Terms *Terms
	// LastToken is the last token that was handed out from the units in the process; 0 once a statement with it was answered.
	// It needs Terms.Fenced.
	LastToken int64
	Timeout   time.Duration // 0: Options.CommandTimeout
	MayBeHeld bool          // see Statement.MayBeHeld
}

// UnitsAnswer is what is known after a UnitsStatement.
type UnitsAnswer struct {
	// Outcome is OK (Word has the answer), Failed (the client has and waits for what it had and waited for) or Unknown.
	Outcome Outcome
	Word    Word
	// The others are set with Has, Waits and Refused. Units that a client has while it waits are as much its own as others.
	Units     int64         // what the client has
	TTL       time.Duration // what is left to its units; 0 without units
	Contended bool          // another client waits, which the units that this one has keep from being called
	Token     int64         // of units that no answer has reported before; 0 without them, or without Terms.Fenced
	Ahead     int           // Waits: how many places are before it
	Next      time.Duration // Waits, Refused: after this time the lease of a holder may be over; 0: nobody holds
	Capacity  int64         // the least of those who hold, which counts; that of the client if nobody holds
	Err       error
}

// StateUnits sends a statement and returns when Redis has answered, ctx ends or the time limit is reached. Those that
// keep units travel with the renewals: many of them share a round trip.
func (c *Client) StateUnits(ctx context.Context, s UnitsStatement) (answer UnitsAnswer) {
	start, g := time.Now(), gist{s.Key, s.N, s.Since, s.Have, s.Keep > 0, s.Want > 0, s.Want > s.Keep || s.Again, s.Timeout}
	defer func() { c.observe(g.name(), answer.Outcome, start) }()
	if !s.valid() {
		return UnitsAnswer{Outcome: OutcomeFailed, Err: errUnits}
	}
	cmd, left, err := c.say(ctx, g, start, func(line string) *scriptRequest { return c.unitsRequest(&s, line) })
	if err != nil {
		return UnitsAnswer{Outcome: OutcomeFailed, Err: err}
	}
	return c.parseUnits(&s, cmd, left)
}

var errUnits = errors.New("a statement is about 0 to the capacity of units, and who has nothing keeps nothing")

// valid reports whether a script may see s.
func (s *UnitsStatement) valid() bool {
	keepOf, wantOf := s.of()
	return max(keepOf, s.Units) <= MostUnits && wantOf <= keepOf && min(s.Units, s.Keep, s.Want, wantOf-1) >= 0 && s.Keep <= keepOf && s.Want <= wantOf &&
		(s.Have == HaveUnit) == (s.Units > 0) && (s.Have != HaveNothing || s.Keep == 0) && (!s.Again || s.Want > 0 && !s.Try)
}

// of returns the capacities that what it keeps and wants counts with.
func (s *UnitsStatement) of() (keepOf, wantOf int64) {
	_, own := s.Terms.kind()
	wantOf = cmp.Or(s.WantOf, s.KeepOf, own)
	return cmp.Or(s.KeepOf, wantOf), wantOf
}

// unitsRequest is the script with its arguments, which lua/units.lua lists. Arguments at the end that say nothing are
// omitted.
func (c *Client) unitsRequest(s *UnitsStatement, line string) *scriptRequest {
	terms, fence := s.Terms.of(c), ""
	if s.Terms.Fenced && line != s.Key {
		fence = c.fence(s.Key)
	}
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
	case s.Again:
		what = append(what, 'a')
	}
	var argvRoom [9]any
	kind := terms.kind
	if keepOf, wantOf := s.of(); wantOf != s.Terms.Capacity && s.Terms.Capacity > 0 || keepOf > wantOf && s.Keep > 0 {
		kind = s.kind(keepOf, wantOf)
	}
	argv := append(argvRoom[:0], c.id, strconv.FormatUint(s.N, 10), strconv.FormatUint(s.Since, 10), string(what), terms.call, terms.text, kind)
	if fence != "" {
		argv = append(argv, terms.record)
		if s.LastToken > 0 {
			argv = append(argv, strconv.FormatInt(s.LastToken, 10))
		}
	}
	k := newScriptRequest(c.scripts().units, s.Key, line, fence, argv...)
	k.mayBeHeld = s.MayBeHeld
	return k
}

// kind is terms.kind for other capacities than that of the terms.
func (s *UnitsStatement) kind(keepOf, wantOf int64) string {
	name, _ := s.Terms.kind()
	text := name + " " + strconv.FormatInt(wantOf, 10)
	if keepOf > wantOf && s.Keep > 0 {
		text += " " + strconv.FormatInt(keepOf, 10)
	}
	return text
}

// parseUnits reads the answer of lua/units.lua.
func (c *Client) parseUnits(s *UnitsStatement, cmd *command, left error) UnitsAnswer {
	outcome, err := cmd.result(left)
	if outcome != OutcomeOK {
		return UnitsAnswer{Outcome: outcome, Err: err}
	}
	a, refusal, ok := UnitsAnswer{}, int64(0), false
	switch v := cmd.Val().(type) {
	case int64: // the most common answers are numbers
		_, a.Capacity = s.of()
		if s.Want > 0 {
			a.Word, a.Units, a.TTL, ok = WordHas, s.Want, s.Terms.Call, v == 1 && !s.Terms.Fenced
		} else {
			a.Word, refusal, ok = WordNothing, v, true
		}
	case []any:
		a, refusal, ok = parseUnitWords(v)
	}
	if !ok || !c.noteRefusal(refusal) {
		return UnitsAnswer{Outcome: OutcomeUnknown, Err: ErrMalformed}
	}
	return a
}

// parseUnitWords reads an answer that begins with its word. Void, lost and gone say nothing more.
func parseUnitWords(v []any) (a UnitsAnswer, refusal int64, ok bool) {
	word, ok := parseWord(v)
	if len(v) != 9 {
		return UnitsAnswer{Word: word}, 0, ok && len(v) == 1 && word >= WordVoid
	}
	n, ok1 := numbers(v[2:], 7)
	if !ok || !ok1 || word == WordNothing || word >= WordVoid || min(n[0], n[1], n[2], n[3], n[4], n[5]) < 0 {
		return UnitsAnswer{}, 0, false
	}
	a = UnitsAnswer{
		Word: word, Units: n[0], TTL: fromMillis(n[1]), Next: fromMillis(n[2]), Capacity: n[3], Contended: n[4] > 0, Ahead: int(n[5]),
	}
	var err error
	a.Token, err = strconv.ParseInt(text(v[1]), 10, 64)
	return a, n[6], err == nil
}
