package lettucecompat

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// ErrNoAnnouncement is ParseRelease's error for a message that announces no release.
var ErrNoAnnouncement = errors.New("not a release message")

// Announcement is a release as its message tells it, for people and tools that listen.
// Anyone who may publish on the channel can send one: it must decide nothing.
type Announcement struct {
	Key string // exact, because it is taken from the channel's name
	// Holder is the field that was released; after ForceRelease the client id of who
	// forced it. Bytes that are not UTF-8 arrive as U+FFFD.
	Holder string
	At     time.Time // by the wall clock of who released
}

// ReleaseChannel returns the channel on which a release of key is announced.
func (d Dialect) ReleaseChannel(key string) string { return d.orDefault().channel(key) }

// ReleasePattern returns the pattern of PSUBSCRIBE that covers the release channels of
// the keys that glob covers, in Redis' own syntax of patterns.
func (d Dialect) ReleasePattern(glob string) string { return d.orDefault().channel(glob) }

// QuotePattern returns the pattern that covers s alone.
func QuotePattern(s string) string { return patternQuoter.Replace(s) }

var patternQuoter = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// ParseRelease reads a message from a release channel. A message that announces nothing
// is ErrNoAnnouncement; the Announcement then has the Key, if the channel is one of ours.
func (d Dialect) ParseRelease(channel, payload string) (Announcement, error) {
	key, ours := d.orDefault().lock(channel)
	m, valid := parseRelease(payload)
	if !ours || !valid {
		return Announcement{Key: key}, ErrNoAnnouncement
	}
	return Announcement{Key: key, Holder: m.Holder, At: time.UnixMilli(m.ReleaseTime)}, nil
}

// orDefault returns the dialect that d stands for.
func (d Dialect) orDefault() Dialect {
	if d.name == "" {
		return DesignDocument
	}
	return d
}

// releasePrefix begins the names of release channels. It has none of the characters that
// mean something in a pattern.
const releasePrefix = "lock:release:"

// releasedLock returns the lock that a release channel belongs to.
func releasedLock(channel string) (key string, ok bool) {
	if key, ok = strings.CutPrefix(channel, releasePrefix); !ok {
		key = ""
	}
	return key, ok
}

// releaseBody is what a release message says.
type releaseBody struct {
	LockKey     *string `json:"lockKey"`
	ReleaseTime int64   `json:"releaseTime"`
	Holder      string  `json:"holder"`
}

// parseRelease reads a release message; ok is false if payload is none.
func parseRelease(payload string) (m releaseBody, ok bool) {
	ok = json.Unmarshal([]byte(payload), &m) == nil && m.LockKey != nil
	return m, ok
}
