package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// voiceLines is how many lines may wait for the reader; further lines are dropped. Outages and failing renewals cause
// a few lines a minute.
const voiceLines = 64

// voice writes lines for people without ever blocking: standard error may be a pipe that is full, or a terminal
// stopped by ^S, and a command whose lock is lost has to end all the same.
type voice struct {
	lines   chan string
	written chan struct{} // closed when all lines are written

	mu     sync.Mutex // guards closed and the sending; a leaf
	closed bool
}

// newVoice starts a voice; close ends it.
func newVoice(w io.Writer) *voice {
	v := &voice{lines: make(chan string, voiceLines), written: make(chan struct{})}
	go func() {
		defer close(v.written)
		for l := range v.lines {
			_, _ = io.WriteString(w, l) // a write error is no reason to end
		}
	}()
	return v
}

// say queues one line.
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
