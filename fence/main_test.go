package fence_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/silence"
)

func TestMain(m *testing.M) {
	silence.Logs()
	goleak.VerifyTestMain(m)
}
