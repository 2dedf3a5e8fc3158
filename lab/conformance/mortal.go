package conformance

import (
	"context"
	"net"
	"sync"

	"github.com/redis/go-redis/v9"
)

// mortal returns a client with the options of c, and what ends its connections for good, as the end of its process does. A Manager over
// it has connections of its own, which do not end with it.
func mortal(c redis.UniversalClient) (redis.UniversalClient, func()) {
	d := &dying{}
	switch c := c.(type) {
	case *redis.Client:
		o := *c.Options()
		d.dial, o.Dialer = o.Dialer, d.Dial
		d.client = redis.NewClient(&o)
	case *redis.ClusterClient:
		o := *c.Options()
		if d.dial = o.Dialer; d.dial == nil {
			d.dial = redis.NewDialer(&redis.Options{TLSConfig: o.TLSConfig})
		}
		o.Dialer = d.Dial
		d.client = redis.NewClusterClient(&o)
	}
	return d.client, d.die
}

// dying is a client and its connections.
type dying struct {
	client redis.UniversalClient
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)

	mu   sync.Mutex
	dead bool
	all  []net.Conn
}

func (d *dying) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	nc, err := d.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all = append(d.all, nc); d.dead {
		_ = nc.Close()
	}
	return nc, nil
}

func (d *dying) die() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = true
	_ = d.client.Close()
	for _, nc := range d.all {
		_ = nc.Close()
	}
}
