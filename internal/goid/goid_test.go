package goid

import (
	"sync"
	"testing"

	"github.com/petermattis/goid"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fast way that is wrong, for all goroutines or for some, is not used.
func TestReader_ComparesWithTheStackTrace(t *testing.T) {
	var mu sync.Mutex
	calls := 0
	for name, lies := range map[string]func() int64{
		"always zero": func() int64 { return 0 },
		"always one":  func() int64 { return 1 },
		"once wrong": func() int64 {
			mu.Lock()
			defer mu.Unlock()
			if calls++; calls == 2 {
				return goid.Get() + 1
			}
			return goid.Get()
		},
	} {
		if got := reader(lies)(); got != slow() {
			t.Errorf("%s: goroutine %d is taken for %d", name, slow(), got)
		}
	}
	if got := Reader()(); got != slow() {
		t.Errorf("goroutine %d is taken for %d", slow(), got)
	}
}
