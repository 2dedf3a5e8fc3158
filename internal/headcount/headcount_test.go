package headcount_test

import (
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/headcount"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Goroutines outside the bubble, and in another one, do not count.
func TestBubble(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	for range 10 {
		go func() { <-end }()
	}
	if n := headcount.Bubble(); n != 0 {
		t.Errorf("%d outside a bubble, want 0", n)
	}
	synctest.Test(t, func(t *testing.T) {
		alone := headcount.Bubble()
		stop := make(chan struct{})
		for range 300 { // more than the first buffer takes
			go func() { <-stop }()
		}
		synctest.Wait()
		if more := headcount.Bubble() - alone; more != 300 {
			t.Errorf("%d more, want 300", more)
		}
		close(stop)
		synctest.Wait()
		if n := headcount.Bubble(); n != alone || n == 0 {
			t.Errorf("%d at the end, %d at the beginning", n, alone)
		}
	})
}
