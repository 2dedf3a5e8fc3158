package conformance_test

import (
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
		Masters: func() []*redis.Client { return []*redis.Client{raw} },
		Nodes:   []*redis.Client{raw},
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
		Masters:  func() []*redis.Client { return []*redis.Client{master} },
		Nodes:    all,
		Copies:   func(string) []*redis.Client { return copies },
		Replicas: 2,
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
		Masters:  func() []*redis.Client { return masters },
		Nodes:    all,
		Copies:   func(key string) []*redis.Client { return byNode[c.Master(c.Slot(key))] },
		Replicas: 1,
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
