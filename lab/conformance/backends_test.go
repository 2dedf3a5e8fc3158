package conformance_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/conformance"
)

func TestMiniredis(t *testing.T) {
	conformance.Run(t, conformance.Backend{
		Name: "miniredis", Virtual: true, Open: embedded,
		Lacks: map[string]string{"ReplicasConfirm": "miniredis has no replicas: its WAIT answers 0 at once"},
	})
}

func TestOneServer(t *testing.T) {
	conformance.Run(t, conformance.Backend{
		Name: "one server",
		Open: func(t *testing.T) conformance.Deployment {
			s := testredis.Start(t)
			raw := s.Client(t)
			return conformance.Deployment{
				Client: func(name string) redis.UniversalClient {
					return redis.NewClient(&redis.Options{Addr: s.Addr(), ClientName: name})
				},
				Masters:     func() []*redis.Client { return []*redis.Client{raw} },
				Connections: func(name string) int { return connections(name, raw) },
			}
		},
		Lacks: map[string]string{"ReplicasConfirm": "one server has no replica that could confirm"},
	})
}

func TestSentinel(t *testing.T) {
	conformance.Run(t, conformance.Backend{
		Name: "Sentinel",
		Open: func(t *testing.T) conformance.Deployment {
			s := testredis.StartSentinel(t)
			master, all := s.Master().Client(t), clients(t, s.Nodes()...)
			copies := clients(t, s.Replicas()...)
			return conformance.Deployment{
				Client: func(name string) redis.UniversalClient {
					return s.Client(never{t}, func(o *redis.FailoverOptions) { o.ClientName = name })
				},
				Masters:     func() []*redis.Client { return []*redis.Client{master} },
				Copies:      func(string) []*redis.Client { return copies },
				Replicas:    2,
				Connections: func(name string) int { return connections(name, all...) },
			}
		},
	})
}

func TestCluster(t *testing.T) {
	conformance.Run(t, conformance.Backend{
		Name: "Cluster",
		Open: func(t *testing.T) conformance.Deployment {
			c := testredis.StartCluster(t, 3, 3)
			masters, all := clients(t, c.Masters()...), clients(t, c.Nodes()...)
			byNode := map[*testredis.Server][]*redis.Client{}
			for _, m := range c.Masters() {
				byNode[m] = clients(t, c.Replicas(m)...)
			}
			return conformance.Deployment{
				Client: func(name string) redis.UniversalClient {
					return c.Client(never{t}, func(o *redis.ClusterOptions) { o.ClientName = name })
				},
				Masters:     func() []*redis.Client { return masters },
				Copies:      func(key string) []*redis.Client { return byNode[c.Master(c.Slot(key))] },
				Replicas:    1,
				Connections: func(name string) int { return connections(name, all...) },
			}
		},
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

// embedded is a miniredis reached over in-memory connections. Its TTLs follow the clock of the bubble.
func embedded(t *testing.T) conformance.Deployment {
	m := miniredis.NewMiniRedis() // never started: connections are made by Dial
	m.ClockTTL(true)
	gate := faultnet.NewGate(m)
	t.Cleanup(gate.Close)
	var mu sync.Mutex
	networks := map[string]*faultnet.Network{}
	network := func(name string) *faultnet.Network {
		mu.Lock()
		defer mu.Unlock()
		if networks[name] == nil {
			networks[name] = faultnet.New(gate.Dial)
		}
		return networks[name]
	}
	client := func(name string) *redis.Client {
		return redis.NewClient(&redis.Options{
			Addr: "127.0.0.1:6379", DisableIdentity: true, ReadTimeout: 5 * time.Second, Dialer: network(name).Dial,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
	}
	raw := client("raw")
	t.Cleanup(func() { _ = raw.Close() })
	return conformance.Deployment{
		Client:      func(name string) redis.UniversalClient { return client(name) },
		Masters:     func() []*redis.Client { return []*redis.Client{raw} },
		Connections: func(name string) int { return network(name).Open() },
	}
}
