package lettucecompat_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/silence"
)

// TestMain fails the package when any test leaves a goroutine behind.
func TestMain(m *testing.M) {
	silence.Logs()
	goleak.VerifyTestMain(m)
}
