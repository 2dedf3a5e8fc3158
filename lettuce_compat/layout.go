package lettucecompat

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// This file is the layout of docs/internals/protocol.md §1 apart from the scripts: the names of channels, and what
// the messages on them say.

// releasePrefix begins the names of release channels in the design document's dialect, before the key. It has none
// of the characters that mean something in a pattern. Such a channel lies in another slot than its key, so it is used
// with PUBLISH, never SPUBLISH.
const releasePrefix = "lock:release:"

// QuotePattern returns the pattern that covers s alone.
func QuotePattern(s string) string { return patternQuoter.Replace(s) }

var patternQuoter = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// appendRelease appends what a release publishes in the design document's dialect. holder, as checkClientID has it, needs no escape.
func appendRelease(b []byte, key string, holder []byte, at time.Time) []byte {
	b = append(b, `{"lockKey":`...)
	b = appendJSON(b, key)
	b = append(b, `,"releaseTime":`...)
	b = strconv.AppendInt(b, at.UnixMilli(), 10)
	b = append(b, `,"holder":"`...)
	b = append(b, holder...)
	return append(b, `"}`...)
}

// appendJSON appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD: the channel carries the exact name,
// the message only repeats it for a reader.
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

// Announcement is a release as its message describes it, for people and tools that listen. Anyone who may publish on
// the channel can send one: it must decide nothing.
type Announcement struct {
	Key string // exact, because it is taken from the channel's name
	// Holder is the field that was released; after ForceRelease the client id of who forced it. Bytes that are not
	// UTF-8 arrive as U+FFFD.
	Holder string
	At     time.Time // by the wall clock of who released
}

// parseRelease is Dialect.ParseRelease of the design document's dialect.
func parseRelease(channel, payload string) (a Announcement, ok bool) {
	key, ours := strings.CutPrefix(channel, releasePrefix)
	if !ours {
		return Announcement{}, false
	}
	var body struct {
		LockKey     *string `json:"lockKey"`
		ReleaseTime int64   `json:"releaseTime"`
		Holder      string  `json:"holder"`
	}
	if json.Unmarshal([]byte(payload), &body) != nil || body.LockKey == nil {
		return Announcement{Key: key}, false
	}
	return Announcement{Key: key, Holder: body.Holder, At: time.UnixMilli(body.ReleaseTime)}, true
}
