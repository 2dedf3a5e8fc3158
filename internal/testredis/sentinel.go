package testredis

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

const (
	// MasterName is the name by which the Sentinels know the master.
	MasterName = "anteroom"
	// replicas, sentinels and quorum are those of the smallest deployment that survives the loss of any one process.
	replicas, sentinels, quorum = 2, 3, 2
	// downAfter and failoverTimeoutMs are much shorter than in production (30 s and 180 s by default), so that tests
	// do not wait long for Sentinel.
	downAfter, failoverTimeoutMs = 1000, 3000
)

// Sentinel is one master with two replicas, watched by three Sentinels.
//
// Its methods are for one test goroutine, except Nodes.
type Sentinel struct {
	tb        TB
	args      []string  // of every node
	nodes     []*Server // master and replicas, as they were started
	sentinels []*Server
}

// sentinelKind is a Sentinel. Its state is in a file of its own, which it rewrites.
var sentinelKind = kind{port: nodePort, ready: "+monitor master", args: func(s *Server) []string {
	return append([]string{filepath.Join(s.dir, "sentinel.conf"), "--sentinel"}, s.hostArgs()...)
}}

// nodeKind is a master or a replica of a deployment.
var nodeKind = kind{port: nodePort, ready: plain.ready, args: func(s *Server) []string {
	return append(plain.args(s), "--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1")
}}

// StartSentinel starts the processes, with args for master and replicas, and returns when the replicas have the
// master's data and each Sentinel knows all others. All of them are stopped when the test ends. Without a
// redis-server the test is skipped, as by Start.
func StartSentinel(tb TB, args ...string) *Sentinel {
	tb.Helper()
	return StartSentinelOn(tb, make([]Host, 1+replicas+sentinels), args...)
}

// StartSentinelOn is StartSentinel with a host for each process: of the master, the two replicas, the three Sentinels.
func StartSentinelOn(tb TB, hosts []Host, args ...string) *Sentinel {
	tb.Helper()
	s := &Sentinel{tb: tb, args: args}
	master := start(tb, nodeKind.on(hosts[0]), args)
	s.nodes = append(s.nodes, master)
	for _, h := range hosts[1 : 1+replicas] {
		s.nodes = append(s.nodes, start(tb, nodeKind.on(h), s.replicaOf(master)))
	}
	for _, h := range hosts[1+replicas:] {
		s.sentinels = append(s.sentinels, startSentinelProcess(tb, master, h))
	}
	s.AwaitReady()
	return s
}

// replicaOf is the command line of a replica of master.
func (s *Sentinel) replicaOf(master *Server) []string {
	return append([]string{"--replicaof", master.ip(), strconv.Itoa(master.port)}, s.args...)
}

func startSentinelProcess(tb TB, master *Server, h Host) *Server {
	tb.Helper()
	k := sentinelKind.on(h)
	k.args = func(s *Server) []string {
		args := sentinelKind.args(s)
		if _, err := os.Stat(args[0]); err == nil {
			return args // a restart: the Sentinel's own file is newer
		}
		conf := fmt.Sprintf("dir %s\nsentinel monitor %s %s %d %d\n"+
			"sentinel down-after-milliseconds %s %d\nsentinel failover-timeout %s %d\nsentinel parallel-syncs %s 2\n",
			s.dir, MasterName, master.ip(), master.port, quorum, MasterName, paced(downAfter), MasterName, paced(failoverTimeoutMs), MasterName)
		if err := os.WriteFile(args[0], []byte(conf), 0o600); err != nil {
			tb.Fatal(err)
		}
		return args
	}
	return start(tb, k, nil)
}

// Client returns a failover client, closed when tb ends. opts may change the options
// before the client is made.
func (s *Sentinel) Client(tb TB, opts ...func(*redis.FailoverOptions)) *redis.Client {
	tb.Helper()
	o := &redis.FailoverOptions{MasterName: MasterName, DisableIdentity: true}
	for _, p := range s.sentinels {
		o.SentinelAddrs = append(o.SentinelAddrs, p.Addr())
	}
	for _, f := range opts {
		f(o)
	}
	c := redis.NewFailoverClient(o)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Nodes returns the three data servers, the first master first.
func (s *Sentinel) Nodes() []*Server { return s.nodes }

// Master returns the node that a majority of the Sentinels names and that itself claims to be the master; nil if
// there is none at present.
func (s *Sentinel) Master() *Server {
	votes := map[string]int{}
	for _, p := range s.sentinels {
		if addr := p.asked(MasterName); addr != "" {
			votes[addr]++
		}
	}
	for _, n := range s.nodes {
		if votes[n.Addr()] > len(s.sentinels)/2 && n.role() == "master" {
			return n
		}
	}
	return nil
}

// Replicas returns all nodes but the master.
func (s *Sentinel) Replicas() []*Server {
	master := s.Master()
	var list []*Server
	for _, n := range s.nodes {
		if n != master {
			list = append(list, n)
		}
	}
	return list
}

// Failover asks the Sentinels to replace a healthy master, as an operator does. The old one becomes a replica some
// ten seconds later: until then it serves clients that have not noticed.
func (s *Sentinel) Failover() {
	s.tb.Helper()
	s.sentinels[0].direct(func(c *redis.Client) {
		if err := c.Do(context.Background(), "sentinel", "failover", MasterName).Err(); err != nil {
			s.tb.Fatal(err)
		}
	})
}

// AwaitMaster waits for a failover from old to another master, and returns the new master.
func (s *Sentinel) AwaitMaster(old *Server) (master *Server) {
	s.tb.Helper()
	wait(s.tb, failoverTimeout, "a new master", func() string {
		if master = s.Master(); master == nil || master == old {
			return "none yet"
		}
		return ""
	})
	return master
}

// Rejoin restarts a killed node as a replica of the present master. (Started as the master that it was, it would also
// be made a replica by the Sentinels, but only some ten seconds later.)
func (s *Sentinel) Rejoin(n *Server) {
	s.tb.Helper()
	master := s.Master()
	if master == nil || master == n {
		s.tb.Fatal("no other master to join")
	}
	n.args = s.replicaOf(master)
	n.Restart()
	s.AwaitReady()
}

// AwaitReady waits until one node is the master, all others have copied it and are linked to it, and every Sentinel
// sees them and the other Sentinels: the next failover can then be survived.
func (s *Sentinel) AwaitReady() {
	s.tb.Helper()
	wait(s.tb, formTimeout, "Sentinels and replicas are in place", s.missing)
}

func (s *Sentinel) missing() string {
	master := s.Master()
	if master == nil {
		return "no master"
	}
	for _, n := range s.nodes {
		if n != master && !n.copies(master) {
			return n.Addr() + " has no link to the master"
		}
	}
	for _, p := range s.sentinels {
		if m := p.misses(); m != "" {
			return "sentinel " + p.Addr() + ": " + m
		}
	}
	return ""
}

// asked returns the address of the master that this Sentinel names, "" if it is silent.
func (s *Server) asked(name string) (addr string) {
	s.direct(func(c *redis.Client) {
		if v, err := c.Do(context.Background(), "sentinel", "get-master-addr-by-name", name).StringSlice(); err == nil && len(v) == 2 {
			addr = v[0] + ":" + v[1]
		}
	})
	return addr
}

// misses returns what this Sentinel does not see yet.
func (s *Server) misses() (missing string) {
	s.direct(func(c *redis.Client) {
		ctx := context.Background()
		if err := c.Do(ctx, "sentinel", "ckquorum", MasterName).Err(); err != nil {
			missing = err.Error()
			return
		}
		others, err := c.Do(ctx, "sentinel", "sentinels", MasterName).Slice()
		if err != nil || len(others) != sentinels-1 {
			missing = fmt.Sprintf("%d other sentinels, %v", len(others), err)
			return
		}
		copies, err := c.Do(ctx, "sentinel", "replicas", MasterName).Slice()
		if err != nil || len(copies) != replicas {
			missing = fmt.Sprintf("%d replicas, %v", len(copies), err)
			return
		}
		for _, item := range append(others, copies...) {
			flags := field(item, "flags")
			// A Sentinel that once said that the master is down is called master_down, on Valkey also long after.
			if strings.Contains(flags, "s_down") || strings.Contains(flags, "o_down") || strings.Contains(flags, "disconnected") {
				missing = flags
			}
		}
		for _, item := range copies {
			if status := field(item, "master-link-status"); status != "ok" {
				missing = "a replica whose link is " + status
			}
		}
	})
	return missing
}

// field returns a value of a Sentinel's reply about one server.
func field(item any, name string) string {
	switch m := item.(type) {
	case map[any]any:
		v, _ := m[name].(string)
		return v
	case []any:
		for i := 0; i+1 < len(m); i += 2 {
			if m[i] == name {
				v, _ := m[i+1].(string)
				return v
			}
		}
	}
	return ""
}

// role returns the role that the server claims, "" if it is silent.
func (s *Server) role() (role string) {
	if !s.Running() {
		return ""
	}
	s.direct(func(c *redis.Client) { role = info(context.Background(), c, "replication")["role"] })
	return role
}

// copies reports whether the server is a replica of master, linked, with its data.
func (s *Server) copies(master *Server) (linked bool) {
	if !s.Running() {
		return false
	}
	s.direct(func(c *redis.Client) {
		i := info(context.Background(), c, "replication")
		linked = i["role"] == "slave" && i["master_port"] == strconv.Itoa(master.port) && i["master_link_status"] == "up"
	})
	return linked
}
