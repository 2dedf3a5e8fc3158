package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/anteroom/anteroom/internal/testredis"
)

// standIn takes the place of a *testing.T for what is made for tests.
type standIn struct {
	out *lines

	mu       sync.Mutex
	cleanups []func() // guarded by mu
	failed   []string // guarded by mu
}

var _ testredis.TB = (*standIn)(nil)

// Helper does nothing.
func (*standIn) Helper() {}

// Name names the program.
func (*standIn) Name() string { return "chaos" }

// TempDir returns a directory that is removed at the end.
func (s *standIn) TempDir() string {
	dir, err := os.MkdirTemp("", "anteroom-chaos-")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Cleanup has f called at the end, the last one first.
func (s *standIn) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

// Fatal notes a failure and ends the calling goroutine.
func (s *standIn) Fatal(args ...any) {
	s.fail("%s", fmt.Sprint(args...))
	runtime.Goexit()
}

// Fatalf is Fatal with a format.
func (s *standIn) Fatalf(format string, args ...any) {
	s.fail(format, args...)
	runtime.Goexit()
}

// Skip is Fatal: a run that was left out proves nothing.
func (s *standIn) Skip(args ...any) { s.Fatal(args...) }

func (s *standIn) fail(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = append(s.failed, fmt.Sprintf(format, args...))
}

// recover notes a panic of the run; it is deferred.
func (s *standIn) recover() {
	if p := recover(); p != nil {
		stack := make([]byte, 16<<10)
		s.fail("panic: %v\n%s", p, stack[:runtime.Stack(stack, false)])
	}
}

func (s *standIn) failures() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.failed)
}

// cleanUp calls what was given to Cleanup. It is called once, at the end.
func (s *standIn) cleanUp() {
	for {
		s.mu.Lock()
		n := len(s.cleanups)
		if n == 0 {
			s.mu.Unlock()
			return
		}
		f := s.cleanups[n-1]
		s.cleanups = s.cleanups[:n-1]
		s.mu.Unlock()
		func() {
			defer s.recover()
			f()
		}()
	}
}
