package debug

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText_TimesAreWorded(t *testing.T) {
	for s, want := range map[float64]string{
		0: "0 ms", -5: "0 ms", .0004: "0 ms", .85: "850 ms", .9999: "1.0 s", 1: "1.0 s", 12.34: "12.3 s", 60: "1 min 0 s", 250: "4 min 10 s",
		7500: "2 h 5 min", 273_600: "3 d 4 h", math.Inf(1): "11574 d 1 h", -math.MaxFloat64: "0 ms",
	} {
		if got := lasting(s); got != want {
			t.Errorf("%v s is %q, want %q", s, got, want)
		}
	}
	lasting(math.NaN()) // it ends
}

func TestText_ClipsBetweenCharacters(t *testing.T) {
	for _, s := range []string{strings.Repeat("ä", 10), strings.Repeat("\xff", 20), strings.Repeat("\x80", 20), "€€€€€€€"} {
		for max := range 21 {
			got := clip(s, max)
			if len(got) > max+len("…") || utf8.ValidString(s) && !utf8.ValidString(got) || len(s) <= max && got != s {
				t.Errorf("%q clipped to %d is %q", s, max, got)
			}
		}
	}
}

func TestText_WhatDoesNotPrintIsQuoted(t *testing.T) {
	for s, want := range map[string]string{
		"order:42": "order:42", "für 中 🎉": "für 中 🎉", "a\x00": `"a\x00"`, "\xff": `"\xff"`, "\u202e": `"\u202e"`, `"quoted"`: `"quoted"`,
	} {
		if got := show(s); got != want {
			t.Errorf("%q is shown as %s, want %s", s, got, want)
		}
	}
}
