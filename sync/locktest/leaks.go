package locktest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/sync/observe"
)

const (
	// leakTime bounds how long the end of a test waits for goroutines that still hold a lock. The test's context has
	// ended by then, and they may be about to release.
	leakTime = 200 * time.Millisecond

	// leakPoll is how often it checks.
	leakPoll = 2 * time.Millisecond
)

// Option is an option of NewManager.
type Option interface{ apply(*options) }

type options struct{ leaks bool }

type option func(*options)

func (o option) apply(to *options) { o(to) }

// AllowLeaks lets a test end with locks that are still held, for example if it simulates a process that crashes. The
// test's log names them.
func AllowLeaks() Option { return option(func(o *options) { o.leaks = true }) }

// end stops the server and reports what went wrong: the leaks (I6), unless they are allowed, and the errors of Close.
func (m *Manager) end(tb testing.TB, leaks bool) {
	tb.Helper()
	list, errs := m.srv.stop() // all events have been delivered when it returns
	list = append(list, m.srv.abandoned()...)
	if !leaks {
		for _, l := range list {
			tb.Errorf("locktest: leaked: %s", l)
		}
	}
	if err := errors.Join(errs...); err != nil {
		tb.Logf("locktest: at the end of the test: %v", err)
	}
}

// onEvent records the holds that the watchdog ended because their owners are gone: they are no longer held when the
// test ends, but were leaked all the same.
func (s *server) onEvent(then func(observe.Event)) func(observe.Event) {
	return func(e observe.Event) {
		if e.Kind == observe.EventLost && (e.Found == "holder:holder_gone" || e.Found == "holder:holder_unreachable") {
			s.mu.Lock()
			s.dropped = append(s.dropped, e)
			s.mu.Unlock()
		}
		if then != nil {
			then(e)
		}
	}
}

// abandoned returns what onEvent has recorded, as text.
func (s *server) abandoned() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, e := range s.dropped {
		list = append(list, fmt.Sprintf("%q was lost because its owner was gone: acquired at %s: %s", e.Key, cmp.Or(e.CallSite, "an unknown place"), e.Text))
	}
	return list
}

// awaitLeft waits until no lock is held, and returns, after leakTime, those that still are, as text.
func (s *server) awaitLeft() []string {
	limit := time.NewTimer(leakTime)
	defer limit.Stop()
	for {
		left := s.left()
		if len(left) == 0 {
			return nil
		}
		again := time.NewTimer(leakPoll)
		select {
		case <-again.C:
		case <-limit.C:
			again.Stop()
			return left
		}
	}
}

// left returns the held locks of all Managers, as text.
func (s *server) left() []string {
	s.mu.Lock()
	managers := s.managers
	s.mu.Unlock()
	var list []string
	for _, a := range managers {
		for _, st := range a.m.Snapshot() {
			if st.Status == "owned" || st.Status == "lost" {
				list = append(list, leak(st))
			}
		}
	}
	slices.Sort(list)
	return list
}

// leak describes one of them.
func leak(st observe.State) string {
	missing, how := "released", "acquired"
	if st.Kind == "lock" || st.Kind == "try_lock" {
		missing, how = "unlocked", "locked"
	}
	text := fmt.Sprintf("%q was not %s by the end of the test: %s at %s by goroutine %d", st.Key, missing, how, cmp.Or(st.CallSite, "an unknown place"), st.Goroutine)
	if st.Count > 1 {
		text += fmt.Sprintf(", held %d times", st.Count)
	}
	if st.Lost {
		text += ", lost meanwhile"
	}
	return text
}
