package partition

import (
	"os"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
)

// margin is M for lease.
const margin = lease / 20

// longer skips what only ANTEROOM_PARTITIONS=all runs.
func longer(t *testing.T) {
	t.Helper()
	if os.Getenv("ANTEROOM_PARTITIONS") != "all" {
		t.Skip("only with ANTEROOM_PARTITIONS=all")
	}
}

func TestSentinel_MasterIsolated(t *testing.T) {
	t.Parallel()
	s := sentinelSite(t)
	off, on := s.host(), s.host()
	masterIsolated(t, s, off, on, func(t *testing.T, o *outcome) {
		if o.Longest < lease/2 {
			t.Errorf("the longest overlap is %v: both sides should have gone on", o.Longest)
		}
	})
}

func TestCluster_MasterIsolated(t *testing.T) {
	t.Parallel()
	s := clusterSite(t)
	off, on := s.host(), s.host()
	masterIsolated(t, s, off, on, func(t *testing.T, o *outcome) {
		// cluster-node-timeout is 1.5 s in testredis. A node asks another anew when half of that has passed.
		refuses(t, o, 1500*time.Millisecond*3/2)
	})
}

func masterIsolated(t *testing.T, s *site, off, on testredis.Host, check func(*testing.T, *outcome)) {
	t.Run("both ways", func(t *testing.T) { check(t, isolated(t, s, off, on, false)) })
	t.Run("what it sends", func(t *testing.T) {
		longer(t)
		check(t, isolated(t, s, off, on, true))
	})
}

// lag is how long a master goes on without its replicas: min-replicas-max-lag, 1 s, and two seconds more, because Redis
// counts in whole seconds, and looks once a second.
const lag = 3 * time.Second

// refuses: a master that is cut off refuses after that time, so who holds there is told by the deadline of the last
// renewal before. The other side lets nobody in before the lease ends that it knows of, which began at most one
// renewal before the cut.
func refuses(t *testing.T, o *outcome, after time.Duration) {
	t.Helper()
	if len(o.told) != len(here) {
		t.Errorf("%d told, of %d who held there", len(o.told), len(here))
	}
	for _, d := range o.told {
		if d > after+lease-margin+settled {
			t.Errorf("told %v after the cut", d)
		}
	}
	if o.Longest > after+lease/3-margin+settled {
		t.Errorf("two believed for %v", o.Longest)
	}
}

func TestSentinel_MinReplicas(t *testing.T) {
	t.Parallel()
	s := sentinelSite(t, "--min-replicas-to-write", "1", "--min-replicas-max-lag", "1")
	off, on := s.host(), s.host()
	t.Run("replicas cut off", func(t *testing.T) {
		o := refused(t, s, off, on)
		if o.Overlaps != 0 || len(o.told) != len(here) {
			t.Errorf("%d overlaps, %d told", o.Overlaps, len(o.told))
		}
	})
	t.Run("both ways", func(t *testing.T) { refuses(t, isolated(t, s, off, on, false), lag) })
	t.Run("what it sends", func(t *testing.T) {
		longer(t)
		// What the replicas have sent already confirms for a while.
		refuses(t, isolated(t, s, off, on, true), lag+time.Second)
	})
}

func TestSentinel_ClientWithoutSentinels(t *testing.T) {
	t.Parallel()
	s := sentinelSite(t)
	o := unguided(t, s, s.host(), s.host())
	mustBeTold(t, o)
}

func TestSentinel_ClientCutOff(t *testing.T) {
	t.Parallel()
	clientCutOff(t, sentinelSite(t))
}

func TestCluster_ClientCutOff(t *testing.T) {
	t.Parallel()
	clientCutOff(t, clusterSite(t))
}

func clientCutOff(t *testing.T, s *site) {
	off, on := s.host(), s.host()
	for _, lost := range []direction{bothWays, requests, replies} {
		t.Run(string(lost)+", for longer than a lease", func(t *testing.T) {
			if lost == requests {
				longer(t)
			}
			mustBeTold(t, alone(t, s, off, on, lost, 0))
		})
	}
	t.Run("for less than a lease", func(t *testing.T) {
		if o := alone(t, s, off, on, bothWays, lease/3); len(o.told) != 0 {
			t.Errorf("%d told", len(o.told))
		}
	})
	t.Run("subscription alone", func(t *testing.T) { deaf(t, s, off, on) })
}

// mustBeTold: who was cut off from its master is told by its deadline, and not before half of the lease.
func mustBeTold(t *testing.T, o *outcome) {
	t.Helper()
	if len(o.told) != len(here) {
		t.Errorf("%d told, of %d who were cut off", len(o.told), len(here))
	}
	for _, d := range o.told {
		if d > lease-margin+settled || d < lease/2 {
			t.Errorf("told %v after the cut", d)
		}
	}
}
