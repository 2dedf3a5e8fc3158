package lettucecompat

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// ownPrefix begins the name of the channel on which a client is spoken to by itself
// (probe) and by ForceRelease.
const ownPrefix = "anteroom:client:"

// releaseMessage is the design document's message (docs/protocol.md §1.3).
func releaseMessage(key, holder string, at time.Time) string {
	var room [256]byte // most names are short; the string is made once, at its length
	b := append(room[:0], `{"lockKey":`...)
	b = appendJSON(b, key)
	b = append(b, `,"releaseTime":`...)
	b = strconv.AppendInt(b, at.UnixMilli(), 10)
	b = append(b, `,"holder":`...)
	b = appendJSON(b, holder)
	return string(append(b, '}'))
}

// appendJSON appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD: the
// channel carries the exact name, the message only repeats it for a reader.
func appendJSON(b []byte, s string) []byte {
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) < 0 {
		b = append(b, '"')
		b = append(b, s...)
		return append(b, '"')
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

// validRelease reports whether payload is a release message. What it says is not used:
// the answer of the next attempt decides.
func validRelease(payload string) bool {
	_, ok := parseRelease(payload)
	return ok
}

// ownMessage is what arrives on a client's own channel: exactly one part is set.
type ownMessage struct {
	Probe  string        `json:"probe,omitempty"`
	Forced *forcedNotice `json:"forced,omitempty"`
}

// forcedNotice says which field of the client ForceRelease has deleted. Key travels as
// base64, because a lock's name may hold bytes that JSON cannot carry.
type forcedNotice struct {
	Key   []byte `json:"key"`
	Field string `json:"field"`
}

// forcedParts returns the notice around the field, which the script puts in: it knows
// the fields, and their form is such that they need no escaping.
func forcedParts(key string) (before, after string) {
	encoded, _ := json.Marshal([]byte(key)) // a byte slice always encodes
	return `{"forced":{"key":` + string(encoded) + `,"field":"`, `"}}`
}

// parseOwn returns the parts of a message on the client's own channel, ok false if it
// is none that we know.
func parseOwn(payload string) (m ownMessage, ok bool) {
	if json.Unmarshal([]byte(payload), &m) != nil {
		return ownMessage{}, false
	}
	return m, (m.Probe != "") != (m.Forced != nil)
}
