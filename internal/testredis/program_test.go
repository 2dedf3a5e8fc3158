package testredis_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/anteroom/anteroom/internal/testredis"
)

// A program without a test cleans up as a test does, even after a fatal failure.
func TestWithoutTest(t *testing.T) {
	var steps []string
	err := testredis.WithoutTest("program", func(p *testredis.Program) error {
		dir := p.TempDir()
		p.Cleanup(func() {
			_, err := os.Stat(dir)
			steps = append(steps, fmt.Sprintf("%s: the directory is there: %v", p.Name(), err == nil))
		})
		p.Cleanup(func() { steps = append(steps, "first") })
		p.Skip("no ", "server")
		return nil
	})
	if err == nil || err.Error() != "no server" || !slices.Equal(steps, []string{"first", "program: the directory is there: true"}) {
		t.Fatalf("%v, %q", err, steps)
	}
}
