package conformance

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"
)

// Backend is a kind of deployment that the suite runs on.
type Backend struct {
	Name string
	// Virtual runs each behaviour in a bubble of virtual time, with a deployment of its own.
	Virtual bool
	// Open returns the deployment. For a Virtual one it is called for each behaviour, inside the bubble, otherwise
	// once, and all behaviours share it.
	Open func(t *testing.T) Deployment
	// Lacks says, by name, why a behaviour cannot be shown here.
	Lacks map[string]string
}

// Deployment is a running backend. Its functions are safe for concurrent use.
type Deployment struct {
	// Client creates a client whose connections have the given name. The caller closes it.
	Client func(name string) redis.UniversalClient
	// Masters returns a client for each present master; the deployment closes them.
	Masters func() []*redis.Client
	// Copies returns a client for each replica of the master that owns key; nil if there is none.
	Copies func(key string) []*redis.Client
	// Replicas is the number of replicas of each master.
	Replicas int
	// Connections counts the open connections of the clients with that name.
	Connections func(name string) int
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
	{name: "ExclusionBetweenManagers", run: exclusionBetweenManagers},
	{name: "ExclusionBetweenGoroutines", run: exclusionBetweenGoroutines},
	{name: "TriesAreRefusedWhileHeld", run: triesAreRefusedWhileHeld},
	{name: "Reentrancy", run: reentrancy},
	{name: "FairOrder", run: fairOrder},
	{name: "HandOffWithoutRedis", run: handOffWithoutRedis},
	{name: "WokenByTheRelease", run: wokenByTheRelease},
	{name: "ADeadHoldersLeaseEnds", run: aDeadHoldersLeaseEnds},
	{name: "RenewedOverSeveralLeases", run: renewedOverSeveralLeases},
	{name: "AFixedLeaseEnds", run: aFixedLeaseEnds},
	{name: "Extend", run: extend},
	{name: "MinHold", run: minHold},
	{name: "DeletionIsTold", run: deletionIsTold},
	{name: "FlushIsTold", run: flushIsTold, alone: true},
	{name: "ForcedReleaseIsToldAtOnce", run: forcedReleaseIsToldAtOnce},
	{name: "DoSaysThatTheLockWasLost", run: doSaysThatTheLockWasLost},
	{name: "CloseWithHolds", run: closeWithHolds},
	{name: "Inspect", run: inspect},
	{name: "TokensGrow", run: tokensGrow},
	{name: "ReplicasConfirm", run: replicasConfirm},
	{name: "TooFewReplicas", run: tooFewReplicas},
	{name: "OddKeys", run: oddKeys},
	{name: "AHundredKeysOverAllSlots", run: aHundredKeysOverAllSlots},
}

// stages numbers the stages of this process, for unique names.
var stages atomic.Int64

// Run runs every behaviour on b, as sub-tests that run in parallel if they can.
func Run(t *testing.T, b Backend) {
	known := map[string]bool{}
	for _, x := range behaviours {
		known[x.name] = true
	}
	for name, why := range b.Lacks {
		if !known[name] || why == "" {
			t.Errorf("%s lacks %q because of %q: no such behaviour, or no reason", b.Name, name, why)
		}
	}
	var shared Deployment
	if !b.Virtual {
		shared = b.Open(t)
	}
	one := func(x behaviour) func(t *testing.T) {
		return func(t *testing.T) {
			if why := b.Lacks[x.name]; why != "" {
				t.Skip(why)
			}
			if !x.alone {
				t.Parallel()
			}
			if b.Virtual {
				synctest.Test(t, func(t *testing.T) { perform(t, x, b, b.Open(t)) })
			} else {
				perform(t, x, b, shared)
			}
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
func perform(t *testing.T, x behaviour, b Backend, d Deployment) {
	s := &stage{
		T: t, d: d, virtual: b.Virtual, owned: map[string]bool{},
		name: fmt.Sprintf("%s-%d", strings.ToLower(x.name), stages.Add(1)),
	}
	defer s.close() // even if the behaviour failed
	x.run(s)
	s.nothingLeft()
}
