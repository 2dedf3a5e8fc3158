package lettucecompat

import (
	"strconv"
	"strings"
	"time"
)

// MessageKind says what a Message is about.
type MessageKind uint8

const (
	// MessageCalled: a script has given the lock, or so many units of it, to the client's place.
	MessageCalled MessageKind = iota
	// MessageContended: another client waits for the client's units.
	MessageContended
	// MessageRetry: the client should confirm its place after Message.After.
	MessageRetry
	// MessageForced: ForceRelease, called by anybody, has deleted the client's units.
	MessageForced
)

// Message is what arrives on the client's own channel. Called and Retry carry the secret word of the client's places,
// so only a sender that has read the line can send them. Anyone who may publish can send the others: they are hints.
type Message struct {
	Kind      MessageKind
	Key       string
	N         uint64        // Called: of the last command that made or confirmed the place; Contended, Forced: of the record of the client's units
	Units     int64         // Called: what the client has now, 1 of a Mutex; more may have been there already
	Token     int64         // Called: of this grant; 0 where the caller does not fence: a confirmation makes one
	Contended bool          // Called: another client waits behind
	After     time.Duration // Retry
}

// ownPrefix begins the name of the channel on which one client is spoken to: by the scripts of all, and by itself
// (Probe). The scripts know it too.
const ownPrefix = "anteroom:client:"

// probePrefix begins the message of a Probe; its nonce follows.
const probePrefix = "probe - "

// parseMessage reads a message on the own channel of the client with this secret word: five words at most, then the
// bytes of the key.
//
//	called <word> <n> <units> <token, 0: none> <contended 0|1> <key>
//	retry <word> <ms> <key>
//	contended - <n> <key>
//	forced - <n> <key>
func parseMessage(payload, secret string) (m Message, ok bool) {
	kind, tail, _ := strings.Cut(payload, " ")
	word, tail, _ := strings.Cut(tail, " ")
	number, tail, ok := strings.Cut(tail, " ")
	n, err := strconv.ParseUint(number, 10, 64)
	if !ok || err != nil || n > LastNumber || (word == secret) != (kind == "called" || kind == "retry") {
		return Message{}, false
	}
	m.N, m.Key = n, tail
	switch kind {
	case "called":
		m.Kind = MessageCalled
		units, tail, ok1 := strings.Cut(tail, " ")
		token, tail, ok2 := strings.Cut(tail, " ")
		contended, key, ok3 := strings.Cut(tail, " ")
		var err1 error
		m.Units, err1 = strconv.ParseInt(units, 10, 64)
		m.Token, err = strconv.ParseInt(token, 10, 64)
		m.Contended, m.Key = contended == "1", key
		return m, ok1 && ok2 && ok3 && err == nil && err1 == nil && units[0] >= '1' && m.Units <= MostUnits && (m.Contended || contended == "0")
	case "retry":
		m.Kind, m.N, m.After = MessageRetry, 0, fromMillis(int64(n))
	case "contended":
		m.Kind = MessageContended
	case "forced":
		m.Kind = MessageForced
	default:
		return Message{}, false
	}
	return m, word == "-" || m.Kind == MessageRetry
}
