//go:build unix

package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// voiceLines is how many lines may wait for a reader; more are dropped. Outages and
// renewals that fail are a few lines a minute.
const voiceLines = 64

// voice writes lines for people. Nobody who speaks waits for a reader: standard error may
// be a pipe that is full, or a terminal that ^S has stopped, and a command whose lock is
// lost has to end all the same.
type voice struct {
	lines   chan string
	written chan struct{} // closed when all lines are

	mu     sync.Mutex // guards closed and the sending; a leaf
	closed bool
}

// newVoice starts a voice, which ends with close.
func newVoice(w io.Writer) *voice {
	v := &voice{lines: make(chan string, voiceLines), written: make(chan struct{})}
	go func() {
		defer close(v.written)
		for l := range v.lines {
			_, _ = io.WriteString(w, l) // a standard error that is gone is no reason to end
		}
	}()
	return v
}

// say writes one line, soon.
func (v *voice) say(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return
	}
	select {
	case v.lines <- fmt.Sprintf("anteroom: "+format+"\n", args...):
	default:
	}
}

// close waits until everything is written, or for cleanUpTime.
func (v *voice) close() {
	v.mu.Lock()
	v.closed = true
	close(v.lines)
	v.mu.Unlock()
	select {
	case <-v.written:
	case <-time.After(cleanUpTime):
	}
}
