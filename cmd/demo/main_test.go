package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/silence"
)

// asCommand makes this test program behave as the demonstration itself, for tests that need a separate process.
const asCommand = "ANTEROOM_TEST_AS_DEMO"

func TestMain(m *testing.M) {
	// A run with --redis starts its own program again: here that is the test program.
	silence.Logs()
	child.Run(roles)
	if os.Getenv(asCommand) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}
