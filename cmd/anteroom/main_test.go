package main

import (
	"os"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// asCommand makes this test program behave as the command itself, for the tests that
// need a process of its own.
const asCommand = "ANTEROOM_TEST_AS_COMMAND"

// helpers are what this test program can be besides, by its first argument.
var helpers = map[string]func(){signalsCommand: tellSignals}

// undoIgnored lets the programs that tests start have the signals by default that whoever
// started the tests ignores, as a shell does with INT and QUIT for what it runs in the
// background: what is ignored stays so across exec, and what is caught does not.
func undoIgnored() {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} { // the others Go catches by itself
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && helpers[os.Args[1]] != nil {
		helpers[os.Args[1]]()
		os.Exit(0)
	}
	if os.Getenv(asCommand) != "" {
		main()
	}
	undoIgnored()
	goleak.VerifyTestMain(m)
}
