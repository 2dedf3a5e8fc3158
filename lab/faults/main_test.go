package faults_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/child"
)

// silent drops what go-redis logs.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	child.Run(map[string]child.Role{workerRole: worker})
	redis.SetLogger(silent{}) // failing dials are what some of the faults are about
	goleak.VerifyTestMain(m)
}
