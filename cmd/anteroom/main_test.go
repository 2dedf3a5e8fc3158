package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// asCommand makes this test program behave as the command itself, for the tests that
// need a process of its own.
const asCommand = "ANTEROOM_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == signalsCommand {
		tellSignals()
		os.Exit(0)
	}
	// A run with --redis starts its own program again: here that is the test program.
	if os.Getenv(asCommand) != "" || len(os.Args) > 1 && os.Args[1] == workerCommand {
		main()
	}
	goleak.VerifyTestMain(m)
}
