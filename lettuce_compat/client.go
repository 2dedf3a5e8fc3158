package lettucecompat

import (
	"cmp"
	"context"
	"crypto/rand"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis is what a Client needs of a go-redis client. *redis.Client, *redis.ClusterClient and the failover clients
// satisfy it. The Client changes nothing on it: no hooks, no options.
type Redis interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipelined(ctx context.Context, fn func(redis.Pipeliner) error) ([]redis.Cmder, error)
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// keepLimit is the number of calls under way, per shard, for renewals, status questions and probes. They have
// capacity of their own so that no number of hanging commands delays a renewal.
const keepLimit = 8

// Client speaks to one Redis (single, Sentinel or Cluster). All methods are safe for concurrent use. It starts no
// goroutine before it is used.
type Client struct {
	rdb  Redis
	opt  Options
	word string // secret: places carry it, and the messages to them; letters and digits
	// route returns the client of the node that owns a key; nil on a single server.
	route  func(ctx context.Context, key string) (*redis.Client, error)
	hidden atomic.Bool // route is nil, and there is a cluster all the same: see cluster.go
	alone  atomic.Bool // a server behind a client of an unknown type has said that it is in no cluster
	limits clientLimits
	routed atomic.Bool // the cluster's layout is known: route does no I/O any more

	relocated atomic.Pointer[time.Time] // when the layout was last asked for after an error
	rtt       atomic.Int64              // nanoseconds: a running mean of round trips, which weighs the newest by 1/8
	warn      warnings
	subs      *subscriptions
	tracking  *tracking
	cluster   bool        // of a known Redis Cluster
	unsharded atomic.Bool // it is too old for channels of shards
	single    *shard      // shards[""]
	// hookless: rdb is a ClusterClient, and nothing of the user's sees its commands before a node's client does. It is found out by the
	// first one.
	hookless, asked atomic.Bool

	live    atomic.Int64 // calls of do, doAll and doSynced
	closed  atomic.Bool
	brief   atomic.Bool   // connections of ours are not kept: see StopListening
	drained chan struct{} // closed after Close by the last of these calls
	drain   func()

	cmds sync.Pool // of *redisCmd, see reuse

	mu     sync.Mutex
	shards map[string]*shard // by address; "" before routed and on a single server
}

// shard bounds what go-redis has under way to one server: commands, everything that keeps what is held, and renewals that wait for
// replicas: these must not keep the renewals of other locks waiting.
type shard struct {
	locks, keep, synced room
	direct              *direct               // to it; nil: go-redis sends what is for it. Guarded by Client.mu in a cluster, else constant
	loading             chan struct{}         // cap 1: a call loads a script
	loaded              map[*script]time.Time // when that was; of who loads
}

// New makes a Client over rdb. It does no I/O, so a wrong address shows at the first command. The user keeps rdb and
// closes it, after Close.
func New(rdb Redis, opt Options) (*Client, error) {
	if v := reflect.ValueOf(rdb); rdb == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, configError("redis client", "is nil: pass the result of redis.NewClient or redis.NewClusterClient")
	}
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	limits, err := limitsOf(rdb)
	if err != nil {
		return nil, err
	}
	c := &Client{
		rdb: rdb, opt: opt, limits: limits,
		word:   rand.Text(),
		shards: map[string]*shard{},
	}
	if r, is := rdb.(*redis.ClusterClient); is && r.Options().ClusterSlots != nil && len(r.Options().Addrs) == 0 {
		return nil, configError("redis client", "is a ClusterClient whose servers are no Redis Cluster, as redis.NewFailoverClusterClient makes it: use NewFailoverClient or NewClient")
	}
	switch r := rdb.(type) {
	case interface {
		MasterForKey(context.Context, string) (*redis.Client, error)
	}:
		c.route, c.cluster = r.MasterForKey, true
	case interface {
		GetShardClientForKey(string) (*redis.Client, error)
	}:
		return nil, configError("redis client", "is a redis.Ring, which moves keys between servers while locks are held: use a ClusterClient")
	}
	c.drained = make(chan struct{})
	c.drain = sync.OnceFunc(func() { close(c.drained) })
	c.warn.report = opt.OnWarning
	c.subs, c.tracking = newSubscriptions(c), newTracking(c)
	c.single = c.shard("")
	if user, is := rdb.(*redis.Client); is {
		c.single.direct, c.single.locks = newDirect(c, user), newRoom(mostHooked)
	}
	return c, nil
}

// Multi reports whether keys live on several servers, so that nothing can be said about all of them in one command.
// It becomes true when a client turns out to have a cluster behind it that New did not recognise (WarnHiddenCluster).
func (c *Client) Multi() bool { return c.route != nil || c.hidden.Load() }

// noteRTT notes that a round trip took d. An update that is lost to another one only loses one sample.
func (c *Client) noteRTT(d time.Duration) {
	sample := max(int64(d), 1)
	mean := cmp.Or(c.rtt.Load(), sample)
	c.rtt.Store(mean + (sample-mean)/8)
}

// Shard names the server that owns key: "" on a single server or Sentinel, the address of the slot's master on a
// cluster, "slot-<n>" while that is not known. It does no I/O.
func (c *Client) Shard(key string) string {
	addr := c.addr(key)
	if addr == "" && c.route != nil {
		return "slot-" + strconv.Itoa(int(keySlot(key)))
	}
	return addr
}

// addr returns the address of the server of a cluster that owns key, "" if there is no cluster or it is not known
// without I/O.
func (c *Client) addr(key string) string {
	if c.routed.Load() {
		if node, err := c.route(context.Background(), key); err == nil {
			return node.Options().Addr
		}
	}
	return ""
}

// shardOf returns that of the server that owns key.
func (c *Client) shardOf(key string) *shard {
	if addr := c.addr(key); addr != "" {
		return c.shard(addr)
	}
	return c.single
}

// shard returns that of addr. Addresses that went out of use keep theirs: some hundred bytes for each address
// that the cluster ever had.
func (c *Client) shard(addr string) *shard {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shards[addr]
	if s == nil {
		s = &shard{
			locks:  newRoom(c.opt.MaxInFlight),
			synced: newRoom(min(c.opt.MaxInFlight, waitInFlight)),
			keep:   newRoom(keepLimit),

			loading: make(chan struct{}, 1), loaded: map[*script]time.Time{},
		}
		c.shards[addr] = s
	}
	return s
}

// Close refuses further commands with ErrClosed, ends subscription and tracking and signals every watch, and waits until the
// commands under way are answered or left by their callers, at most one CommandTimeout. Abandoned commands end by the
// socket's own time limits; they hold nothing but their connection. Closing twice is harmless.
func (c *Client) Close() {
	c.closed.Store(true)
	if c.live.Load() == 0 {
		c.drain()
	}
	c.await(append(c.subs.close(), c.tracking.close(), c.drained))
	for _, d := range c.directs() {
		d.close()
	}
}

// await waits until all of ended are closed, at most one CommandTimeout.
func (c *Client) await(ended []<-chan struct{}) {
	timer := time.NewTimer(c.opt.CommandTimeout)
	defer timer.Stop()
	for _, e := range ended {
		select {
		case <-e:
		case <-timer.C:
			return
		}
	}
}

// enter notes a call, and exit its end. Whether the client is open is asked for in between.
func (c *Client) enter() { c.live.Add(1) }

func (c *Client) exit() {
	if c.live.Add(-1) == 0 && c.closed.Load() {
		c.drain()
	}
}

// observe reports a command to OnCommand.
func (c *Client) observe(name string, o Outcome, start time.Time) {
	if c.opt.OnCommand != nil {
		c.opt.OnCommand(CommandStat{Name: name, Outcome: o, Duration: time.Since(start)})
	}
}

// fence returns the key of the fencing record of a lock.
func (c *Client) fence(key string) string { return c.opt.Dialect.fence(key) }
