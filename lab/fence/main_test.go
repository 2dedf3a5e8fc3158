package fence_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/silence"
)

// TestMain runs the databases side by side, however few processors there are: the rounds mostly wait for leases.
func TestMain(m *testing.M) {
	silence.Logs()
	child.Run(map[string]child.Role{holderRole: holder})
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
