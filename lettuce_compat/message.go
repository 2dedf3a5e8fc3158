package lettucecompat

import (
	"strconv"
	"strings"
	"time"
)

// MessageKind says what a Message is about.
type MessageKind uint8

const (
	// MessageCalled: a script has given the lock to the client's place.
	MessageCalled MessageKind = iota
	// MessageTold: somebody stands behind the client's unit.
	MessageTold
	// MessageLook: the client's place had better be confirmed after Message.After.
	MessageLook
	// MessageForced: ForceRelease, called by anybody, has deleted the client's unit.
	MessageForced
)

// Message is what arrives on the client's own channel. Called and Look carry the secret word of the client's places,
// so only who has read the line can send them. Anyone who may publish can send the others: they are hints.
type Message struct {
	Kind  MessageKind
	Key   string
	N     uint64        // Called: of the last statement that made or confirmed the place; Told, Forced: of the unit
	Token int64         // Called: of this grant; 0 where the caller does not fence: a confirmation makes one
	Told  bool          // Called: somebody stands behind
	After time.Duration // Look
}

// ownPrefix begins the name of the channel on which one client is spoken to: by the scripts of all, and by itself
// (Probe). The scripts know it too.
const ownPrefix = "anteroom:client:"

// probePrefix begins the message of a Probe; its nonce follows.
const probePrefix = "probe - "

// parseMessage reads a message on the own channel of the client with this secret word: five words at most, then the
// bytes of the key.
//
//	called <word> <n> <units> <token, 0: none> <told 0|1> <key>
//	look <word> <ms> <key>
//	told - <n> <key>
//	forced - <n> <key>
func parseMessage(payload, secret string) (m Message, ok bool) {
	kind, rest, _ := strings.Cut(payload, " ")
	word, rest, _ := strings.Cut(rest, " ")
	number, rest, ok := strings.Cut(rest, " ")
	n, err := strconv.ParseUint(number, 10, 64)
	if !ok || err != nil || n > LastNumber || (word == secret) != (kind == "called" || kind == "look") {
		return Message{}, false
	}
	m.N, m.Key = n, rest
	switch kind {
	case "called":
		m.Kind = MessageCalled
		units, rest, ok1 := strings.Cut(rest, " ")
		token, rest, ok2 := strings.Cut(rest, " ")
		told, key, ok3 := strings.Cut(rest, " ")
		m.Token, err = strconv.ParseInt(token, 10, 64)
		m.Told, m.Key = told == "1", key
		return m, ok1 && ok2 && ok3 && err == nil && units == "1" && (m.Told || told == "0")
	case "look":
		m.Kind, m.N, m.After = MessageLook, 0, fromMillis(int64(n))
	case "told":
		m.Kind = MessageTold
	case "forced":
		m.Kind = MessageForced
	default:
		return Message{}, false
	}
	return m, word == "-" || m.Kind == MessageLook
}
