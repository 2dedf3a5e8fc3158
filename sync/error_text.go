package anteroom

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/report"
)

// words puts errors into words, from their parts, in one line and without repeating whose
// they are. What is shown of names is decided here, before a text is made: a name that is
// searched in a finished text is found in file names and ordinary words, too.
type words struct {
	keys bool // errors name their keys
	// foreign words what is not ours: the answer of a server or of a proxy, the error of a
	// hook, the cause of a context. Only there can be a name that is to be taken out.
	foreign func(text string) string
}

// plain is how errors word themselves.
var plain = words{keys: true, foreign: func(text string) string { return text }}

const prefix = "anteroom: "

// of words err without the prefix.
func (w words) of(err error) string {
	switch e := err.(type) { //nolint:errorlint // each layer words itself
	case *Error:
		return w.operation(e)
	case joinedErrors:
		parts := make([]string, len(e))
		for i, part := range e {
			parts[i] = w.of(part)
		}
		return strings.Join(parts, ": ")
	case *workError:
		return e.words(w)
	case *loss:
		if e.Err == nil {
			return w.of(ErrLost) + ": " + report.LossText(e.Reason, false)
		}
		return w.of(ErrLost) + ": " + report.LossText(e.Reason, false) + ": " + w.of(e.Err)
	case ownText:
		return string(e)
	}
	text := err.Error()
	for _, own := range nameless {
		if tail, begins := strings.CutPrefix(text, own.Error()); begins && errors.Is(err, own) {
			return strings.TrimPrefix(own.Error(), prefix) + strings.ReplaceAll(w.foreign(tail), prefix, "")
		}
	}
	// Somebody else's error may wrap one of ours.
	return strings.ReplaceAll(w.foreign(text), prefix, "")
}

// nameless are the errors whose texts name nobody. What others add to them may.
var nameless = []error{
	ErrNotAcquired, ErrUnknown, ErrUnavailable, ErrNotHeld, ErrLost, ErrClosed, ErrUpgrade, ErrReentryLimit, ErrConfig, ErrInUse,
	lettucecompat.ErrTimeout, lettucecompat.ErrReplicas, lettucecompat.ErrMalformed, lettucecompat.ErrClosed, lettucecompat.ErrNotDelivered, lettucecompat.ErrNotSubscribed,
	renewal.ErrNoResult, renewal.ErrNoSentAt, renewal.ErrNoAnswer, renewal.ErrNoSlot,
	context.Canceled, context.DeadlineExceeded, os.ErrDeadlineExceeded,
}

// operation words an *Error.
func (w words) operation(e *Error) string {
	if e.isWork() {
		return w.of(e.Err)
	}
	s := e.Op
	if e.Key != "" && w.keys {
		s += " " + quoteKey(e.Key)
	}
	if e.Err != nil {
		s += ": " + w.of(e.Err)
	}
	if e.Holder != "" && w.keys {
		s += ": held by " + strconv.Quote(e.Holder)
		if e.Note != "" {
			s += " (" + strconv.Quote(e.Note) + ")"
		}
	}
	return s
}

// ownText is an error whose text is ours and names nobody.
type ownText string

func (t ownText) Error() string { return string(t) }

// A loss is an error: ErrLost and, where there is one, its cause.

func (l *loss) Error() string { return plain.of(l) }

func (l *loss) Unwrap() []error {
	errs := []error{ErrLost}
	if l.Reason == renewal.ReasonClosed {
		errs = append(errs, ErrClosed)
	}
	if l.Err != nil {
		errs = append(errs, l.Err)
	}
	return errs
}

// joined makes one error of several, in one line: errors.Join breaks lines, which
// a log record or a table can't show.
func joined(errs ...error) error {
	var list joinedErrors
	for _, err := range errs {
		if err != nil {
			list = append(list, err)
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return list
}

type joinedErrors []error

func (l joinedErrors) Error() string { return plain.of(l) }

func (l joinedErrors) Unwrap() []error { return l }

// echo is where a server's answer begins to repeat what it was sent: "ERR unknown command
// 'evalsha', with args beginning with: …", for a command that was renamed or that a proxy
// does not pass on. Some arguments are cut in the middle, so names cannot be searched in it.
const echo = ", with args beginning with"

// withheld replaces a name that was taken out of a text.
const withheld = "(withheld)"

// wordsOf returns the text of err without prefix, and with keys only where they are shown; in what others have said, hidden
// names are taken out.
func wordsOf(err error, keys bool, hidden ...string) string {
	return words{keys: keys, foreign: func(text string) string { return without(text, hidden...) }}.of(err)
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
