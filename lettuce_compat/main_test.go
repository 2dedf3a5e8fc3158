package lettucecompat_test

import (
	"net"
	"testing"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/silence"
)

// TestMain fails the package when any test leaves a goroutine behind.
func TestMain(m *testing.M) {
	// The resolver makes a channel at its first use, which must not be in a bubble of synctest: no test outside could use it.
	_, _ = net.LookupHost("localhost")
	silence.Logs()
	goleak.VerifyTestMain(m)
}
