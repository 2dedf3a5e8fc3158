package faults_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/lab/history"
)

func TestMain(m *testing.M) {
	child.Run(map[string]child.Role{workerRole: worker})
	history.Quiet() // failing dials are what some of the faults are about
	goleak.VerifyTestMain(m)
}
