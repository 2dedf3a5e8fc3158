// Package clientv3 has of etcd's client, over Anteroom, what the tests of locks and elections call.
package clientv3

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.etcd.io/etcd/api/v3/mvccpb"

	anteroom "github.com/anteroom/anteroom/sync"
)

type (
	Config struct {
		Endpoints          []string // one: what all keys in Redis begin with
		Username, Password string   // not used
	}
	Client struct {
		Lease
		rdb *redis.Client
	}
	Lease   struct{ prefix string }
	LeaseID int64

	// GetResponse is the answer to everything.
	GetResponse struct {
		ID     LeaseID
		TTL    int64
		Kvs    []*mvccpb.KeyValue
		Header struct{ Revision int64 } // not used
	}
	WatchResponse struct{ Events []*mvccpb.Event }
)

// Granted is a lease: a Manager, and its hold with a fixed lease.
type Granted struct {
	*anteroom.Manager
	Hold   *anteroom.Hold
	TTL    time.Duration
	Prefix string   // of all keys
	Kept   sync.Map // what ends with the lease, by key: a func(context.Context) error
}

var leases sync.Map // *Granted by its LeaseID

func Find(id LeaseID) *Granted {
	g, _ := leases.Load(id)
	return g.(*Granted)
}

func WithPrefix() any   { return nil }
func WithRev(int64) any { return nil }

func New(c Config) (*Client, error) {
	return &Client{Lease{c.Endpoints[0]}, redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})}, nil
}

func (c *Client) Endpoints() []string { return []string{c.prefix} }
func (c *Client) Close() error        { return c.rdb.Close() }

func (c *Client) Put(ctx context.Context, key, value string) (*GetResponse, error) {
	return &GetResponse{}, c.rdb.Set(ctx, c.prefix+key, value, 0).Err()
}

// Compact does nothing, since Redis has no history.
func (*Client) Compact(context.Context, int64) (*GetResponse, error) { return nil, nil }

// Watch sees who comes, to hold the lock of key or to wait for it, as a put, and who leaves as a deletion.
func (c *Client) Watch(ctx context.Context, key string, _ ...any) <-chan WatchResponse {
	ch := make(chan WatchResponse, 100)
	m, _ := open()
	go func() {
		defer func() { _ = m.CloseWithin(time.Second) }()
		for n := 0; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			info, _ := m.Inspect(ctx, c.prefix+key)
			for now := len(info.Holders) + info.InLine; n != now; {
				e := &mvccpb.Event{Type: mvccpb.Event_PUT}
				if n++; n > now {
					n, e.Type = n-2, mvccpb.Event_DELETE
				}
				ch <- WatchResponse{[]*mvccpb.Event{e}}
			}
		}
	}()
	return ch
}

func open() (*anteroom.Manager, error) {
	return anteroom.Open(context.Background(), "redis://127.0.0.1:6379", anteroom.Config{Logger: slog.New(slog.DiscardHandler)})
}

func (l Lease) Grant(ctx context.Context, seconds int64) (*GetResponse, error) {
	m, err := open()
	if err != nil {
		return nil, err
	}
	id := LeaseID(rand.Int64())
	g := &Granted{Manager: m, TTL: time.Duration(seconds) * time.Second, Prefix: l.prefix}
	if g.Hold, err = m.Mutex(fmt.Sprintf("%slease/%d", l.prefix, id)).Acquire(ctx, anteroom.Lease(g.TTL)); err != nil {
		return nil, err
	}
	context.AfterFunc(g.Hold.Context(), func() { _ = g.Revoke() })
	leases.Store(id, g)
	return &GetResponse{ID: id}, nil
}

func (Lease) TimeToLive(ctx context.Context, id LeaseID) (*GetResponse, error) {
	g := Find(id)
	info, err := g.Inspect(ctx, g.Hold.Key())
	return &GetResponse{TTL: int64((info.TTL - 1) / time.Second)}, err
}

func (g *Granted) Revoke() error {
	ctx := context.Background()
	_ = g.Hold.Release(ctx) // it may have expired
	for key := range g.Kept.Range {
		if end, kept := g.Kept.LoadAndDelete(key); kept {
			_ = end.(func(context.Context) error)(ctx)
		}
	}
	return g.CloseWithin(time.Second)
}
