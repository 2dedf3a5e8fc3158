package testredis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// SlotMove is a slot migrating from one master to another.
type SlotMove struct {
	c        *Cluster
	slot     int
	from, to *Server
}

// MoveSlot moves a slot to another master as redis-cli does, with its keys, while
// clients run. It returns when every node names the new owner.
func (c *Cluster) MoveSlot(slot int, to *Server) {
	c.tb.Helper()
	m := c.BeginMove(slot, to)
	m.MoveKeys()
	m.End()
}

// BeginMove marks a slot as migrating and importing. From now on its owner redirects requests for missing keys to the
// other master, with ASK.
func (c *Cluster) BeginMove(slot int, to *Server) *SlotMove {
	c.tb.Helper()
	from := c.Master(slot)
	if from == nil || from == to {
		c.tb.Fatalf("slot %d cannot be moved to %s", slot, to.Addr())
	}
	m := &SlotMove{c: c, slot: slot, from: from, to: to}
	m.set(to, "importing", c.ids[from])
	m.set(from, "migrating", c.ids[to])
	return m
}

func (m *SlotMove) set(at *Server, words ...any) {
	m.c.tb.Helper()
	command := append([]any{"cluster", "setslot", m.slot}, words...)
	at.direct(func(r *redis.Client) {
		ctx, asked := context.Background(), r.WithTimeout(formTimeout)
		err := asked.Do(ctx, command...).Err()
		if err != nil && strings.HasPrefix(err.Error(), "NOREPLICAS") {
			// Valkey waits about 2 s for the master's replicas. One that hangs is left out when it has no link.
			m.c.must(r.ClientKillByFilter(ctx, "type", "replica").Err())
			err = asked.Do(ctx, command...).Err()
		}
		m.c.must(err)
	})
}

// MoveKeys moves the present keys, with their times to live, and returns how many. Each moves in one step: no client
// finds it on both nodes, or on none.
func (m *SlotMove) MoveKeys() (moved int) {
	m.c.tb.Helper()
	ctx := context.Background()
	m.from.direct(func(r *redis.Client) {
		for {
			keys, err := r.ClusterGetKeysInSlot(ctx, m.slot, 100).Result()
			m.c.must(err)
			if len(keys) == 0 {
				return
			}
			args := []any{"migrate", "127.0.0.1", strconv.Itoa(m.to.port), "", 0, int(askTimeout / time.Millisecond), "keys"}
			for _, k := range keys {
				args = append(args, k)
			}
			if err := r.Do(ctx, args...).Err(); err != nil {
				m.c.tb.Fatalf("MIGRATE: %v", err)
			}
			moved += len(keys)
		}
	})
	return moved
}

// End makes the other master the owner: it is informed first, then the old one, then all others. All keys must have
// been moved: the old owner deletes what it still has. None can appear there meanwhile, since it redirects requests
// for missing keys.
func (m *SlotMove) End() {
	m.c.tb.Helper()
	id := m.c.ids[m.to]
	m.set(m.to, "node", id)
	m.set(m.from, "node", id)
	for _, n := range m.c.Masters() {
		if n != m.to && n != m.from {
			m.set(n, "node", id)
		}
	}
	wait(m.c.tb, formTimeout, "every node names the new owner", func() string {
		for _, n := range m.c.nodes {
			if known := n.layout(); n.Running() && !known[id].owns(m.slot) {
				return fmt.Sprintf("%s does not", n.Addr())
			}
		}
		return ""
	})
}
