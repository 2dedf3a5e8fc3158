package conformance_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/silence"
)

// TestMain allows more parallel behaviours than there are processors: they mostly wait.
func TestMain(m *testing.M) {
	silence.Logs()
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if !set {
		if err := flag.Set("test.parallel", "12"); err != nil {
			panic(err)
		}
	}
	if code := m.Run(); code != 0 {
		os.Exit(code)
	}
	goleak.VerifyTestMain(leaks{})
}

// leaks makes goleak check once, after the tests.
type leaks struct{}

func (leaks) Run() int { return 0 }
