package lettucecompat

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// tendEvery is how often a connection to a shard is asked whether it is alive, and whether its
// channels have another master by now.
const tendEvery = time.Second

// errNoMaster is why a connection to a shard cannot be made at the moment.
var errNoMaster = errors.New("the master of the shard is not known")

// subscriptions are those of one client: a connection for its own channel and for all release channels
// that are the whole server's, and where they belong to shards (Dialect) one more for each shard, while
// it is listened to. All lists are under one mutex, so that a channel can move from one to another.
type subscriptions struct {
	c      *Client
	mu     sync.Mutex
	main   *subscriber
	shards map[string]*subscriber // by address; "" are those whose master is not known
	closed bool
	// refusal is the server's answer while it refuses the own channel; nil: it does not, or was not asked.
	refusal atomic.Pointer[error]
}

// ownRefusal returns why the client's own channel is refused, on which it would be called.
func (s *subscriptions) ownRefusal() error {
	if refusal := s.refusal.Load(); refusal != nil {
		return *refusal
	}
	return nil
}

func newSubscriptions(c *Client) *subscriptions {
	s := &subscriptions{c: c, shards: map[string]*subscriber{}}
	s.main = newSubscriber(c, &s.mu, "")
	s.main.own = &channel{sub: s.main, name: ownPrefix + c.opt.ClientID, own: true}
	s.main.channels[s.main.own.name] = s.main.own
	s.main.enlistLocked(s.main.own, s.main.wanted)
	return s
}

// sharded reports whether release channels belong to shards.
func (c *Client) sharded() bool {
	return c.opt.Dialect == Redisson && c.cluster && !c.unsharded.Load()
}

// scripts returns the scripts that suit the channels.
func (c *Client) scripts() *scripts {
	switch {
	case c.opt.Dialect == DesignDocument:
		return documentScripts
	case c.sharded():
		return shardedScripts
	}
	return redissonScripts
}

// home returns the address of the shard to which the release channel of key belongs, and whether it
// does belong to one. It does no I/O.
func (s *subscriptions) home(key string) (addr string, sharded bool) {
	if !s.c.sharded() {
		return "", false
	}
	return s.c.addr(key), true
}

// atLocked returns the subscriber of what home has returned, nil where there is none and it is not to
// be made.
func (s *subscriptions) atLocked(addr string, sharded, create bool) *subscriber {
	if !sharded {
		return s.main
	}
	sub := s.shards[addr]
	if sub == nil && create {
		sub = newSubscriber(s.c, &s.mu, addr)
		s.shards[addr] = sub
	}
	return sub
}

// confirmed reports whether the server that owns key counts this client among the subscribers of its
// release channel.
func (s *subscriptions) confirmed(key string) bool {
	addr, sharded := s.home(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.atLocked(addr, sharded, false)
	if sub == nil || sub.own != nil && len(sub.channels) == 1 { // the own one
		return false
	}
	ch := sub.channels[s.c.opt.Dialect.channel(key)]
	return ch != nil && ch.state == chConfirmed
}

// allLocked returns all subscribers.
func (s *subscriptions) allLocked() []*subscriber {
	all := []*subscriber{s.main}
	for _, sub := range s.shards {
		all = append(all, sub)
	}
	return all
}

// close ends all connections and signals every watch. The channels that it returns are closed
// when the goroutines have ended.
func (s *subscriptions) close() (ended []<-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sub := range s.allLocked() {
		if !s.closed {
			sub.closeLocked()
		}
		ended = append(ended, sub.done)
	}
	s.closed = true
	return ended
}

// rehome moves channels of from, which is a shard's, to where they belong by now.
func (s *subscriptions) rehome(from *subscriber) {
	if from.own != nil {
		return
	}
	s.mu.Lock()
	list := make([]*channel, 0, len(from.channels))
	for _, ch := range from.channels {
		list = append(list, ch)
	}
	s.mu.Unlock()
	for _, ch := range list {
		addr, sharded := s.home(ch.key)
		if sharded && addr == from.addr {
			continue
		}
		s.mu.Lock()
		if to := s.atLocked(addr, sharded, true); ch.sub == from && !s.closed {
			s.moveLocked(ch, to)
		}
		s.mu.Unlock()
	}
}

// moveLocked moves a channel to another connection, where it is subscribed anew; that signals its
// watches. One that nobody watches is forgotten.
func (s *subscriptions) moveLocked(ch *channel, to *subscriber) {
	ch.sub.forgetLocked(ch)
	ch.sub.kickLocked()
	if len(ch.watches) == 0 {
		return
	}
	there := to.channels[ch.name]
	if there == nil {
		there = ch
		there.sub, there.alone = to, false
		to.channels[there.name] = there
		to.wantLocked(there)
	}
	for w := range ch.watches {
		w.ch = there
		there.watches[w] = struct{}{}
	}
	if there.state == chConfirmed {
		to.unlistLocked(there) // it may have been about to end
		there.signalLocked()
	}
	if !to.started {
		to.startLocked()
	}
}

// pubsub returns a connection to be, without I/O. key is one of the shard's.
func (s *subscriber) pubsub(key string) (*redis.PubSub, error) {
	if s.own != nil {
		return s.c.rdb.Subscribe(s.ctx), nil
	}
	node, err := s.c.route(s.ctx, key)
	if err != nil {
		return nil, err
	}
	if s.addr == "" || node.Options().Addr != s.addr {
		return nil, errNoMaster // rehome knows where it belongs
	}
	return node.SSubscribe(s.ctx), nil
}

func (s *subscriber) subscribe(ctx context.Context, ps *redis.PubSub, channels ...string) error {
	if s.own == nil {
		return ps.SSubscribe(ctx, channels...)
	}
	return ps.Subscribe(ctx, channels...)
}

func (s *subscriber) unsubscribe(ctx context.Context, ps *redis.PubSub, channels ...string) error {
	if s.own == nil {
		return ps.SUnsubscribe(ctx, channels...)
	}
	return ps.Unsubscribe(ctx, channels...)
}

// tend sees to a connection to a shard, of which no probe tells whether it delivers: it pings, and a
// silent one is given up.
func (s *subscriber) tend(ps *redis.PubSub) error {
	now := time.Now()
	if s.own != nil || now.Before(s.tended.Add(tendEvery)) {
		return nil
	}
	s.tended = now
	s.c.subs.rehome(s)
	s.c.relocate() // an old master that lives on as a replica still serves its subscribers; the next look is by the new layout
	s.mu.Lock()
	silent := now.Sub(s.heardAt)
	s.mu.Unlock()
	if silent > tendEvery+max(2*s.c.opt.CommandTimeout, time.Second) {
		return ErrNotDelivered
	}
	return ps.Ping(s.onceMade())
}

// heard notes that the connection to a shard is alive.
func (s *subscriber) heard() {
	if s.own != nil {
		return
	}
	s.mu.Lock()
	s.heardAt = time.Now()
	s.mu.Unlock()
}

// lost is told that a server has ended a subscription. Where that was not asked for, its slot has moved.
func (s *subscriber) lost(name string, generation uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.channels[name]; ch != nil && ch.state == chConfirmed {
		s.dropLocked(generation, errNoMaster)
	}
}
