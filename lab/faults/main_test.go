package faults_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/silence"
)

func TestMain(m *testing.M) {
	silence.Logs()
	child.Run(map[string]child.Role{workerRole: worker})
	goleak.VerifyTestMain(m)
}
