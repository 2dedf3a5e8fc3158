package partition

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
)

// tag puts every key into one slot of a Cluster.
const tag = "{p}"

// site is a deployment, with a host for each process if there is a network.
type site struct {
	*network          // nil: everything is on this host
	addrs    []string // for clients
	name     string   // by which the Sentinels know the master
	nodes    []*testredis.Server
	servers  []testredis.Host
	watch    []testredis.Host                                    // of the Sentinels
	master   func() *testredis.Server                            // of the keys, according to the majority
	await    func(old *testredis.Server) (new *testredis.Server) // its successor
	ready    func()                                              // waits until everything is in place
	replace  func(old *testredis.Server)                         // gives a healthy master a successor
	rejoin   func(old *testredis.Server)                         // makes a former master a replica
	cluster  *testredis.Cluster                                  // nil: Sentinel
	alone    time.Duration                                       // of a Cluster: how long a node that is cut off goes on. It asks another anew when half of the limit has passed
	slot     int                                                 // of the keys, in a Cluster
	admin    map[*testredis.Server]*redis.Client                 // past the network
}

func sentinelSite(t *testing.T, n *network, args ...string) *site {
	t.Helper()
	s := newSite(n)
	s.name, s.watch = testredis.MasterName, s.servers[3:]
	d := testredis.StartSentinelOn(t, s.servers, args...)
	s.nodes, s.master, s.await, s.ready = d.Nodes(), d.Master, d.AwaitMaster, d.AwaitReady
	s.replace = func(*testredis.Server) { d.Failover() }
	s.rejoin = func(old *testredis.Server) {
		if !old.Running() {
			d.Rejoin(old)
		}
		eventually(t, demotion, "the old master is a replica", func() bool { return s.isReplica(old) })
	}
	return s.asked(t, d.URL())
}

func clusterSite(t *testing.T, n *network) *site {
	t.Helper()
	s := newSite(n)
	d := testredis.StartClusterOn(t, s.servers, 3)
	s.alone = d.FailOver() * 3 / 2
	s.cluster, s.slot = d, d.Slot(tag)
	s.nodes, s.master, s.ready = d.Nodes(), func() *testredis.Server { return d.Master(s.slot) }, d.AwaitReady
	s.await = func(old *testredis.Server) *testredis.Server { return d.AwaitMaster(s.slot, old) }
	s.replace = func(old *testredis.Server) { d.Takeover(s.slot, d.Replicas(old)[0]) }
	s.rejoin = func(old *testredis.Server) {
		if !old.Running() {
			old.Restart()
		}
	}
	return s.asked(t, d.URL())
}

func newSite(n *network) *site {
	s := &site{network: n, servers: make([]testredis.Host, 6)}
	for i := range s.servers {
		if n != nil {
			s.servers[i] = n.host()
		}
	}
	return s
}

// asked completes a site whose clients find it by that URL.
func (s *site) asked(t *testing.T, url string) *site {
	_, list, _ := strings.Cut(url, "://")
	list, _, _ = strings.Cut(list, "/")
	s.addrs = strings.Split(list, ",")
	s.admin = map[*testredis.Server]*redis.Client{}
	for _, n := range s.nodes {
		s.admin[n] = n.Client(t)
	}
	return s
}

// replicas returns those of a master of the keys.
func (s *site) replicas(master *testredis.Server) []*testredis.Server {
	if s.cluster != nil {
		return s.cluster.Replicas(master)
	}
	return slices.DeleteFunc(slices.Clone(s.nodes), func(n *testredis.Server) bool { return n == master })
}

// except returns the hosts of all servers but that one.
func (s *site) except(server *testredis.Server) (list []testredis.Host) {
	for _, h := range s.servers {
		if h != server.Host() {
			list = append(list, h)
		}
	}
	return list
}

// isReplica reports whether a server has been made a replica.
func (s *site) isReplica(n *testredis.Server) bool {
	role, err := s.admin[n].Do(context.Background(), "role").Slice()
	return err == nil && len(role) > 0 && role[0] == "slave"
}

// holder returns who has a key, as that server has it; "" if nobody does.
func (s *site) holder(n *testredis.Server, key string) string {
	fields, err := s.admin[n].HKeys(context.Background(), key).Result()
	fields = slices.DeleteFunc(fields, func(f string) bool { return f == ":" }) // of units, not a client
	if err != nil || len(fields) == 0 {
		return ""
	}
	return fields[0]
}

// eventually waits until f is true, at most that long, which a busy machine stretches.
func eventually(t *testing.T, within time.Duration, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); !f(); <-tick.C {
		if !pace.Within(time.Since(begin), within) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}
