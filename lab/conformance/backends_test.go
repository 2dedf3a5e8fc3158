package conformance_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/conformance"
)

func TestOneServer(t *testing.T) {
	s := testredis.Start(t)
	raw := s.Client(t)
	conformance.Run(t, conformance.Deployment{
		Client: func(name string) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: s.Addr(), ClientName: name})
		},
		Masters:     func() []*redis.Client { return []*redis.Client{raw} },
		Connections: func(name string) int { return connections(name, raw) },
	})
}

func TestSentinel(t *testing.T) {
	s := testredis.StartSentinel(t)
	master, all := s.Master().Client(t), clients(t, s.Nodes()...)
	copies := clients(t, s.Replicas()...)
	conformance.Run(t, conformance.Deployment{
		Client: func(name string) redis.UniversalClient {
			return s.Client(never{t}, func(o *redis.FailoverOptions) { o.ClientName = name })
		},
		Masters:     func() []*redis.Client { return []*redis.Client{master} },
		Copies:      func(string) []*redis.Client { return copies },
		Replicas:    2,
		Connections: func(name string) int { return connections(name, all...) },
	})
}

func TestCluster(t *testing.T) {
	c := testredis.StartCluster(t, 3, 3)
	masters, all := clients(t, c.Masters()...), clients(t, c.Nodes()...)
	byNode := map[*testredis.Server][]*redis.Client{}
	for _, m := range c.Masters() {
		byNode[m] = clients(t, c.Replicas(m)...)
	}
	conformance.Run(t, conformance.Deployment{
		Client: func(name string) redis.UniversalClient {
			return c.Client(never{t}, func(o *redis.ClusterOptions) { o.ClientName = name })
		},
		Masters:     func() []*redis.Client { return masters },
		Copies:      func(key string) []*redis.Client { return byNode[c.Master(c.Slot(key))] },
		Replicas:    1,
		Connections: func(name string) int { return connections(name, all...) },
	})
}

// never is a test whose end closes nothing: the suite closes its clients itself.
type never struct{ *testing.T }

func (never) Cleanup(func()) {}

func clients(t *testing.T, servers ...*testredis.Server) []*redis.Client {
	t.Helper()
	var list []*redis.Client
	for _, s := range servers {
		list = append(list, s.Client(t))
	}
	return list
}

// connections counts the connections of that name.
func connections(name string, servers ...*redis.Client) (n int) {
	for _, c := range servers {
		for line := range strings.Lines(c.ClientList(context.Background()).Val()) {
			if strings.Contains(line, " name="+name+" ") {
				n++
			}
		}
	}
	return n
}
