package anteroom

import (
	"errors"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// echo is where a server's answer begins to repeat what it was sent: "ERR unknown command
// 'evalsha', with args beginning with: …", for a command that was renamed or that a proxy
// does not pass on. Some arguments are cut in the middle, so names cannot be searched in it.
const echo = ", with args beginning with"

// withheld stands where a name was taken out of a text.
const withheld = "(withheld)"

// words are those in which the log, a Tracer and Event.String speak of e: keys where they
// are shown, holders never.
func (e *Event) words(keys bool) words {
	return words{keys: keys, foreign: func(text string) string {
		names := []string{e.Holder, e.ClientID}
		if !keys {
			names = append(names, e.Key)
		}
		return without(text, names...)
	}}
}

// text returns the Text of e as the log shows it. It is ours, and names nobody.
func (e *Event) text(keys bool) string {
	if keys && e.named != "" {
		return e.named
	}
	return e.Text
}

// publicly returns err, of e, for a Tracer: with its text as the log shows it without
// Config.LogKeys. Of an *Error it is what that wraps, since its own text begins with the key.
func (e *Event) publicly(err error) error {
	if err == nil {
		return nil
	}
	if own, ok := errors.AsType[*Error](err); ok {
		err = own.Err
	}
	return publicError{err, e.words(false).of(err)}
}

// publicError is an error in whose text no name of a lock or a holder stands. What it is,
// errors.Is sees as before.
type publicError struct {
	error
	text string
}

func (e publicError) Error() string { return e.text }
func (e publicError) Unwrap() error { return e.error }

// KeyHash returns the short hash of a key that log records carry as key_hash, so that
// what is shown elsewhere can be compared with the log. It tells the keys of a program
// apart; anyone who guesses a key can verify the guess.
func KeyHash(key string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}

// WithoutKey returns the Text of e and what its Err says as log records carry them without
// Config.LogKeys. The library's own words name nobody and stay as they are, whatever the
// key is called; from what others said, such as a server's answer, the names of key, holder
// and Manager are taken out, and the arguments that a server repeats.
func (e Event) WithoutKey() (text, err string) {
	if e.Err != nil {
		err = e.words(false).of(e.Err)
	}
	return e.text(false), err
}

// WithoutKey returns what Err says, as WithoutKey of an Event does, without the name of key.
func (v VerdictState) WithoutKey(key string) string {
	_, err := Event{Key: key, Err: v.Err}.WithoutKey()
	return err
}

// without takes names out of what somebody else has said, as they are and as Go quotes them,
// and the arguments that a server repeats. A long name goes first: a short one may be a part
// of it. One of less than four bytes is taken out between quotation marks only: the letters
// of a key "a" are everywhere.
func without(text string, names ...string) string {
	if before, _, found := strings.Cut(text, echo); found {
		text = before + ", with arguments " + withheld
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	for _, name := range names {
		quoted := strconv.Quote(name)
		for _, form := range []string{name, quoted[1 : len(quoted)-1]} {
			switch {
			case len(name) >= 4:
				text = strings.ReplaceAll(text, form, withheld)
			case name != "":
				for _, mark := range []string{`"`, `'`, "`"} {
					text = strings.ReplaceAll(text, mark+form+mark, mark+withheld+mark)
				}
			}
		}
	}
	return text
}
