package main

import (
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/silence"
)

// asCommand makes this test program behave as the command itself, for tests that need a separate process.
const asCommand = "ANTEROOM_TEST_AS_COMMAND"

// systemLacks makes this test program, as the command, find a system that lacks the abilities of these names.
const systemLacks = "ANTEROOM_TEST_SYSTEM_LACKS"

// answerLimit makes this test program, as the command, wait so long for an answer of Redis: see startCommand.
const answerLimit = "ANTEROOM_TEST_ANSWER_LIMIT"

// lacking returns a system with all abilities but those named.
func lacking(names string) abilities {
	a := abilities{death: !strings.Contains(names, "death"), listing: !strings.Contains(names, "listing")}
	if strings.Contains(names, "supervisor") {
		a.supervisor = errors.New("for a test")
	}
	return a
}

// helpers are the test program's other roles, by its first argument.
var helpers = map[string]func(){signalsCommand: tellSignals}

// undoIgnored restores the default signals for the programs that tests start, if they were ignored when the tests
// were started, as a shell ignores INT and QUIT for background jobs: ignored signals stay so across exec, caught ones
// do not.
func undoIgnored() {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} { // Go catches the others by itself
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
		if lacks := os.Getenv(systemLacks); lacks != "" {
			ownSystem = func() abilities { return lacking(lacks) }
		}
		commandTimeout, _ = time.ParseDuration(os.Getenv(answerLimit))
		main()
	}
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "exec-") {
		// A test has run exec in its own process, which starts itself as the supervisor: this program
		// would run all tests again, and so on without end. startTool is for exec.
		os.Exit(exitUsage)
	}
	undoIgnored()
	silence.Logs()
	goleak.VerifyTestMain(m)
}
