package locktest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"
)

// recording is a testing.TB that keeps its log, and records Fatalf instead of failing the test.
type recording struct {
	testing.TB

	mu     sync.Mutex
	out    bytes.Buffer
	errors []string
	fatal  string
}

func (r *recording) Output() io.Writer { return r }

func (r *recording) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(p)
}

func (r *recording) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.String()
}

func (r *recording) Logf(format string, args ...any) { _, _ = fmt.Fprintf(r, format+"\n", args...) }

func (r *recording) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// Fatalf ends the calling goroutine, as in a test.
func (r *recording) Fatalf(format string, args ...any) {
	r.mu.Lock()
	r.fatal = fmt.Sprintf(format, args...)
	r.mu.Unlock()
	runtime.Goexit()
}

// fatal runs f as a test and returns the message of its Fatalf, or fails.
func fatal(t *testing.T, f func(r *recording)) string {
	t.Helper()
	r := &recording{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	if r.fatal == "" {
		t.Fatal("the test was not ended")
	}
	return r.fatal
}

// expired returns a context that has ended.
func expired(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
