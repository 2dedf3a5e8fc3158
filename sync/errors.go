package anteroom

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/internal/report"
	"github.com/anteroom/anteroom/sync/observe"
)

// The errors of this package, for errors.Is. Every error that a method returns
// is an *Error that wraps one or more of them, but for what the function of a Do
// has returned: see Mutex.Do.
var (
	// ErrNotAcquired: the lock was not obtained, and the last answer was that
	// somebody else holds it (or that too few replicas confirmed it), or the context
	// had ended before anything was asked. The *Error also wraps the context's error
	// where that ended the wait.
	ErrNotAcquired = errors.New("anteroom: not acquired")

	// ErrUnavailable: Redis did not answer, or answered that it cannot serve. Nothing new is
	// held; a lock that was to be released may still be in Redis.
	ErrUnavailable = errors.New("anteroom: redis unavailable")

	// ErrUnknown is an ErrUnavailable: a command was sent and its answer was lost, so that it may have
	// taken effect. After a failed acquire the library removes what it may have
	// left behind; after a failed release it continues to try in the background
	// until the lease is over.
	ErrUnknown = fmt.Errorf("%w: outcome unknown", ErrUnavailable)

	// ErrNotHeld: the caller that wants to release or use the lock does not hold it: never
	// acquired, released before, or held by another goroutine; or a Ticket is worth nothing any more.
	ErrNotHeld = errors.New("anteroom: not held")

	// ErrLost: the lock was held and is not any more, though nobody released it;
	// someone else may hold it. Error.Since says since when.
	ErrLost = errors.New("anteroom: lock lost")

	// ErrClosed: the Manager is closed or closing.
	ErrClosed = errors.New("anteroom: manager closed")

	// ErrUpgrade: the context carries a Hold that reads, and the caller asks to write. Two that did so would wait for each
	// other for ever. Release the Hold first; nothing that was read before counts then.
	ErrUpgrade = errors.New("anteroom: a reader cannot become a writer")

	// ErrReentryLimit: the lock is held 255 times over.
	ErrReentryLimit = errors.New("anteroom: reentry limit reached")

	// ErrConfig: a person has to change something. A setting or an argument is out of
	// bounds (the text names the field and the bound), or Redis refuses: a permission, a
	// password, a key of another type.
	ErrConfig = errors.New("anteroom: bad configuration")

	// ErrInUse: Destroy was called for a key that is held or waited for; Detach for one of several Holds; or Close has not
	// waited, since it was called inside a callback or Do, or its context ended while
	// another Close was waiting.
	ErrInUse = errors.New("anteroom: key in use")
)

// Error is the type of all errors of this package.
type Error struct {
	// Op is the operation, for example "acquire", "release" or "lock".
	Op string
	// Key is the lock's key, "" where the error concerns no single key.
	Key string
	// Outcome says how the operation ended.
	Outcome observe.Outcome
	// Since is, with ErrLost, when the lock was over: the deadline of a lease that ended, the
	// moment at which it was noticed of a key that was removed. Such a key may have been gone
	// since the last confirmed renewal (Event.LastConfirmed), by default for about 6 s at most.
	// It is zero otherwise.
	Since time.Time
	// Holder is, with ErrNotAcquired, who has the lock as far as this process has heard: the
	// field in Redis, as Hold.Holder returns it there ("<client id>:<n>" for ours), or "" where nothing was heard, or the holder is a
	// string. Of an RWMutex and a Semaphore it is the client id of this Manager, if that has some of the units, and otherwise "". It may have
	// changed by now.
	Holder string
	// Note is that of the holder, see the option Note.
	Note string
	// Ran reports, of Do and TryDo, that fn ran: the error is fn's, or the end of the lock's, and
	// not that the lock was not acquired.
	Ran bool
	// Err is the reason; it wraps one of the package's error values, or is what fn returned.
	Err error
}

// newError returns the *Error of an operation that failed with err.
func newError(op, key string, err error) *Error {
	return &Error{Op: op, Key: key, Outcome: outcomeOf(err), Err: err}
}

// mistake returns the *Error of an operation that the program must not have called then.
func mistake(op, key string, err error) *Error {
	return &Error{Op: op, Key: key, Outcome: observe.OutcomeMistake, Err: err}
}

// outcomeOf says how an operation ended that failed with err.
func outcomeOf(err error) observe.Outcome {
	switch {
	case errors.Is(err, ErrConfig) && !lettucecompat.Permanent(err): // no answer of a server
		return observe.OutcomeMistake
	case errors.Is(err, ErrUnknown):
		return observe.OutcomeUnknown
	case errors.Is(err, ErrUnavailable):
		return observe.OutcomeUnavailable
	case errors.Is(err, ErrNotAcquired) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		return observe.OutcomeCancelled
	case errors.Is(err, ErrNotAcquired):
		return observe.OutcomeRefused
	}
	return observe.OutcomeFailed
}

// What comes after an unsuccessful release and Close.
const (
	releasedLater = ownText("released in background")
	endsWithLease = ownText("what is left ends with its lease")
)

// Error names operation, key and reason:
// `anteroom: acquire "k": redis unavailable: dial tcp …`.
func (e *Error) Error() string {
	if e.isWork() {
		return e.Err.Error()
	}
	return prefix + plain.operation(e)
}

// isWork reports whether e is what fn of a Do has returned: its text is fn's.
func (e *Error) isWork() bool { return e.Ran && e.Op == "do" }

// Unwrap returns the reason, for errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// quoteKey makes a key of any bytes readable; a long one is cut so that an error
// does not carry 64 KiB.
func quoteKey(key string) string {
	if len(key) > 80 {
		return fmt.Sprintf("%q… (%d bytes)", key[:80], len(key))
	}
	return fmt.Sprintf("%q", key)
}

// workError is the error of what ran under a lock, and that of its release.
type workError struct{ work, release error }

// Error is the work's own text, and why the release failed, unless the work has reported that
// already: its error is about the same loss.
func (e *workError) Error() string {
	text := e.work.Error()
	switch {
	case e.sameLoss():
		return text
	case strings.Contains(text, prefix):
		return text + ": " + plain.of(e.release)
	}
	return text + ": " + e.release.Error()
}

func (e *workError) sameLoss() bool {
	return errors.Is(e.work, ErrLost) && errors.Is(e.release, ErrLost)
}

func (e *workError) words(w words) string {
	if e.sameLoss() {
		return w.of(e.work)
	}
	return w.of(e.work) + ": " + w.of(e.release)
}

func (e *workError) Unwrap() []error { return []error{e.work, e.release} }

// notGranted says why the caller has not come in.
func notGranted(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, lock.ErrRefused):
		return ErrNotAcquired
	case errors.Is(err, lock.ErrClosed):
		return ErrClosed
	case errors.Is(err, lock.ErrNotThere):
		return joined(ErrNotHeld, ownText("the ticket is over, was resumed before, or the lock was taken from it"))
	}
	reason := ErrNotAcquired
	if failed, is := err.(*lock.AnswerError); is { //nolint:errorlint // as lock gives it
		reason = reasonOf(failed)
	}
	return joined(reason, ctx.Err(), otherCause(ctx))
}

// reasonOf words why Redis is the reason.
func reasonOf(failed *lock.AnswerError) error {
	switch {
	case failed.Unknown:
		return joined(ErrUnknown, failed.Err)
	case failed.Permanent:
		return needsPerson(failed.Err)
	case errors.Is(failed.Err, lettucecompat.ErrReplicas):
		return joined(ErrNotAcquired, failed.Err)
	}
	return joined(ErrUnavailable, failed.Err)
}

// notReached words why Redis could not be asked, or refused. guess is what to check.
func notReached(op, key string, err error, guess string) *Error {
	switch {
	case lettucecompat.Permanent(err):
		return newError(op, key, needsPerson(err))
	case errors.Is(err, lettucecompat.ErrClosed):
		return newError(op, key, ErrClosed)
	case guess == "" || errors.Is(err, context.Canceled) || lettucecompat.Transient(err): // Redis has answered, or nobody waited for that
		return newError(op, key, joined(ErrUnavailable, err))
	}
	return newError(op, key, joined(ErrUnavailable, err, ownText(guess)))
}

// needsPerson is the error of an answer of the server that no repetition will change: a key
// of another type, a missing permission. It is ErrConfig, because a person has to change
// something.
func needsPerson(err error) error {
	if remedy := report.Remedy(err); remedy != "" {
		return joined(ErrConfig, err, ownText(remedy))
	}
	return joined(ErrConfig, err)
}

// otherCause returns the context's cause where it says more than its error.
func otherCause(ctx context.Context) error {
	if c := context.Cause(ctx); c != ctx.Err() { //nolint:errorlint // identity is meant
		return c
	}
	return nil
}
