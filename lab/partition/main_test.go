package partition

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/silence"
	"github.com/anteroom/anteroom/lab/history"
)

// TestMain runs the deployments side by side, however few processors there are: they mostly wait.
func TestMain(m *testing.M) {
	silence.Logs()
	history.RunWorker()
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	removeStale()
	code := m.Run()
	removeStale()
	if code != 0 {
		os.Exit(code)
	}
	goleak.VerifyTestMain(done{})
}

// done makes goleak check once, after the tests.
type done struct{}

func (done) Run() int { return 0 }
