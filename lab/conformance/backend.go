package conformance

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Deployment is a kind of deployment that runs, for all behaviours. Its functions are safe for concurrent use.
type Deployment struct {
	// Client creates a client whose connections have the given name. The caller closes it.
	Client func(name string) redis.UniversalClient
	// Masters returns a client for each present master; the deployment closes them.
	Masters func() []*redis.Client
	// Copies returns a client for each replica of the master that owns key; nil if there is none.
	Copies func(key string) []*redis.Client
	// Replicas is the number of replicas of each master.
	Replicas int
	// Nodes are clients for all servers: one of a Cluster that is demoted, or that a client took while it knew no better, keeps
	// its subscribers.
	Nodes []*redis.Client
}

// behaviour is one row of the suite.
type behaviour struct {
	name string
	run  func(s *stage)
	// alone: it changes what other behaviours rely on, so nothing runs at the same time.
	alone bool
}

// behaviours are the suite, in the order of its files.
var behaviours = []behaviour{
	{name: "WokenByTheRelease", run: wokenByTheRelease},
	{name: "ADeadHoldersLeaseEnds", run: aDeadHoldersLeaseEnds},
	{name: "RenewedOverSeveralLeases", run: renewedOverSeveralLeases},
	{name: "AFixedLeaseEnds", run: aFixedLeaseEnds},
	{name: "DeletionIsTold", run: deletionIsTold},
	{name: "FlushIsTold", run: flushIsTold, alone: true},
	{name: "ForcedReleaseIsToldAtOnce", run: forcedReleaseIsToldAtOnce},
	{name: "TokensGrow", run: tokensGrow},
	{name: "ReplicasConfirm", run: replicasConfirm},
	{name: "OddKeys", run: oddKeys},
	{name: "AHundredKeysOverAllSlots", run: aHundredKeysOverAllSlots},
	{name: "AThousandReaders", run: aThousandReaders},
	{name: "ADeadReader", run: aDeadReader},
}

// stages numbers the stages of this process, for unique names.
var stages atomic.Int64

// Run runs every behaviour on d, as sub-tests that run in parallel if they can.
func Run(t *testing.T, d Deployment) {
	one := func(x behaviour) func(t *testing.T) {
		return func(t *testing.T) {
			if !x.alone {
				t.Parallel()
			}
			perform(t, x, d)
		}
	}
	// The group ends when all parallel behaviours have ended; those that run alone follow.
	t.Run("together", func(t *testing.T) {
		for _, x := range behaviours {
			if !x.alone {
				t.Run(x.name, one(x))
			}
		}
	})
	for _, x := range behaviours {
		if x.alone {
			t.Run(x.name, one(x))
		}
	}
}

// perform runs one behaviour on a stage of its own and checks that nothing remains.
func perform(t *testing.T, x behaviour, d Deployment) {
	s := &stage{
		T: t, d: d, owned: map[string]bool{},
		name: fmt.Sprintf("%s-%d", strings.ToLower(x.name), stages.Add(1)),
	}
	defer s.close() // even if the behaviour failed
	x.run(s)
	s.nothingLeft()
}
