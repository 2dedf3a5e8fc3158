package lettucecompat

import (
	"slices"
	"strconv"
	"time"
)

// Word is what a script answers to a Statement.
type Word uint8

const (
	// WordHas: the client has the lock for Answer.TTL.
	WordHas Word = iota
	// WordNothing: the client has nothing, as it wants.
	WordNothing
	// WordWaits: the client has a place in the line.
	WordWaits
	// WordRefused: the client has nothing. It is the answer to a try, and to a turn whose unit was given back before
	// its place could not be written.
	WordRefused
	// WordVoid: Redis has a record of the client with this number or a greater one. Nothing has changed.
	WordVoid
	// WordLost: the unit is not there. Nothing has changed.
	WordLost
	// WordGone: neither a place nor a unit is there. Nothing has changed.
	WordGone
)

// wordNames are the words in the answers of lua/state.lua.
var wordNames = [...]string{"has", "nothing", "waits", "refused", "void", "lost", "gone"}

// String returns the word as the script says it.
func (w Word) String() string {
	if int(w) < len(wordNames) {
		return wordNames[w]
	}
	return "invalid"
}

// Answer is what is known after a Statement.
type Answer struct {
	// Outcome is OK (Word has the answer), Failed (nothing of the client's has changed or will) or Unknown.
	Outcome Outcome
	Word    Word
	// TTL is what is left to the client (Has), to the holder, or of the time for which the lock is left to foreign
	// clients (Waits, Refused); negative: it has no end.
	TTL       time.Duration
	Contended bool   // Has: another client waits
	Token     int64  // Has: of this grant; 0 without Terms.Fenced
	Unit      uint64 // Has: the number of the unit's field, under which it was granted or called
	Ahead     int    // Waits: how many places are before it
	// Holder is the field that has the lock (Waits, Refused); "" if the lock is left to foreign clients, or a
	// string holds it.
	Holder string
	Note   string // what Renewal.Note has left with that
	Err    error
}

// parseState reads the answer of lua/state.lua.
func (c *Client) parseState(s *Statement, cmd *command, left error) Answer {
	outcome, err := cmd.result(left)
	if outcome != OutcomeOK {
		return Answer{Outcome: outcome, Err: err}
	}
	a, refusal, ok := Answer{}, int64(0), false
	switch v := cmd.Val().(type) {
	case int64: // the most common answers are numbers
		if s.Want > 0 {
			a, ok = Answer{Word: WordHas, TTL: s.Terms.Call, Unit: s.N}, v == 1 && !s.Terms.Fenced
		} else {
			a, refusal, ok = Answer{Word: WordNothing}, v, true
		}
	case []any:
		a, refusal, ok = parseWords(v)
	}
	if !ok || !c.noteRefusal(refusal) {
		return Answer{Outcome: OutcomeUnknown, Err: ErrMalformed}
	}
	return a
}

// parseWord reads the word that begins an answer.
func parseWord(v []any) (w Word, ok bool) {
	if len(v) == 0 {
		return 0, false
	}
	i := slices.Index(wordNames[:], text(v[0]))
	return Word(max(i, 0)), i >= 0
}

// parseWords reads an answer that begins with its word. Void, lost and gone say nothing more; the others say a time
// to live, a number, a text, which message was refused, and has the number of its field.
func parseWords(v []any) (a Answer, refusal int64, ok bool) {
	a.Word, ok = parseWord(v)
	if len(v) < 5 {
		return a, 0, ok && len(v) == 1 && a.Word >= WordVoid
	}
	ttl, ok1 := v[1].(int64)
	number, ok2 := v[2].(int64)
	said, ok3 := v[3].(string)
	refusal, ok4 := v[4].(int64)
	a.TTL, ok = fromMillis(ttl), ok && ok1 && ok2 && ok3 && ok4 && number >= 0
	switch {
	case a.Word == WordHas && len(v) == 6:
		var err1, err2 error
		if said != "" {
			a.Token, err1 = strconv.ParseInt(said, 10, 64)
		}
		a.Contended = number > 0
		a.Unit, err2 = strconv.ParseUint(text(v[5]), 10, 64)
		ok = ok && err1 == nil && err2 == nil
	case (a.Word == WordWaits || a.Word == WordRefused) && len(v) <= 6:
		a.Ahead, a.Holder = int(number), said
		if len(v) == 6 {
			a.Note = text(v[5])
		}
	default:
		ok = false
	}
	return a, refusal, ok
}
