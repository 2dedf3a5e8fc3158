package main

import (
	"strings"
	"testing"
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

// A longer live line leaves nothing behind a shorter one, and lines are above it.
func TestConsole_TerminalRewritesItsLiveLine(t *testing.T) {
	var out strings.Builder
	c := newConsole(&out, true)
	c.width = 12
	c.status("a live line that is too long")
	c.status("short")
	c.plain("line")
	c.status("")
	const want = "\ra live line" + "\rshort      " + "\r     \rline\n" + "\rshort" + "\r     \r"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	c.coloured = true
	c.say(markFault, "red")
	if !strings.Contains(out.String(), "\x1b[1;33mFAULT  \x1b[0m  red\n") {
		t.Errorf("no colour: %q", out.String())
	}
}
