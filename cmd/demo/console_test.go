package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A pipe gets no live line and no escape codes, and the longest line fits the width.
func TestConsole_PipeGetsPlainLinesThatFit(t *testing.T) {
	var out strings.Builder
	c := newConsole(&out, false)
	c.status("live")
	c.detail(markEvent, "nobody asked for this")
	c.took(markNotice, 12345*time.Millisecond, "%s", strings.Repeat("x", 66))
	c.status("")
	if text := out.String(); strings.ContainsAny(text, "\x1b\r") || strings.Count(text, "\n") != 1 || len(text) > columns+1 ||
		!strings.Contains(text, " notice   x") || !strings.Contains(text, "after 12.345s\n") {
		t.Errorf("%q", text)
	}
}

// A longer live line leaves nothing behind a shorter one, lines are above it, and it is never older than those.
func TestConsole_TerminalRewritesItsLiveLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		c := newConsole(&out, true)
		c.width = 25
		c.status("too long to fit")
		c.status("short")
		time.Sleep(time.Second)
		c.plain("line")
		c.status("")
		const want = "\r   0.0s  live     too lo" + "\r   0.0s  live     short " +
			"\r                       \rline\n" + "\r   1.0s  live     short" + "\r                       \r"
		if out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
		c.coloured = true
		c.say(markFault, "red")
		if !strings.Contains(out.String(), "\x1b[1;33mFAULT  \x1b[0m  red\n") {
			t.Errorf("no colour: %q", out.String())
		}
	})
}

// The last line says in words how the run has ended.
func TestDemo_LastLine(t *testing.T) {
	for want, r := range map[string]result{
		"9 acquisitions by 2 processes, 6 of them without a command to Redis, 1 faults, 1 losses reported: no lock was held twice": {Processes: 2, Acquisitions: 9, HandOffs: 6, Faults: 1, Lost: 1},
		": no lock was held twice, except where a fault had deleted it (1 overlaps)":                                               {Overlaps: 1},
		": FAILED, with 1 violations and 0 promises missed":                                                                        {Violations: 1},
		": FAILED, with 0 violations and 2 promises missed":                                                                        {Failed: 2},
	} {
		if !strings.Contains(r.String(), want) {
			t.Errorf("%q, want %q", r.String(), want)
		}
	}
}
