package partition

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/history"
)

// local is this host: failovers and moves need no network of their own.
var local testredis.Host

// long is a lease that outlasts an election and a busy machine's pauses.
const long = 20 * time.Second

// strike is how a master ends.
type strike string

const (
	killed   strike = "killed"   // SIGKILL; its replicas have followed it to its end
	cutOff   strike = "cut off"  // SIGKILL, after its replicas were cut off: the last writes are certainly lost
	hung     strike = "hung"     // SIGSTOP; it continues once it has a successor
	switched strike = "switched" // healthy, and replaced by an operator's command without its consent
)

// The master is replaced while processes work: what was replicated is kept, what was not is reported to its holder in
// time, tokens keep the register right, nothing hangs, nothing remains, and everything works again soon.
func TestSentinel_Failover(t *testing.T) { t.Parallel(); failovers(t, sentinelSite(t, nil)) }

// The same for the master of one shard. The other two also refuse until it has a successor
// (cluster-require-full-coverage, Redis' default).
func TestCluster_Failover(t *testing.T) { t.Parallel(); failovers(t, clusterSite(t, nil)) }

func failovers(t *testing.T, s *site) {
	for _, how := range []strike{killed, cutOff, hung, switched} {
		t.Run(string(how), func(t *testing.T) { failover(t, s, how) })
	}
}

func failover(t *testing.T, s *site, how strike) {
	t.Helper()
	x := s.trial(t, long)
	old := x.present()
	replicas := s.replicas(old)
	if how == cutOff {
		old.CutReplicas(t, replicas...) // what is granted from here on is lost
		t.Cleanup(func() {              // if the test ends before they continue
			for _, r := range replicas {
				if r.Pid() != 0 {
					r.Resume()
				}
			}
		})
	}
	x.clients(local, local)
	kept := slices.Concat(here, there)
	by := x.holders(old, kept)
	x.at = history.Now()
	switch how {
	case killed, cutOff:
		old.Kill()
	case hung:
		old.Pause()
	case switched:
		s.replace(old)
	}
	if how == cutOff {
		for _, r := range replicas {
			r.Resume()
		}
	}
	now := x.await(old)
	elected := history.Now()
	after := x.held(kept)
	switch took := x.since(elected); {
	case how != killed:
	case took > long/2: // leases have ended meanwhile
		t.Logf("the election took %v, so nothing says what every replica has kept", took)
	case !slices.Equal(by, after):
		t.Errorf("what every replica had went from %v to %v", by, after)
	}
	if how == hung {
		old.Resume()
	}
	s.rejoin(old)
	x.ready()
	if x.present() != now {
		t.Logf("there was another failover")
	}
	x.removed(x.at, history.Now()+int64(command), "failover")
	o := x.finish(0, elected)
	o.print(t, fmt.Sprintf("elected %v after; ", x.since(elected)))
	if how == cutOff {
		// A holder asks once in W, and a question may be open for C, a second here, when the next is asked; the new
		// master is the first that can answer.
		for _, d := range o.told {
			if !pace.Within(d, x.since(elected)+look+2*time.Second+busy) {
				t.Errorf("told %v after the master's end, and its successor came after %v", d, x.since(elected))
			}
		}
		if len(o.told) == 0 {
			t.Error("every grant was lost, and nobody was told")
		}
	}
}

// A slot moves to another master and back while processes work on its keys and hold some of them all the time. A slot
// moves with its keys and their times to live, and a node without a key says so without executing anything. So no lock
// is lost and no two are inside at once, with fencing or without. While the slot is on both nodes Redis refuses scripts
// with two keys of which only one is there (TRYAGAIN): what is held is renewed and released, and a lock, which needs
// its line, is acquired after the move.
func TestCluster_ASlotMovesUnderLoad(t *testing.T) {
	t.Parallel()
	s := clusterSite(t, nil)
	unharmed(t, s, func() {
		for _, to := range s.cluster.Masters() {
			if to == s.master() {
				continue
			}
			m := s.cluster.BeginMove(s.slot, to)
			time.Sleep(look) // renewals meet a slot on two nodes
			if moved := m.MoveKeys(); moved < len(here)+len(there) {
				t.Errorf("%d keys moved, and %d were held", moved, len(here)+len(there))
			}
			m.End()
			time.Sleep(2 * look)
		}
	})
}

// A replica takes its master's place by agreement, and gives it back. The master serves nobody during the handover,
// and then redirects everybody: no lock is lost.
func TestCluster_APlannedFailoverLosesNothing(t *testing.T) {
	t.Parallel()
	s := clusterSite(t, nil)
	unharmed(t, s, func() {
		for range 2 {
			s.cluster.Failover(s.slot, s.replicas(s.master())[0])
			time.Sleep(2 * look)
			s.ready()
		}
	})
}

// unharmed judges a change of the deployment that must cost no lock.
func unharmed(t *testing.T, s *site, change func()) {
	t.Helper()
	x := s.trial(t, long)
	x.clients(local, local)
	kept := slices.Concat(here, there)
	by := x.held(kept)
	x.at = history.Now()
	change()
	if after := x.held(kept); !slices.Equal(by, after) {
		t.Errorf("what was held went from %v to %v", by, after)
	}
	o := x.finish(0, 0)
	o.print(t, "")
	if o.Overlaps != 0 || len(o.lost) != 0 {
		t.Errorf("%d overlaps, where no lock can be lost: %s", o.Overlaps, o.lost)
	}
}
