// Package goroutines asks the runtime where goroutines are and which have ended.
//
// It relies on ids that the runtime never gives twice, and on the text of a goroutine dump,
// of which it passes over what it does not understand.
package goroutines

import (
	"bytes"
	"fmt"
	"iter"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	// MaxCount is how many goroutines a process may have to be inspected: the dump stops the
	// world for about 6 µs each, and a tenth of a second is the most that a lock library may
	// take from its program.
	MaxCount = 20_000
	// The dump's buffer: a guess from the count first, doubled while the dump fills it.
	dumpPerGoroutine = 2 << 10
	minDump          = 256 << 10
	maxDump          = 64 << 20
)

// Scan is what one goroutine dump says about those that were asked about.
type Scan struct {
	// At is when the dump was taken.
	At time.Time
	// Complete is false when the dump was cut short or not taken; Reason says why.
	// Nothing can be concluded then from a goroutine that is missing.
	Complete bool
	Reason   string
	// States holds an entry for each goroutine that was asked about.
	States map[int64]Goroutine
}

// Goroutine is one goroutine in a dump.
type Goroutine struct {
	// Ended: a complete dump does not show it. The runtime never gives a
	// goroutine's id to another one.
	Ended bool
	// State is the runtime's word for what it does: "running", "chan receive", ….
	State string
	// Waited is for how long it has been doing so, in full minutes; the runtime does
	// not say less.
	Waited time.Duration
	// Frame is the innermost function outside the runtime and sync, with file and
	// line; it is empty where the dump shows no such frame.
	Frame string
	// Caller is the file and line from which this library was called, and by which a
	// goroutine that waits for a lock is known to its author. It is empty where the
	// goroutine is not inside this library.
	Caller string

	remark string // see Remark; made once, because a goroutine may hold many thousand locks
}

// Remark words what a goroutine is doing.
func (g Goroutine) Remark(id int64) string {
	if g.remark != "" {
		return g.remark
	}
	return fmt.Sprintf("goroutine %d %s", id, g)
}

// Parked reports whether the goroutine waits for something: another goroutine, a timer,
// the network.
func (g Goroutine) Parked() bool {
	switch g.State {
	case "", "idle", "runnable", "running", "syscall", "preempted", "copystack":
		return false
	}
	return !g.Ended
}

// At says where the goroutine is in terms of its author: Caller while it is inside this
// library, otherwise Frame.
func (g Goroutine) At() string {
	if g.Caller != "" && library(g.Frame) {
		return g.Caller
	}
	return g.Frame
}

// String says where and for how long the goroutine is blocked.
func (g Goroutine) String() string {
	if g.Ended {
		return "has ended"
	}
	waited := "less than a minute"
	if g.Waited > 0 {
		waited = fmt.Sprintf("%d minutes", int(g.Waited.Minutes()))
	}
	if g.Frame == "" {
		return fmt.Sprintf("is in %q for %s", g.State, waited)
	}
	return fmt.Sprintf("is in %q for %s in %s", g.State, waited, g.Frame)
}

// parse reads a dump as runtime.Stack writes it and returns an entry for each of the asked
// ids; those that the dump does not show are Ended. Ended means something only if the dump
// is complete.
func parse(dump []byte, asked []int64) map[int64]Goroutine {
	states := make(map[int64]Goroutine, len(asked))
	for _, id := range asked {
		states[id] = Goroutine{Ended: true}
	}
	for len(dump) > 0 {
		var block []byte
		block, dump, _ = bytes.Cut(dump, []byte("\n\n"))
		header, stack, _ := bytes.Cut(block, []byte("\n"))
		id, state, ok := parseHeader(string(header))
		if _, known := states[id]; !ok || !known {
			continue
		}
		state.Frame, state.Caller = topFrame(string(stack)), caller(string(stack))
		states[id] = state
	}
	return states
}

// parseHeader reads "goroutine 7 [chan receive, 5 minutes, locked to thread]:". Between
// id and bracket the runtime may print addresses (GOTRACEBACK=system), behind the state
// a mark in parentheses ("(durable)", "(leaked)", "(scan)"), and at the end of the bracket
// the goroutine's labels (GODEBUG=tracebacklabels=1).
func parseHeader(line string) (int64, Goroutine, bool) {
	tail, ok := strings.CutPrefix(line, "goroutine ")
	if !ok {
		return 0, Goroutine{}, false
	}
	number, tail, _ := strings.Cut(tail, " ")
	id, err := strconv.ParseInt(number, 10, 64)
	_, tail, open := strings.Cut(tail, "[")
	tail, _, labelled := strings.Cut(tail, " labels:{")
	inside, _, closed := strings.Cut(tail, "]")
	closed = closed || labelled
	if err != nil || !open || !closed {
		return 0, Goroutine{}, false
	}
	parts := strings.Split(inside, ", ")
	g := Goroutine{State: parts[0]}
	for _, mark := range []string{" (durable)", " (scan)", " (leaked)"} {
		g.State = strings.TrimSuffix(g.State, mark)
	}
	for _, part := range parts[1:] {
		if minutes, ok := strings.CutSuffix(part, " minutes"); ok {
			n, _ := strconv.Atoi(minutes)
			g.Waited = time.Duration(n) * time.Minute
		}
	}
	return id, g, true
}

// topFrame returns the innermost frame that helps a reader: where the
// goroutine is in its own code and not in which primitive.
func topFrame(stack string) string {
	for function, place := range frames(stack) {
		if end := strings.LastIndexByte(function, '('); end > 0 {
			function = function[:end]
		}
		return function + " (" + place + ")"
	}
	return ""
}

// caller returns the place from which the innermost call into this library was made.
func caller(stack string) string {
	inside := false
	for function, place := range frames(stack) {
		if library(function) {
			inside = true
		} else if inside {
			return place
		}
	}
	return ""
}

// frames goes through a stack, from the innermost frame on, without primitives. A frame is
// two lines, "path/pkg.Func(args)" and "\tfile:line +0x1f".
func frames(stack string) iter.Seq2[string, string] {
	return func(yield func(function, place string) bool) {
		for stack != "" {
			var function, place string
			function, stack, _ = strings.Cut(stack, "\n")
			if strings.HasPrefix(function, "created by ") {
				return
			}
			if !strings.HasPrefix(stack, "\t") {
				continue
			}
			place, stack, _ = strings.Cut(stack, "\n")
			if primitive(function) {
				continue
			}
			place, _, _ = strings.Cut(strings.TrimSpace(place), " +0x")
			if !yield(function, place) {
				return
			}
		}
	}
}

// library reports whether a frame belongs to the packages of this module that users import.
func library(function string) bool {
	name, ours := strings.CutPrefix(function, "github.com/anteroom/anteroom/")
	if !ours {
		return false
	}
	switch pkg, _, _ := strings.Cut(name, "."); pkg {
	case "sync", "sync/internal/lock", "queue", "renewal", "watchdog", "lettuce_compat", "metrics":
		return true
	}
	return false
}

// primitive reports whether a frame belongs to what every blocked goroutine shows.
func primitive(function string) bool {
	for _, prefix := range []string{"runtime.", "internal/", "sync.", "time.Sleep("} {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return false
}

// Inspect asks the runtime about goroutines at the moment now. It stops the world for about
// 6 µs a goroutine, so callers do it rarely; a process of more than 20,000 is left alone.
func Inspect(now time.Time, asked []int64) Scan {
	return Read(now, asked, runtime.NumGoroutine(), func(buf []byte) int { return runtime.Stack(buf, true) })
}

// Read is Inspect with a count of goroutines and a dump of the caller's own. It takes the dump
// once for each size of buffer that it tries, so the first guess is generous. On failure
// the result is not complete and still lists what was asked.
func Read(now time.Time, asked []int64, count int, dump func([]byte) int) Scan {
	failed := func(reason string) Scan { return Scan{At: now, Reason: reason, States: parse(nil, asked)} }
	if count > MaxCount {
		return failed(fmt.Sprintf("%d goroutines are too many to inspect", count))
	}
	for size := min(max(minDump, count*dumpPerGoroutine), maxDump); ; size = min(2*size, maxDump) {
		buf := make([]byte, size)
		if n := dump(buf); n < size {
			states := parse(buf[:n], asked)
			for id, state := range states {
				if state.Parked() {
					state.remark = state.Remark(id)
					states[id] = state
				}
			}
			return Scan{At: now, Complete: true, States: states}
		}
		if size == maxDump {
			return failed(fmt.Sprintf("the dump is longer than %d MiB", maxDump>>20))
		}
	}
}
