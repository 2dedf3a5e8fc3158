package anteroom

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
)

// words puts errors into words, from their parts, in one line and without repeating whose
// they are. What is shown of names is decided here, before a text is made: a name that is
// searched in a finished text is found in file names and ordinary words, too.
type words struct {
	keys bool // errors name their keys
	// foreign words what is not ours: the answer of a server or of a proxy, the error of a
	// hook, the cause of a context. Only there a name may stand that is to be taken out.
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
			return w.of(ErrLost) + ": " + e.words(false, false)
		}
		return w.of(ErrLost) + ": " + e.words(false, false) + ": " + w.of(e.Err)
	case ownText:
		return string(e)
	}
	text := err.Error()
	for _, own := range nameless {
		if rest, begins := strings.CutPrefix(text, own.Error()); begins && errors.Is(err, own) {
			return strings.TrimPrefix(own.Error(), prefix) + strings.ReplaceAll(w.foreign(rest), prefix, "")
		}
	}
	// Somebody else's error may wrap one of ours.
	return strings.ReplaceAll(w.foreign(text), prefix, "")
}

// nameless are the errors whose texts name nobody. What others add to them may.
var nameless = []error{
	ErrNotAcquired, ErrUnavailable, ErrUnknown, ErrNotHeld, ErrLost, ErrClosed, ErrReentryLimit, ErrConfig, ErrInUse,
	lettucecompat.ErrTimeout, lettucecompat.ErrReplicas, lettucecompat.ErrMalformed, lettucecompat.ErrClosed, lettucecompat.ErrNotDelivered, lettucecompat.ErrNotSubscribed,
	renewal.ErrNoResult, renewal.ErrNoSentAt, renewal.ErrNoAnswer, renewal.ErrNoSlot,
	context.Canceled, context.DeadlineExceeded, os.ErrDeadlineExceeded,
}

// operation words an *Error.
func (w words) operation(e *Error) string {
	s := e.Op
	if e.Key != "" && w.keys {
		s += " " + quoteKey(e.Key)
	}
	if e.Err != nil {
		s += ": " + w.of(e.Err)
	}
	return s
}

// ownText is an error whose text is ours and names nobody.
type ownText string

func (t ownText) Error() string { return string(t) }

// A loss is an error: ErrLost and, where there is one, its cause.

func (l *loss) Error() string { return plain.of(l) }

// words says why. fixed: the lease was not meant to be renewed; unrenewed: the watchdog had
// stopped its renewal.
func (l *loss) words(fixed, unrenewed bool) string {
	switch l.Reason {
	case renewal.ReasonGone:
		return "Redis no longer has it"
	case renewal.ReasonForced:
		return "released by force"
	case renewal.ReasonClosed:
		return "the manager was closed"
	case renewal.ReasonWatchdog:
		return "given up by the watchdog"
	}
	switch {
	case fixed:
		return "its fixed lease ended"
	case unrenewed:
		return "its lease ended after the watchdog had stopped its renewal"
	}
	return "its lease ended without a confirmed renewal"
}

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

// remedies says, for the answers that need a person, what that person can do. They
// are told apart by the code with which Redis' answers begin, which is part of its
// protocol; texts differ between versions.
var remedies = []struct{ code, remedy string }{
	{"WRONGTYPE", "the key holds something that is not a lock; use another name for one of the two (or StringHolders, if it is the lock of another library)"},
	{"NOPERM", "the Redis user lacks a permission; docs/operations.md lists the smallest ACL"},
	{"ACL failure in script", "the Redis user lacks a permission; docs/operations.md lists the smallest ACL"},
	{"can't run this command", "the Redis user lacks a permission; docs/operations.md lists the smallest ACL"},
	{"can't access", "the Redis user lacks a permission; docs/operations.md lists the smallest ACL"},
	{"NOAUTH", "give the Redis client a user name and password"},
	{"WRONGPASS", "the Redis client's user name or password is wrong"},
	{"NOSCRIPT", "the server forgets scripts at once; check what flushes its script cache"},
}

// remedy returns what to do about a permanent answer.
func remedy(err error) string {
	text := err.Error()
	for _, r := range remedies {
		if strings.Contains(text, r.code) {
			return r.remedy
		}
	}
	return "repeating the command would give the same answer"
}

// serverWide are the parts of permanent answers that concern every key of a server: what
// its user is and may run. Others are about the key that was asked for.
var serverWide = []string{"NOAUTH", "WRONGPASS", "NOSCRIPT", "can't run this command", "permissions to run the", "unknown command"}

// aboutServer reports whether a permanent answer concerns all keys of its server.
func aboutServer(err error) bool {
	text := err.Error()
	return slices.ContainsFunc(serverWide, func(part string) bool { return strings.Contains(text, part) })
}
