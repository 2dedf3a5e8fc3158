package faults_test

import (
	"context"
	"flag"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/child"
)

// update writes the table in docs/generated/fault-matrix.md instead of comparing it.
var update = flag.Bool("update", os.Getenv("ANTEROOM_UPDATE") == "1", "write what was observed into docs/generated/fault-matrix.md")

// silent drops what go-redis logs.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	child.Run(map[string]child.Role{workerRole: worker})
	redis.SetLogger(silent{}) // failing dials are what some of the faults are about
	goleak.VerifyTestMain(m)
}
