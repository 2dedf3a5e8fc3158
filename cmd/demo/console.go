package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// mark is the word before a line, which says what the line is about, and its colour on a terminal.
type mark struct{ word, colour string }

var (
	markFault   = mark{"FAULT", "1;33"}  // injected by the demonstration
	markNotice  = mark{"notice", "32"}   // what the library said about it
	markNext    = mark{"next", "32"}     // the lock is in use again
	markOK      = mark{"ok", "1;32"}     // at the end: a promise that was kept
	markNote    = mark{"note", "2"}      // anything else
	markEvent   = mark{"event", "2"}     // --verbose: the library's other events
	markFigures = mark{"figures", "36"}  // of a second
	markBroken  = mark{"BROKEN", "1;31"} // a promise that was not kept
	markFailed  = mark{"FAILED", "1;31"} // what the exit status is about
)

// columns is the width that lines are made for.
const columns = 100

// console writes the output of a run. A line has the time since the beginning, a mark and, at the right, how long the
// library took. On a terminal a live line is below the others, and is rewritten. Elsewhere, or with NO_COLOR in
// the environment, nothing but text is written. Safe for concurrent use.
type console struct {
	verbose  bool
	begin    time.Time
	width    int // of the live line; 0 for none
	coloured bool

	mu   sync.Mutex
	out  io.Writer
	live string // the live line that is on the screen, guarded by mu
	says string // what it says beside the time, guarded by mu
}

func newConsole(out io.Writer, verbose bool) *console {
	c := &console{verbose: verbose, begin: time.Now(), out: out}
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return c
	}
	c.width = columns
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 1 {
		c.width = min(w, columns)
	}
	// A console of Windows shows the codes of colours as text unless a program asks it not to.
	c.coloured = os.Getenv("NO_COLOR") == "" && runtime.GOOS != "windows"
	return c
}

// say writes one line.
func (c *console) say(m mark, format string, args ...any) {
	c.line(m, fmt.Sprintf(format, args...), "")
}

// took writes one line and at its right how long after the fault it happened.
func (c *console) took(m mark, d time.Duration, format string, args ...any) {
	c.line(m, fmt.Sprintf(format, args...), fmt.Sprintf("after %v", d.Round(100*time.Microsecond)))
}

// detail writes one line if the user asked for all of them.
func (c *console) detail(m mark, format string, args ...any) {
	if c.verbose {
		c.say(m, format, args...)
	}
}

// broken writes a promise that was not kept.
func (c *console) broken(format string, args ...any) { c.say(markBroken, format, args...) }

func (c *console) line(m mark, text, right string) {
	text = strings.ReplaceAll(text, "\n", "; ")
	if right != "" {
		text = fmt.Sprintf("%-66s %14s", text, right)
	}
	word := fmt.Sprintf("%-7s", m.word)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.coloured {
		word = "\x1b[" + m.colour + "m" + word + "\x1b[0m"
	}
	c.write(fmt.Sprintf("%6.1fs  %s  %s", time.Since(c.begin).Seconds(), word, text))
}

// plain writes a line as it is: the heading, and the last line of a run.
func (c *console) plain(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write(text)
}

// write writes a line above the live line. The caller holds mu.
func (c *console) write(text string) {
	c.show("")
	fmt.Fprintln(c.out, text)
	c.show(c.says)
}

// status replaces the live line; "" removes it. Without a terminal it does nothing.
func (c *console) status(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.says = fmt.Sprintf(format, args...)
	c.show(c.says)
}

// show puts the time and text over the present live line, with spaces over the end of a longer one, so that no escape codes
// are needed. One column stays free: with it a terminal would start a new line. The caller holds mu.
func (c *console) show(text string) {
	if text != "" {
		text = fmt.Sprintf("%6.1fs  live     %s", time.Since(c.begin).Seconds(), text)
	}
	if c.width == 0 || text == c.live {
		return
	}
	text = text[:min(len(text), c.width-1)]
	if text == "" {
		fmt.Fprintf(c.out, "\r%*s\r", len(c.live), "")
	} else {
		fmt.Fprintf(c.out, "\r%-*s", max(len(text), len(c.live)), text)
	}
	c.live = text
}
