package testredis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	slots = 16384
	// nodeTimeout is cluster-node-timeout while a Cluster forms, and with FailOver: much shorter than the default of 15 s, so
	// that tests do not wait long for the Cluster.
	nodeTimeout = 1500
	// patience is it otherwise: a node that a busy machine keeps from answering remains what it is.
	patience = 300000
)

// Cluster is a Redis Cluster on loopback.
//
// Its methods are for one test goroutine, except Nodes.
type Cluster struct {
	tb    TB
	nodes []*Server
	ids   map[*Server]string
}

// clusterKind is a node of a Cluster. Its identity is in a file of its folder and so survives a restart.
var clusterKind = kind{port: nodePort, ready: plain.ready, args: func(s *Server) []string {
	return append(nodeKind.args(s), "--cluster-enabled", "yes", "--cluster-node-timeout", strconv.Itoa(paced(nodeTimeout)))
}}

// StartCluster starts masters, which share the slots evenly, the first having the lowest, and replicas, which are
// assigned to the masters in turn. args go to every node. It returns when all nodes agree on the layout and the
// replicas have their masters' data. Nodes do not replace each other by themselves, except with FailOver. All nodes are
// stopped when the test ends. Without a redis-server the test is skipped, as by Start.
func StartCluster(tb TB, masters, replicas int, args ...string) *Cluster {
	tb.Helper()
	return StartClusterOn(tb, make([]Host, masters+replicas), masters, args...)
}

// StartClusterOn is StartCluster with a host for each node, those of the masters first.
func StartClusterOn(tb TB, hosts []Host, masters int, args ...string) *Cluster {
	tb.Helper()
	c := &Cluster{tb: tb, ids: map[*Server]string{}}
	for _, h := range hosts {
		c.nodes = append(c.nodes, start(tb, clusterKind.on(h), args))
	}
	c.form(masters)
	c.timeout(patience)
	return c
}

// FailOver lets a replica take the place of a master that the others have not heard of for 1.5 seconds, longer on a busy machine, and
// lets the nodes refuse commands while nobody takes it. It returns that time.
func (c *Cluster) FailOver() time.Duration {
	ms := paced(nodeTimeout)
	c.timeout(ms)
	return time.Duration(ms) * time.Millisecond
}

func (c *Cluster) timeout(ms int) {
	c.tb.Helper()
	for _, n := range c.nodes {
		n.direct(func(r *redis.Client) {
			c.must(r.ConfigSet(context.Background(), "cluster-node-timeout", strconv.Itoa(ms)).Err())
		})
	}
}

// form joins the nodes into one Cluster.
func (c *Cluster) form(masters int) {
	c.tb.Helper()
	ctx := context.Background()
	for i, n := range c.nodes {
		n.direct(func(r *redis.Client) {
			c.ids[n] = r.ClusterMyID(ctx).Val()
			if i < masters {
				c.must(r.ClusterAddSlotsRange(ctx, i*slots/masters, (i+1)*slots/masters-1).Err())
			}
			// Different epochs from the start: nodes with equal ones would have to resolve that first, which takes
			// long.
			c.must(r.Do(ctx, "cluster", "set-config-epoch", i+1).Err())
			if i > 0 {
				c.must(r.ClusterMeet(ctx, c.nodes[0].ip(), strconv.Itoa(c.nodes[0].port)).Err())
			}
		})
	}
	wait(c.tb, formTimeout, "every node knows every other", func() string {
		for _, n := range c.nodes {
			if known := n.layout(); len(known) != len(c.nodes) {
				return fmt.Sprintf("%s knows %d of %d", n.Addr(), len(known), len(c.nodes))
			}
		}
		return ""
	})
	for i, n := range c.nodes[masters:] {
		n.direct(func(r *redis.Client) { c.must(r.ClusterReplicate(ctx, c.ids[c.nodes[i%masters]]).Err()) })
	}
	c.AwaitReady()
}

func (c *Cluster) must(err error) {
	c.tb.Helper()
	if err != nil {
		c.tb.Fatal(err)
	}
}

// Client returns a Cluster client, closed when tb ends. opts may change the options
// before the client is made.
func (c *Cluster) Client(tb TB, opts ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	tb.Helper()
	o := &redis.ClusterOptions{
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	for _, n := range c.nodes {
		o.Addrs = append(o.Addrs, n.Addr())
	}
	for _, f := range opts {
		f(o)
	}
	r := redis.NewClusterClient(o)
	tb.Cleanup(func() { _ = r.Close() })
	return r
}

// Nodes returns all nodes, those that were masters first.
func (c *Cluster) Nodes() []*Server { return c.nodes }

// Slot returns the slot of a key, as a server computes it.
func (c *Cluster) Slot(key string) (slot int) {
	c.tb.Helper()
	for _, n := range c.nodes {
		if n.Running() {
			n.direct(func(r *redis.Client) {
				v, err := r.ClusterKeySlot(context.Background(), key).Result()
				c.must(err)
				slot = int(v)
			})
			return slot
		}
	}
	c.tb.Fatal("no node runs")
	return 0
}

// Master returns the running node that a majority of the running nodes names as the owner of slot; nil if there is
// none at present.
func (c *Cluster) Master(slot int) *Server {
	votes, running := map[int]int{}, 0
	for _, n := range c.nodes {
		if !n.Running() {
			continue
		}
		running++
		for _, m := range n.layout() {
			if m.owns(slot) && !m.failed() {
				votes[m.port]++
			}
		}
	}
	for _, n := range c.nodes {
		if n.Running() && votes[n.port] > running/2 {
			return n
		}
	}
	return nil
}

// Masters returns the nodes that own slots, as Master finds them.
func (c *Cluster) Masters() []*Server {
	var list []*Server
	for _, n := range c.nodes {
		if n.Running() && n.role() == "master" {
			list = append(list, n)
		}
	}
	return list
}

// Replicas returns the replicas of a master, as it sees them.
func (c *Cluster) Replicas(master *Server) []*Server {
	var list []*Server
	for _, m := range master.layout() {
		for _, n := range c.nodes {
			if n.port == m.port && m.master == c.ids[master] {
				list = append(list, n)
			}
		}
	}
	return list
}

// AwaitMaster waits until another node than old owns slot, and returns it.
func (c *Cluster) AwaitMaster(slot int, old *Server) (master *Server) {
	c.tb.Helper()
	wait(c.tb, failoverTimeout, "a new master of slot "+strconv.Itoa(slot), func() string {
		if master = c.Master(slot); master == nil || master == old {
			return "none yet"
		}
		return ""
	})
	return master
}

// Failover makes a replica take its master's place by agreement (CLUSTER FAILOVER): the master stops serving until
// the replica has everything. It returns when a majority names the replica as the owner of slot.
func (c *Cluster) Failover(slot int, replica *Server) { c.promote(slot, replica) }

// Takeover makes a replica take its master's place without agreement (CLUSTER FAILOVER TAKEOVER). Data that it does
// not have yet is lost. It returns as Failover does.
func (c *Cluster) Takeover(slot int, replica *Server) { c.promote(slot, replica, "takeover") }

// promote asks again if nothing has come of it after six seconds. A busy master may not finish within the five that
// Redis allows. And before 7.0 a takeover may claim the slots in the epoch in which its master owns them, and lose them
// again.
func (c *Cluster) promote(slot int, replica *Server, how ...any) {
	c.tb.Helper()
	const again = 6 * time.Second
	var asked time.Time
	wait(c.tb, failoverTimeout, "the replica is the master", func() string {
		if c.Master(slot) == replica {
			return ""
		}
		if time.Since(asked) > again {
			asked = time.Now()
			replica.direct(func(r *redis.Client) {
				c.must(r.Do(context.Background(), append([]any{"cluster", "failover"}, how...)...).Err())
			})
		}
		return "not yet"
	})
}

// AwaitReady waits until every node reports that the Cluster serves all slots, sees all others alive and in the same
// roles, and every replica is linked to its master and has its data: the next failover can then be survived.
func (c *Cluster) AwaitReady() {
	c.tb.Helper()
	wait(c.tb, formTimeout, "the cluster is in place", c.missing)
}

func (c *Cluster) missing() (missing string) {
	var agreed string
	for _, n := range c.nodes {
		if !n.Running() {
			return n.Addr() + " does not run"
		}
		known := n.layout()
		var view strings.Builder
		for _, id := range c.nodes {
			m, ok := known[c.ids[id]]
			if !ok || m.failed() || strings.Contains(m.flags, "handshake") {
				return n.Addr() + " does not see " + id.Addr()
			}
			fmt.Fprintln(&view, m.port, m.master, m.ranges)
			if c.ids[id] == m.master || m.master == "" {
				continue
			}
			if id == n && !n.copies(c.byID(m.master)) {
				return n.Addr() + " has no link to its master"
			}
		}
		if agreed == "" {
			agreed = view.String()
		} else if agreed != view.String() {
			return n.Addr() + " sees another layout"
		}
		n.direct(func(r *redis.Client) {
			text := r.ClusterInfo(context.Background()).Val()
			if !strings.Contains(text, "cluster_state:ok") || !strings.Contains(text, "cluster_slots_ok:"+strconv.Itoa(slots)) {
				missing = n.Addr() + " says that the cluster is not up"
			}
		})
		if missing != "" {
			return missing
		}
	}
	return ""
}

func (c *Cluster) byID(id string) *Server {
	for n, own := range c.ids {
		if own == id {
			return n
		}
	}
	return c.nodes[0]
}
