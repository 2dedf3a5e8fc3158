package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// asCommand makes this test program behave as the demonstration itself, for the tests that
// need a process of its own.
const asCommand = "ANTEROOM_TEST_AS_DEMO"

func TestMain(m *testing.M) {
	// A run with --redis starts its own program again: here that is the test program.
	if os.Getenv(asCommand) != "" || len(os.Args) > 1 && os.Args[1] == workerCommand {
		main()
	}
	goleak.VerifyTestMain(m)
}
