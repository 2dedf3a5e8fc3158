package lettucecompat

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// subscriptions are those of one client: a connection for its own channel and for all release channels that are the
// whole server's, and where they belong to shards (Dialect) one more for each shard, while it is listened to. All
// lists are under one mutex, so that a channel can move from one to another.
type subscriptions struct {
	c      *Client
	mu     sync.Mutex
	main   *subscriber
	all    map[string]*subscriber // by home: main, and those of shards
	closed bool
	// refusal is the server's answer while it refuses the own channel; nil: it does not, or was not asked.
	refusal atomic.Pointer[error]
}

// mainHome is the home of what is the whole server's. It is no address.
const mainHome = "main"

func newSubscriptions(c *Client) *subscriptions {
	s := &subscriptions{c: c}
	s.main = newSubscriber(c, &s.mu, mainHome, ownPrefix+c.opt.ClientID)
	s.all = map[string]*subscriber{mainHome: s.main}
	return s
}

// ownRefusal returns why the client's own channel is refused, on which it would be called.
func (s *subscriptions) ownRefusal() error {
	if refusal := s.refusal.Load(); refusal != nil {
		return *refusal
	}
	return nil
}

// sharded reports whether release channels belong to shards.
func (c *Client) sharded() bool {
	return c.opt.Dialect == Redisson && c.cluster && !c.unsharded.Load()
}

// scripts returns the scripts that suit the channels.
func (c *Client) scripts() *scripts {
	switch {
	case c.opt.Dialect == DesignDocument:
		return documentScripts()
	case c.sharded():
		return shardedScripts()
	}
	return redissonScripts()
}

// home returns where the release channel of key belongs: the address of its shard, "" while that is not known, or
// mainHome. It does no I/O.
func (s *subscriptions) home(key string) string {
	if !s.c.sharded() {
		return mainHome
	}
	return s.c.addr(key)
}

// atLocked returns the subscriber of a home.
func (s *subscriptions) atLocked(home string) *subscriber {
	sub := s.all[home]
	if sub == nil {
		sub = newSubscriber(s.c, &s.mu, home, "")
		s.all[home] = sub
	}
	return sub
}

// confirmed reports whether the server that owns key counts this client among the subscribers of its release channel.
func (s *subscriptions) confirmed(key string) bool {
	home := s.home(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.all[home]
	if sub == nil || sub.own != nil && len(sub.channels) == 1 { // the own one
		return false
	}
	ch := sub.channels[s.c.opt.Dialect.channel(key)]
	return ch != nil && ch.state == chConfirmed
}

// close ends all connections and signals every watch. The channels that it returns are closed when the goroutines
// have ended.
func (s *subscriptions) close() (ended []<-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, sub := range s.all {
		if sub.ctx.Err() == nil {
			sub.cancel()
			sub.wakeAllLocked(errStopped)
		}
		ended = append(ended, sub.done)
	}
	return ended
}

// rehome moves channels of from, which is a shard's, to where they belong by now.
func (s *subscriptions) rehome(from *subscriber) {
	if from.own != nil {
		return
	}
	s.mu.Lock()
	moving := slices.Collect(maps.Values(from.channels))
	s.mu.Unlock()
	for _, ch := range moving {
		home := s.home(ch.key)
		s.mu.Lock()
		if home != from.addr && ch.sub == from && !s.closed {
			s.moveLocked(ch, s.atLocked(home))
		}
		s.mu.Unlock()
	}
}

// moveLocked moves a channel to another connection, where it is subscribed anew; that signals its watches. One that
// nobody watches is forgotten.
func (s *subscriptions) moveLocked(ch *channel, to *subscriber) {
	ch.sub.forgetLocked(ch)
	signal(ch.sub.kick)
	if ch.unwatched() {
		return
	}
	there := to.channels[ch.name]
	if there == nil {
		there = ch
		there.sub, there.alone = to, false
		to.addLocked(there)
	}
	for w := range ch.watches {
		there.watchLocked(w)
	}
	to.startLocked()
}
