package lettucecompat

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Outcome says what is known about the effect of one command. It is a closed set: every reply carries exactly one,
// and the caller's next step depends on nothing else.
type Outcome uint8

const (
	// OutcomeOK: the command took effect and the answer arrived.
	OutcomeOK Outcome = iota
	// OutcomeRefused: too few replicas have confirmed what took effect (Extend).
	OutcomeRefused
	// OutcomeGone: our field is not there, concluded by a master.
	OutcomeGone
	// OutcomeFailed: the server answered with an error, or the command was never sent. It certainly had no effect,
	// and may be repeated unless Permanent(err).
	OutcomeFailed
	// OutcomeUnknown: the command was sent and no answer arrived in time. It may have taken effect, and may still do
	// so.
	OutcomeUnknown
	outcomes
)

// String returns the name used as a metric label.
func (o Outcome) String() string {
	return [...]string{"ok", "refused", "gone", "failed", "unknown", "invalid"}[min(o, outcomes)]
}

var (
	// ErrClosed is returned by every call on a Client after Close.
	ErrClosed = errors.New("client is closed")
	// ErrTimeout is the error of a command that was abandoned at its time limit. With OutcomeFailed it was never
	// sent.
	ErrTimeout = errors.New("no answer within the command's time limit")
	// ErrReplicas is the error of a renewal that too few replicas confirmed in time.
	ErrReplicas = errors.New("too few replicas confirmed the lock")
	// ErrReservedKey is returned for keys that Dialect.Reserved refuses.
	ErrReservedKey = errors.New("keys that begin with " + fencePrefix + " or " + linePrefix + " (or, in Redisson's dialect, " + redissonToken + ") are reserved: choose another name")
	// ErrKeyBraces is returned for names that Redisson cannot use on a Cluster: it would use another slot.
	ErrKeyBraces = errors.New("redisson cannot use this name on a Cluster: its braces are no hash tag, or one closes before")
	// ErrNotDelivered is returned by Probe when the message did not come back in time.
	ErrNotDelivered = errors.New("the subscription connection delivers nothing")
	// ErrNotSubscribed is returned by Probe while the subscription is being made.
	ErrNotSubscribed = errors.New("the subscription connection is down and being made anew")
	// ErrMalformed is the error of a reply that no script of ours gives. A script ran, so its effect is unknown.
	ErrMalformed = errors.New("malformed reply")
)

// class sorts the errors of Redis and of the way to it by what a caller can do.
type class uint8

const (
	// classNone is the class of a nil error.
	classNone class = iota
	// classPermanent needs a human: wrong type, missing permission, wrong password, any other refusal of a script.
	classPermanent
	// classTransient is a refusal that passes: loading, read-only after a failover, out of memory, busy with a
	// script, a cluster being reshaped.
	classTransient
	// classUnreachable means that nothing was sent: no connection could be had.
	classUnreachable
	// classUnknown means that the command was, or may have been, sent.
	classUnknown
)

// transientCodes are the first words of server answers that pass by themselves.
var transientCodes = []string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "OOM", "BUSY", "MISCONF",
	"NOREPLICAS", "MOVED", "ASK", "NOSCRIPT", "UNBLOCKED", "UNKILLABLE", "FAILOVER",
}

// Answers of proxies (predixy, Envoy) about the servers behind them: nothing was sent to one, or the connection ended
// with commands under way, which may have run.
var (
	proxyUnsent  = []string{"no server", "no upstream host"}
	proxyUnknown = []string{"server connection close", "deliver request fail", "upstream failure", "upstream protocol error"}
)

// lostError is why a connection of ours has ended before the reply to a command that was written on it. Whatever it says, the command
// may have run.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// classify sorts err. An error of a server is permanent or transient and means that the command had no effect, unless
// a proxy has answered in its place; everything that does not say that it was never sent is classUnknown.
func classify(err error) class {
	is := func(target error) bool { return errors.Is(err, target) }
	if err == nil {
		return classNone
	}
	if _, written := errors.AsType[*lostError](err); written {
		return classUnknown
	}
	if h, ok := errors.AsType[*handshakeError](err); ok {
		return h.class
	}
	if is(ErrReservedKey) || is(ErrKeyBraces) {
		return classPermanent
	}
	if answer, ok := errors.AsType[redis.Error](err); ok && !is(redis.Nil) { // no script of ours answers nil
		return classifyAnswer(answer.Error())
	}
	_, unsent := errors.AsType[*notSentError](err)
	op, network := errors.AsType[*net.OpError](err)
	// Errors of the pool come before a connection was there to write to.
	if unsent || network && op.Op == "dial" ||
		slices.ContainsFunc([]error{ErrClosed, redis.ErrPoolTimeout, redis.ErrPoolExhausted, redis.ErrClosed}, is) {
		return classUnreachable
	}
	return classUnknown
}

// classifyAnswer sorts the text of an error answer.
func classifyAnswer(text string) class {
	if slices.Contains(transientCodes, answerCode(text)) {
		return classTransient
	}
	text = strings.TrimPrefix(text, "ERR ")
	begins := func(s string) bool { return strings.HasPrefix(text, s) }
	switch {
	case begins("max number of clients reached"), begins("max clients"), slices.ContainsFunc(proxyUnsent, begins):
		return classTransient
	case slices.ContainsFunc(proxyUnknown, begins):
		return classUnknown
	}
	return classPermanent
}

// answerCode returns the code of an error answer, its first word. Servers before 7 put in front of it where a script
// failed: once where the script passes on what a protected call returned, "@user_script: 42: -READONLY You …",
// and again where it raises, "ERR Error running script (call to f_…): @user_script:42: @user_script: 42: -OOM …".
// Only a prefix at these places is stripped: a code in the middle of a text is none.
func answerCode(text string) string {
	text = strings.TrimPrefix(text, "ERR ")
	if strings.HasPrefix(text, "Error running script") {
		if _, inner, found := strings.Cut(text, "): "); found {
			text = inner
		}
	}
	for {
		place, found := strings.CutPrefix(text, "@user_script:")
		if !found {
			break
		}
		inner, found := strings.CutPrefix(strings.TrimLeft(place, " 0123456789"), ": ")
		if !found {
			break
		}
		text = inner
	}
	code, _, _ := strings.Cut(strings.TrimPrefix(text, "-"), " ")
	return strings.TrimSpace(code)
}

// hasCode reports whether err is an answer of a server with this code.
func hasCode(err error, code string) bool {
	answer, is := errors.AsType[redis.Error](err)
	return is && answerCode(answer.Error()) == code
}

// Permanent reports whether repeating the command that failed with err is in vain until somebody changes the server,
// the permissions or the key.
func Permanent(err error) bool { return classify(err) == classPermanent }

// Transient reports whether err is an answer of Redis that the command was refused and may be accepted later.
func Transient(err error) bool { return classify(err) == classTransient }

// Uncertain reports whether the command that failed with err was, or may have been, sent.
func Uncertain(err error) bool { return classify(err) == classUnknown }

// notSentError marks an error that arose before the command could be sent.
type notSentError struct{ err error }

func (e *notSentError) Error() string { return e.err.Error() }
func (e *notSentError) Unwrap() error { return e.err }

// configError says what is wrong with an argument of New and what to do about it.
func configError(field, problem string) error {
	return fmt.Errorf("%s: %s", field, problem)
}
