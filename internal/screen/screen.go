// Package screen collects the output of a program under test. Tests wait for words on it instead of for a time,
// because the speed of the machine is unknown.
package screen

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// Screen keeps what is written to it. It is safe for concurrent use.
type Screen struct {
	mu   sync.Mutex
	buf  bytes.Buffer // guarded by mu
	cues []cue        // guarded by mu
}

// cue calls then, once, with the contents of the screen when word appears.
type cue struct {
	word string
	then func(text string)
}

// On calls then, once, with the contents of the screen when word appears. The writer waits for it.
func (s *Screen) On(word string, then func(text string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cues = append(s.cues, cue{word, then})
}

// Write adds p and calls the cues whose words have appeared.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	s.buf.Write(p)
	text := s.buf.String()
	var due []cue
	s.cues = slices.DeleteFunc(s.cues, func(c cue) bool {
		if !strings.Contains(text, c.word) {
			return false
		}
		due = append(due, c)
		return true
	})
	s.mu.Unlock()
	for _, c := range due {
		c.then(text)
	}
	return len(p), nil
}

// String returns what was written.
func (s *Screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}
