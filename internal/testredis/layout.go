package testredis

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// member is one line of CLUSTER NODES.
type member struct {
	port   int
	flags  string
	master string   // id of its master, "" for a master
	ranges []string // "0-5460", "7"
}

func (m member) failed() bool { return strings.Contains(m.flags, "fail") }

func (m member) owns(slot int) bool {
	for _, r := range m.ranges {
		low, high, ok := strings.Cut(r, "-")
		if !ok {
			high = low
		}
		a, err1 := strconv.Atoi(low)
		b, err2 := strconv.Atoi(high)
		if err1 == nil && err2 == nil && a <= slot && slot <= b {
			return true
		}
	}
	return false
}

// layout returns the Cluster as this node sees it, by id; nil if the node is silent.
func (s *Server) layout() map[string]member {
	if !s.Running() {
		return nil
	}
	members := map[string]member{}
	s.direct(func(c *redis.Client) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*askTimeout+time.Second)
		defer cancel()
		for line := range strings.Lines(c.ClusterNodes(ctx).Val()) {
			// <id> <host:port@bus,…> <flags> <master> <ping> <pong> <epoch> <link> <slots …>
			f := strings.Fields(line)
			if len(f) < 8 {
				continue
			}
			addr, _, _ := strings.Cut(f[1], "@")
			_, port, _ := strings.Cut(addr, ":")
			m := member{flags: f[2]}
			m.port, _ = strconv.Atoi(port)
			if f[3] != "-" {
				m.master = f[3]
			}
			for _, r := range f[8:] {
				if !strings.HasPrefix(r, "[") { // a migrating slot: [7->-<id>]
					m.ranges = append(m.ranges, r)
				}
			}
			members[f[0]] = m
		}
	})
	return members
}
