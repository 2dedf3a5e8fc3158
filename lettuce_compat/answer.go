package lettucecompat

import (
	"slices"
	"strconv"
	"time"
)

// Word is what a script answers to a Command.
type Word uint8

const (
	wordNone Word = iota // nothing was answered
	// WordHas: the client has what it wants, for Answer.TTL.
	WordHas
	// WordNothing: the client has nothing, as it wants.
	WordNothing
	// WordWaits: the client has a place in the line, and Answer.Units beside it.
	WordWaits
	// WordRefused: the client has no place, and no more than Answer.Units. It is the answer to a try, and to a yield whose unit
	// was given back before its place could not be written.
	WordRefused
	// WordVoid: Redis has a record of the client with this number or a greater one. Nothing has changed.
	WordVoid
	// WordLost: the units are not there. Nothing has changed.
	WordLost
	// WordGone: neither a place nor units are there. Nothing has changed.
	WordGone
)

// wordNames are the words in the answers of lua/state.lua and lua/units.lua.
var wordNames = [...]string{"none", "has", "nothing", "waits", "refused", "void", "lost", "gone"}

// String returns the word as the script says it.
func (w Word) String() string {
	if int(w) < len(wordNames) {
		return wordNames[w]
	}
	return "invalid"
}

// Answer is what is known after a Command.
type Answer struct {
	// Outcome is OK (Word has the answer), Failed (nothing of the client's has changed or will) or Unknown.
	Outcome Outcome
	Word    Word
	Units   int64         // what the client has, of a Mutex 1 or 0: with Waits or Refused, too, and as much its own as with Has
	TTL     time.Duration // what is left to that; negative: it has no end
	Unit    uint64        // the number of its record: of a Mutex that under which it was granted or called, else that of the Command
	Token   int64         // of a grant that no answer has reported before; 0 without one, or without Terms.Fenced
	// Contended: another client waits (of a Mutex only with Has), which the units that this one has keep from being called.
	Contended bool
	Ahead     int // Waits: how many places are before it
	// Next is after how long the lease of a holder, or the time for which a Mutex is left to foreign clients, may be over (Waits,
	// Refused); negative: it has no end, or nobody holds.
	Next time.Duration
	// Holder is the field that has a Mutex (Waits, Refused); "" if the lock is left to foreign clients, or a string holds it.
	Holder string
	Note   string // what Renewal.Note has left with that
	// Capacity is the least of those who hold, which counts; that of the client if nobody holds. 0 of a Mutex, and with Void, Lost
	// and Gone.
	Capacity int64
	Err      error
}

// parseAnswer reads the answer to s.
func (c *Client) parseAnswer(s *Command, cmd *redisCmd, left error) Answer {
	outcome, err := cmd.result(left)
	if outcome != OutcomeOK {
		return Answer{Outcome: outcome, Err: err}
	}
	a, refusal, ok := Answer{}, int64(0), false
	switch v := cmd.Val().(type) {
	case int64: // the most common answers are numbers
		if s.Want > 0 {
			a, ok = Answer{Word: WordHas, Units: s.Want, TTL: s.Terms.Call, Unit: s.N}, v == 1 && !s.Terms.Fenced
		} else {
			a.Word, refusal, ok = WordNothing, v, true
		}
		if s.Terms.Shared {
			_, a.Capacity = s.of()
		}
	case []any:
		refusal, ok = a.parseWords(s, v)
	}
	if !ok || !c.noteRefusal(refusal) {
		return Answer{Outcome: OutcomeUnknown, Err: ErrMalformed}
	}
	return a
}

// parseWords reads an answer that begins with its word. Void, lost and gone say nothing more; the others also say which message
// was refused.
func (a *Answer) parseWords(s *Command, v []any) (refusal int64, ok bool) {
	if len(v) == 0 {
		return 0, false
	}
	word := slices.Index(wordNames[:], text(v[0]))
	a.Word = Word(max(word, 0))
	switch {
	case a.Word == wordNone || len(v) == 1 || a.Word == WordNothing || a.Word >= WordVoid:
		return 0, len(v) == 1 && a.Word >= WordVoid
	case s.Terms.Shared:
		a.Unit = s.N
		return a.parseUnits(v)
	}
	return a.parseMutex(v)
}

// parseMutex reads {word, ms, number, text, refusal [, number of the field, or the holder's note]}.
func (a *Answer) parseMutex(v []any) (refusal int64, ok bool) {
	if len(v) != 5 && len(v) != 6 {
		return 0, false
	}
	ms, ok1 := v[1].(int64)
	number, ok2 := v[2].(int64)
	said, ok3 := v[3].(string)
	refusal, ok4 := v[4].(int64)
	last := ""
	if len(v) == 6 {
		last = text(v[5])
	}
	if ok = ok1 && ok2 && ok3 && ok4 && number >= 0; a.Word != WordHas {
		a.Next, a.Ahead, a.Holder, a.Note = fromMillis(ms), int(number), said, last
		return refusal, ok
	}
	var err1, err2 error
	if said != "" {
		a.Token, err1 = strconv.ParseInt(said, 10, 64)
	}
	a.Unit, err2 = strconv.ParseUint(last, 10, 64)
	a.Units, a.TTL, a.Contended = 1, fromMillis(ms), number > 0
	return refusal, ok && err1 == nil && err2 == nil
}

// parseUnits reads {word, token, units, ms of these, ms until the next lease may end, capacity, contended, ahead, refusal}.
func (a *Answer) parseUnits(v []any) (refusal int64, ok bool) {
	if len(v) != 9 {
		return 0, false
	}
	n, ok := numbers(v[2:], 7)
	if !ok || min(n[0], n[1], n[2], n[3], n[4], n[5]) < 0 {
		return 0, false
	}
	a.Units, a.TTL, a.Next, a.Capacity, a.Contended, a.Ahead = n[0], fromMillis(n[1]), fromMillis(n[2]), n[3], n[4] > 0, int(n[5])
	if n[2] == 0 {
		a.Next = -1 // nobody holds
	}
	var err error
	a.Token, err = strconv.ParseInt(text(v[1]), 10, 64)
	return n[6], err == nil
}
