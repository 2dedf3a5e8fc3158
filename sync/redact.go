package anteroom

import (
	"errors"
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

// hiding are words in which no text of somebody else has one of the names.
func hiding(keys bool, names ...string) words {
	return words{keys: keys, foreign: func(text string) string { return without(text, names...) }}
}

// publicly returns err, about key, for a Tracer: with its text as the log shows it without
// Config.LogKeys. Of an *Error it is what that wraps, since its own text begins with the key.
func (p *reports) publicly(err error, key string, names ...string) error {
	if err == nil {
		return nil
	}
	if own, ok := errors.AsType[*Error](err); ok {
		err = own.Err
	}
	return publicError{err, hiding(false, append(names, key, p.m.cfg.ClientID)...).of(err)}
}

// publicError is an error in whose text no name of a lock or a holder stands. What it is,
// errors.Is sees as before.
type publicError struct {
	error
	text string
}

func (e publicError) Error() string { return e.text }
func (e publicError) Unwrap() error { return e.error }

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
