package debug

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/anteroom/anteroom/sync/observe"
)

// maxKeyText bounds how much of a key is shown, in bytes.
const maxKeyText = 256

// show returns s if it is printable, and otherwise quoted as in Go: neither invalid UTF-8 nor a character that
// changes the writing direction may affect the text around it.
func show(s string) string {
	if prints(s) {
		return s
	}
	return strconv.Quote(s)
}

// brief is show for strings that may be long: the result has about max bytes, or twice that if it is quoted. It reads
// no more than that of s.
func brief(s string, max int) string { return clip(show(clip(s, max)), 2*max) }

func prints(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) })
}

// plain returns s for the value of a form's field, with a mark for each unprintable character.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// clip shortens s to about max bytes, never in the middle of a character.
func clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max] + "…"
}

// nameOf returns how a key is shown on the page.
func nameOf(key string, hide bool) Name {
	n := Name{KeyHash: observe.KeyHash(key), KeyBytes: len(key)}
	if hide {
		return n
	}
	n.Key, n.KeyQuoted = brief(key, maxKeyText), !prints(clip(key, maxKeyText))
	return n
}

// filterOf is what the parameter key must be a prefix of. If keys are hidden it is the hash: filtering by the key
// would let a client find it out letter by letter.
func filterOf(key string, hide bool) string {
	if hide {
		return observe.KeyHash(key)
	}
	return key
}

// seconds rounds to milliseconds.
func seconds(d time.Duration) float64 { return float64(d.Round(time.Millisecond)) / 1e9 }

// lasting formats a number of seconds for people. Any number is allowed; negative ones are shown as 0.
func lasting(s float64) string {
	const most = 1e9 // thirty years; a Duration overflows after 290
	d := time.Duration(max(min(s, most), 0) * 1e9).Round(time.Millisecond)
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// place shortens a call site to its last folder, file and line.
func place(callSite string) string {
	parts := strings.Split(callSite, "/")
	return strings.Join(parts[max(len(parts)-2, 0):], "/")
}
