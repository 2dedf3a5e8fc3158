package history

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	RunWorker()
	goleak.VerifyTestMain(m)
}
