package lettucecompat

import (
	"context"
	"crypto/rand"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis is what a Client needs of a go-redis client. *redis.Client,
// *redis.ClusterClient and the failover clients satisfy it. The Client changes nothing
// on it: no hooks, no options.
type Redis interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipelined(ctx context.Context, fn func(redis.Pipeliner) error) ([]redis.Cmder, error)
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// keepLimit is the number of round trips under way, per shard, for renewals, status
// questions and probes. They have capacity of their own so that no number of hanging
// statements delays a renewal.
const keepLimit = 8

// Client speaks to one Redis (single, Sentinel or Cluster). All methods are
// safe for concurrent use. It starts no goroutine before it is used.
type Client struct {
	rdb  Redis
	opt  Options
	id   any    // opt.ClientID, as an argument of a command
	word string // secret: places carry it, and the messages to them; letters and digits
	// route returns the client of the node that owns a key; nil on a single server.
	route  func(ctx context.Context, key string) (*redis.Client, error)
	hidden atomic.Bool // route is nil, and there is a cluster all the same: see cluster.go
	alone  atomic.Bool // a server behind a client of an unknown type has said that it is in no cluster
	limits clientLimits
	routed atomic.Bool // the cluster's layout is known: route does no I/O any more

	relocated atomic.Pointer[time.Time] // when the layout was last asked for after an error
	tags      func() []uint32
	rtt       atomic.Int64 // nanoseconds, see RTT
	quick     atomic.Int64 // nanoseconds, see noteRTT
	warn      warnings
	subs      *subscriptions
	cluster   bool        // of a known Redis Cluster
	unsharded atomic.Bool // it is too old for channels of shards
	single    *shard      // shards[""]

	mu     sync.Mutex
	closed bool
	hasty  bool              // no goroutine lingers: StopListening was called
	shards map[string]*shard // by address; "" before routed and on a single server
}

// shard holds the lanes to one server: statements, everything that keeps what is held, and renewals that
// wait for replicas, each alone and for long: these must not keep the renewals of other locks waiting.
type shard struct{ locks, keep, synced *lane }

// New makes a Client over rdb. It does no I/O, so a wrong address shows at the first
// command. The user keeps rdb and closes it, after Close.
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
		id: opt.ClientID, word: rand.Text(),
		tags:   sync.OnceValue(slotNumbers),
		shards: map[string]*shard{},
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
	c.warn.report = opt.OnWarning
	c.subs = newSubscriptions(c)
	c.single = c.shard("")
	return c, nil
}

// Multi reports whether keys live on several servers, so that nothing can be said
// about all of them in one command. It becomes true when a plain client, or one of a type
// that is not known, turns out to have a cluster behind it (WarnHiddenCluster).
func (c *Client) Multi() bool { return c.route != nil || c.hidden.Load() }

// RTT returns the smoothed duration of recent round trips, 0 before the first.
func (c *Client) RTT() time.Duration { return time.Duration(c.rtt.Load()) }

// noteRTT notes that a round trip took d: in RTT, a running mean that weighs the newest value
// by 1/8, and in quick, which a quicker trip lowers at once and a slower one raises by 1/256
// of the difference. So quick is about what the network takes, without the waits for a busy
// processor. An update that is lost to another one only loses one sample.
func (c *Client) noteRTT(d time.Duration) {
	sample := max(int64(d), 1)
	mean, quick := c.rtt.Load(), c.quick.Load()
	if mean == 0 {
		mean, quick = sample, sample
	}
	c.rtt.Store(mean + (sample-mean)/8)
	c.quick.Store(min(sample, quick+(sample-quick)/256))
}

// Shard names the server that owns key: "" on a single server or Sentinel, the
// address of the slot's master on a cluster, "slot-<n>" while that is not known. It
// does no I/O.
func (c *Client) Shard(key string) string {
	if c.route == nil {
		return ""
	}
	if addr := c.addr(key); addr != "" {
		return addr
	}
	return "slot-" + strconv.Itoa(int(keySlot(key)))
}

// addr returns the address of the server of a cluster that owns key, "" where it is not
// known without I/O.
func (c *Client) addr(key string) string {
	if !c.routed.Load() {
		return ""
	}
	node, err := c.route(context.Background(), key)
	if err != nil {
		return ""
	}
	return node.Options().Addr
}

// lanes returns the lanes to the server that owns key.
func (c *Client) lanes(key string) *shard {
	if c.route != nil {
		if addr := c.addr(key); addr != "" {
			return c.shard(addr)
		}
	}
	return c.single
}

// shard returns the lanes for addr. Addresses that went out of use keep theirs: some
// hundred bytes for each address that the cluster ever had.
func (c *Client) shard(addr string) *shard {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shards[addr]
	if s == nil {
		s = &shard{
			locks:  c.lane(c.opt.MaxInFlight),
			synced: c.lane(min(c.opt.MaxInFlight, waitInFlight)),
			keep:   c.lane(keepLimit),
		}
		s.keep.hasty = true // its parcels come too rarely for a goroutine that lingers to pay
		c.shards[addr] = s
	}
	return s
}

// lane returns a new lane. The caller has c.mu.
func (c *Client) lane(limit int) *lane {
	return &lane{c: c, limit: limit, closed: c.closed, hasty: c.hasty}
}

// Close refuses further commands with ErrClosed, ends the subscription and signals
// every watch, and waits until the commands under way are answered or left by their
// callers, at most one CommandTimeout. Abandoned commands end by the socket's own time
// limits; they hold nothing but their connection. Closing twice is harmless.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	waits := make([]<-chan struct{}, 0, 3*len(c.shards)+1)
	for _, s := range c.shards {
		waits = append(waits, s.locks.close(), s.keep.close(), s.synced.close())
	}
	c.mu.Unlock()
	waits = append(waits, c.subs.close()...)
	timer := time.NewTimer(c.opt.CommandTimeout)
	defer timer.Stop()
	for _, w := range waits {
		select {
		case <-w:
		case <-timer.C:
			return
		}
	}
}

// observe reports a command to OnCommand.
func (c *Client) observe(name string, o Outcome, start time.Time) {
	if c.opt.OnCommand != nil {
		c.opt.OnCommand(CommandStat{Name: name, Outcome: o, Duration: time.Since(start)})
	}
}

// fence returns the key of the fencing record of a lock.
func (c *Client) fence(key string) string {
	return c.opt.Dialect.fence(key, func(slot uint16) uint32 { return c.tags()[slot] })
}
