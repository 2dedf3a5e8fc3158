package partition

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/history"
)

// demotion bounds how long Redis takes to make a master that came back a replica: some ten seconds with Sentinel.
const demotion = 60 * time.Second

// goOn is how long both sides continue when others have the locks.
var goOn = 2 * lease

// isolated cuts the master off together with a client until others have its locks, and heals. oneWay: only what the
// two send is lost.
func isolated(t *testing.T, s *site, off, on testredis.Host, oneWay bool) *outcome {
	t.Helper()
	x := s.trial(t, lease)
	x.clients(off, on)
	old := x.present()
	by := x.holders(old, here)
	one, other := []testredis.Host{off, old.Host()}, append(x.except(old), on)
	x.at = history.Now()
	if oneWay {
		x.lose(one, other)
	} else {
		x.cut(one, other)
	}
	now := x.await(old)
	elected := history.Now()
	x.passed(now, here, by)
	// Both sides continue, for longer than a holder without a master can: nothing else tells when it is enough.
	time.Sleep(goOn)
	healed := history.Now()
	x.heal()
	eventually(x.t, demotion, "the old master is a replica", func() bool { return s.isReplica(old) })
	demoted := history.Now()
	x.ready()
	// Who spoke to the old master is told by an answer of the new one, or at its deadline.
	x.removed(x.at, demoted+int64(lease), "partition")
	o := x.finish(healed, elected)
	o.print(t, fmt.Sprintf("elected %v, healed %v, old master a replica %v after the cut; ", x.since(elected), x.since(healed), x.since(demoted)))
	return o
}

// refused lets the master's packets to its replicas be lost. It knows nothing of that but that they do not confirm, so
// it refuses to write, and nobody replaces it.
func refused(t *testing.T, s *site, off, on testredis.Host) *outcome {
	t.Helper()
	x := s.trial(t, lease)
	x.clients(off, on)
	old := x.present()
	var replicas []testredis.Host
	for _, n := range x.nodes {
		if n != old {
			replicas = append(replicas, n.Host())
		}
	}
	x.at = history.Now()
	x.lose([]testredis.Host{old.Host()}, replicas)
	eventually(x.t, 3*lease+through, "nobody has a lock", func() bool {
		return !slices.ContainsFunc(x.holders(old, here), func(who string) bool { return who != "" })
	})
	if x.master() != old {
		t.Error("the master was replaced")
	}
	x.heal()
	x.held(here)
	o := x.finish(0, 0)
	o.print(t, "")
	return o
}

// unguided lets a client reach the servers and not the Sentinels, for longer than a lease; then the master is cut off
// from everybody.
func unguided(t *testing.T, s *site, off, on testredis.Host) *outcome {
	t.Helper()
	x := s.trial(t, lease)
	x.clients(off, on)
	old := x.present()
	by := x.holders(old, here)
	x.cut([]testredis.Host{off}, x.watch)
	began := history.Now()
	time.Sleep(lease + lease/2) // the fault itself
	if now := x.holders(old, here); !slices.Equal(by, now) {
		t.Errorf("without Sentinels, and without a failover, the locks went from %v to %v", by, now)
	}
	x.at = history.Now()
	x.cut([]testredis.Host{old.Host()}, append(x.except(old), off, on))
	now := x.await(old)
	elected := history.Now()
	x.passed(now, here, by)
	time.Sleep(lease + busy - x.since(history.Now())) // the fault itself: everybody is notified before it ends
	healed := history.Now()
	x.heal()
	// Until then the old master serves a client that has not heard of the new one.
	eventually(x.t, demotion, "the old master is a replica", func() bool { return s.isReplica(old) })
	demoted := history.Now()
	x.ready()
	x.removed(x.at, demoted+int64(lease), "failover")
	o := x.finish(healed, elected)
	mixed := 0
	for _, h := range x.history(nil, true).Holds() {
		if h.Outcome == history.Acquired && began < h.Return && h.Return < x.at {
			mixed++
		}
	}
	if mixed == 0 {
		t.Error("without Sentinels, and without a failover, nothing was acquired")
	}
	o.print(t, fmt.Sprintf("%d acquired without Sentinels before; elected %v, healed %v, old master a replica %v after the cut; ",
		mixed, x.since(elected), x.since(healed), x.since(demoted)))
	return o
}
