package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// signalsCommand makes this test program a command that reports the signals it gets.
const signalsCommand = "test-signals"

// tellSignals writes the number of every signal that arrives, until standard input ends.
func tellSignals() {
	got := make(chan os.Signal, 64)
	signal.Notify(got)
	closed := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(closed)
	}()
	fmt.Println("ready")
	for {
		select {
		case s := <-got:
			// The runtime wakes its threads with this signal.
			if s != syscall.Signal(23) {
				fmt.Println(int(s.(syscall.Signal)))
			}
		case <-closed:
			return
		}
	}
}

// environWithout returns our environment without the variables set by other tests or the user.
func environWithout(more ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "ANTEROOM_") || strings.HasPrefix(v, "GORACE=")
	})
	return append(env, more...)
}
