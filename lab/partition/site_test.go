package partition

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
)

// tag puts every key into one slot of a Cluster.
const tag = "{p}"

// site is a deployment with a host for each process.
type site struct {
	*network
	addrs   []string // for clients
	name    string   // by which the Sentinels know the master
	nodes   []*testredis.Server
	servers []testredis.Host
	watch   []testredis.Host                                    // of the Sentinels
	master  func() *testredis.Server                            // of the keys, according to the majority
	await   func(old *testredis.Server) (new *testredis.Server) // its successor
	ready   func()                                              // waits until everything is in place
	admin   map[*testredis.Server]*redis.Client                 // past the network
}

func sentinelSite(t *testing.T, args ...string) *site {
	t.Helper()
	n := newNetwork(t)
	s := &site{network: n, name: testredis.MasterName}
	for range 6 {
		s.servers = append(s.servers, n.host())
	}
	s.watch = s.servers[3:]
	d := testredis.StartSentinelOn(t, s.servers, args...)
	s.nodes, s.master, s.await, s.ready = d.Nodes(), d.Master, d.AwaitMaster, d.AwaitReady
	s.addrs = addresses(s.watch)
	return s.asked(t)
}

func clusterSite(t *testing.T) *site {
	t.Helper()
	n := newNetwork(t)
	s := &site{network: n}
	for range 6 {
		s.servers = append(s.servers, n.host())
	}
	d := testredis.StartClusterOn(t, s.servers, 3)
	slot := d.Slot(tag)
	s.nodes, s.master, s.ready = d.Nodes(), func() *testredis.Server { return d.Master(slot) }, d.AwaitReady
	s.await = func(old *testredis.Server) *testredis.Server { return d.AwaitMaster(slot, old) }
	s.addrs = addresses(s.servers)
	return s.asked(t)
}

func (s *site) asked(t *testing.T) *site {
	s.admin = map[*testredis.Server]*redis.Client{}
	for _, n := range s.nodes {
		s.admin[n] = n.Client(t)
	}
	return s
}

func addresses(hosts []testredis.Host) (list []string) {
	for _, h := range hosts {
		list = append(list, address(h))
	}
	return list
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
	if err != nil || len(fields) == 0 {
		return ""
	}
	return fields[0]
}

// eventually waits until f is true.
func eventually(t *testing.T, within time.Duration, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); !f(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}
