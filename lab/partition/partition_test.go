package partition

import (
	"os"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
)

// longer skips what only ANTEROOM_PARTITIONS=all runs.
func longer(t *testing.T) {
	t.Helper()
	if os.Getenv("ANTEROOM_PARTITIONS") != "all" {
		t.Skip("only with ANTEROOM_PARTITIONS=all")
	}
}

func TestSentinel_MasterIsolated(t *testing.T) {
	t.Parallel()
	s := sentinelSite(t, newNetwork(t))
	off, on := s.host(), s.host()
	t.Run("both ways", func(t *testing.T) {
		if o := isolated(t, s, off, on, false); o.Longest < goOn {
			t.Errorf("the longest overlap is %v: both sides should have gone on", o.Longest)
		}
	})
	t.Run("what it sends", func(t *testing.T) {
		longer(t)
		// The client hears of the new master, and leaves the old one.
		if o := isolated(t, s, off, on, true); o.Overlaps == 0 || !pace.Within(o.Longest, lease+busy) {
			t.Errorf("%d overlaps, the longest %v", o.Overlaps, o.Longest)
		}
	})
}

func TestCluster_MasterIsolated(t *testing.T) {
	t.Parallel()
	s := clusterSite(t, newNetwork(t))
	off, on := s.host(), s.host()
	t.Run("both ways", func(t *testing.T) { refuses(t, isolated(t, s, off, on, false), s.alone) })
	t.Run("what it sends", func(t *testing.T) {
		longer(t)
		refuses(t, isolated(t, s, off, on, true), s.alone+confirmed)
	})
}

// lag is how long a master continues without its replicas: min-replicas-max-lag, 1 s, and two seconds more, because
// Redis counts in whole seconds, and looks once a second.
const lag = 3 * time.Second

// confirmed is how long replicas and other nodes are still heard where only what the master sends is lost: until
// their own systems hold back what follows what was not acknowledged.
const confirmed = time.Second

// refuses: a master that is cut off refuses after that time, so who holds there is told by the deadline of the last
// renewal before. The other side lets nobody in before the lease ends that it knows of, which began at most one
// renewal before the cut.
func refuses(t *testing.T, o *outcome, after time.Duration) {
	t.Helper()
	if len(o.told) != len(here) {
		t.Errorf("%d told, of %d who held there", len(o.told), len(here))
	}
	for _, d := range o.told {
		if !pace.Within(d, after+lease-margin+busy) {
			t.Errorf("told %v after the cut", d)
		}
	}
	if !pace.Within(o.Longest, after+renewal-margin+busy) {
		t.Errorf("two believed for %v", o.Longest)
	}
}

func TestSentinel_MinReplicas(t *testing.T) {
	t.Parallel()
	s := sentinelSite(t, newNetwork(t), "--min-replicas-to-write", "1", "--min-replicas-max-lag", "1")
	off, on := s.host(), s.host()
	t.Run("replicas cut off", func(t *testing.T) {
		o := refused(t, s, off, on)
		refuses(t, o, lag+confirmed)
		if o.Overlaps != 0 {
			t.Errorf("%d overlaps, and nobody replaced the master", o.Overlaps)
		}
	})
	t.Run("both ways", func(t *testing.T) { refuses(t, isolated(t, s, off, on, false), lag) })
	t.Run("what it sends", func(t *testing.T) {
		longer(t)
		refuses(t, isolated(t, s, off, on, true), lag+confirmed)
	})
}

func TestSentinel_ClientWithoutSentinels(t *testing.T) {
	t.Parallel()
	s := sentinelSite(t, newNetwork(t))
	o := unguided(t, s, s.host(), s.host())
	mustBeTold(t, o)
}

func TestSentinel_ClientCutOff(t *testing.T) {
	t.Parallel()
	clientCutOff(t, sentinelSite(t, newNetwork(t)))
}

func TestCluster_ClientCutOff(t *testing.T) {
	t.Parallel()
	clientCutOff(t, clusterSite(t, newNetwork(t)))
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
		alone(t, s, off, on, bothWays, lease/3)
	})
	t.Run("subscription alone", func(t *testing.T) { deaf(t, s, off, on) })
}

// mustBeTold: who was cut off from its master is told by its deadline, and not much earlier.
func mustBeTold(t *testing.T, o *outcome) {
	t.Helper()
	if len(o.told) != len(here) {
		t.Errorf("%d told, of %d who were cut off", len(o.told), len(here))
	}
	for _, d := range o.told {
		// The last renewal before the cut is younger than half of a lease, on a loaded machine less young.
		if !pace.Within(d, lease-margin+busy) || !pace.Within(lease-margin-d, lease/2) {
			t.Errorf("told %v after the cut", d)
		}
	}
}
