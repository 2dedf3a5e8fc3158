package testredis

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
)

// Program replaces a *testing.T in a program that runs without a test. What is fatal to a test ends the calling
// goroutine, and is recorded. It is safe for concurrent use.
type Program struct {
	name string

	mu       sync.Mutex
	cleanups []func() // guarded by mu
	failed   []string // guarded by mu
}

var _ TB = (*Program)(nil)

// NewProgram returns the TB of the program of that name. CleanUp must be called at the end.
func NewProgram(name string) *Program { return &Program{name: name} }

// WithoutTest runs f and then its clean-ups. It returns f's error, or the fatal failure.
func WithoutTest(name string, f func(p *Program) error) (err error) {
	p := NewProgram(name)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer p.Recover()
		err = f(p)
	}()
	<-ended
	p.CleanUp()
	for _, failure := range p.Failures() {
		err = errors.Join(err, errors.New(failure))
	}
	return err
}

// Helper does nothing.
func (*Program) Helper() {}

// Name returns the program's name.
func (p *Program) Name() string { return p.name }

// TempDir returns a directory that is removed at the end.
func (p *Program) TempDir() string {
	dir, err := os.MkdirTemp("", "anteroom-")
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Cleanup registers f to be called at the end, the last one first.
func (p *Program) Cleanup(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleanups = append(p.cleanups, f)
}

// Fatal records a failure and ends the calling goroutine.
func (p *Program) Fatal(args ...any) {
	p.Errorf("%s", fmt.Sprint(args...))
	runtime.Goexit()
}

// Fatalf is Fatal with a format.
func (p *Program) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	runtime.Goexit()
}

// Skip is Fatal: a skipped run proves nothing.
func (p *Program) Skip(args ...any) { p.Fatal(args...) }

// Errorf records a failure; the caller continues.
func (p *Program) Errorf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = append(p.failed, fmt.Sprintf(format, args...))
}

// Recover records a panic of the calling goroutine; it must be deferred.
func (p *Program) Recover() {
	if cause := recover(); cause != nil {
		stack := make([]byte, 16<<10)
		p.Errorf("panic: %v\n%s", cause, stack[:runtime.Stack(stack, false)])
	}
}

// Failures returns the recorded failures.
func (p *Program) Failures() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.failed)
}

// CleanUp calls the functions given to Cleanup. It is called once, at the end.
func (p *Program) CleanUp() {
	for {
		p.mu.Lock()
		n := len(p.cleanups)
		if n == 0 {
			p.mu.Unlock()
			return
		}
		f := p.cleanups[n-1]
		p.cleanups = p.cleanups[:n-1]
		p.mu.Unlock()
		func() {
			defer p.Recover()
			f()
		}()
	}
}
