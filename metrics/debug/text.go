package debug

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	anteroom "github.com/anteroom/anteroom/sync"
)

// maxKeyText bounds what is shown of a key, in bytes.
const maxKeyText = 256

// show returns s if all of it prints, and otherwise as Go quotes it: neither a byte that is
// no UTF-8 nor one that turns the direction of writing may change what stands beside it.
func show(s string) string {
	if prints(s) {
		return s
	}
	return strconv.Quote(s)
}

// brief is show for what may be long: of about max bytes, or twice that where it is quoted. No
// more than that is looked at.
func brief(s string, max int) string { return clip(show(clip(s, max)), 2*max) }

func prints(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) })
}

// plain is s for the value of a form's field, with a mark for each character that does not print.
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

// nameOf says how a key is called on the page.
func nameOf(key string, hide bool) Name {
	n := Name{KeyHash: anteroom.KeyHash(key), KeyBytes: len(key)}
	if hide {
		return n
	}
	n.Key, n.KeyQuoted = brief(key, maxKeyText), !prints(clip(key, maxKeyText))
	return n
}

// filterOf is what the parameter key is compared with, as a beginning of it. Where keys are
// hidden it is the hash: with the key whoever asks could find it out letter by letter.
func filterOf(key string, hide bool) string {
	if hide {
		return anteroom.KeyHash(key)
	}
	return key
}

// seconds rounds to milliseconds.
func seconds(d time.Duration) float64 { return float64(d.Round(time.Millisecond)) / 1e9 }

// lasting words a time in seconds for people. It is asked for what is negative where that is
// worth a word of its own, and otherwise shows it as no time at all; it takes any number.
func lasting(s float64) string {
	const most = 1e9 // thirty years, where a Duration ends after 290
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
