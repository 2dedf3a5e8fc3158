package lettucecompat

import (
	"container/list"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// subscribeBatch bounds the channels of one SUBSCRIBE or UNSUBSCRIBE.
	subscribeBatch = 128
	// refusedRetry is how long a channel that the ACL refuses is left alone.
	refusedRetry = 30 * time.Second
	// backoffMin and backoffMax bound the pause between failed connections.
	backoffMin = 50 * time.Millisecond
	backoffMax = 2 * time.Second
	// tendEvery is how often a connection to a shard is asked whether it is alive, and whether its channels have
	// another master by now.
	tendEvery = time.Second
)

var (
	// errStopped ends the connection of a client that is closed.
	errStopped = errors.New("subscriptions are closed")
	// errIdle ends that of a shard of which nothing is listened to.
	errIdle = errors.New("nothing to subscribe")
	// errNoMaster is why a connection to a shard cannot be made at the moment.
	errNoMaster = errors.New("the master of the shard is not known")
)

// subscriber owns one subscription connection. One goroutine makes the connection and writes to it, another reads it;
// both exist from the first need until Close, those of a shard while it has channels. Callers never do I/O here: they
// change the lists under mu and kick the writer.
//
// The writer, in words. Connect with the own channel, or the first one that is pending; then, until the connection
// fails or is dropped: if no SUBSCRIBE is unanswered, send one for what is pending; unsubscribe what nobody watches
// any more; sleep until kicked or until the next of these is due. When the connection has ended, everything watched
// is pending again, and the loop starts over after a pause.
//
// At most one SUBSCRIBE is unanswered, because an error answer does not say which channel it is about: so it is known
// to be about that batch.
type subscriber struct {
	c    *Client
	own  *channel      // nil: of a shard
	addr string        // of the shard's master, "" for those whose master is not known
	kick chan struct{} // cap 1: read the lists again

	subscribe, unsubscribe func(*redis.PubSub, context.Context, ...string) error // those of shards, or the plain ones

	ctx    context.Context // of the connection's I/O; ends with close
	cancel context.CancelFunc

	mu         *sync.Mutex     // of subscriptions
	done       chan struct{}   // closed while no writer runs
	made       context.Context // for a connection that is made already: see read
	started    bool
	listening  atomic.Bool // the own channel is confirmed
	channels   map[string]*channel
	lists      [chanStates]*list.List // by state, oldest first; those that are confirmed only if nobody watches them
	askedAt    time.Time
	up         bool          // the connection has confirmed a channel
	generation uint64        // number of the connection
	dropped    chan struct{} // closed when the connection must end; nil: there is none
	dropErr    error         // set before dropped is closed
	probes     map[string]chan struct{}
	heardAt    time.Time // when anything arrived last
	tended     time.Time // the writer's, see tend
}

// newSubscriber makes a subscriber to the shard at addr, or with the name of the own channel to the whole server.
func newSubscriber(c *Client, mu *sync.Mutex, addr, own string) *subscriber {
	s := &subscriber{
		c: c, mu: mu, addr: addr, kick: make(chan struct{}, 1), done: make(chan struct{}),
		channels: map[string]*channel{}, probes: map[string]chan struct{}{},
	}
	for i := range s.lists {
		s.lists[i] = list.New()
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	ended, end := context.WithCancel(context.Background())
	end()
	s.made = ended
	close(s.done)
	s.subscribe, s.unsubscribe = (*redis.PubSub).SSubscribe, (*redis.PubSub).SUnsubscribe
	if own != "" {
		s.subscribe, s.unsubscribe = (*redis.PubSub).Subscribe, (*redis.PubSub).Unsubscribe
		s.own = &channel{sub: s, name: own, own: true}
		s.addLocked(s.own)
	}
	return s
}

// startLocked starts the writer at the first need.
func (s *subscriber) startLocked() {
	if !s.started {
		s.started, s.done = true, make(chan struct{})
		go s.run(s.done)
	}
}

// run keeps a connection until close; that of a shard while it has channels.
func (s *subscriber) run(done chan struct{}) {
	defer close(done)
	pause := time.Duration(0)
	for s.needed() {
		start := time.Now()
		wasUp, err := s.connect()
		s.down(err)
		if s.ctx.Err() != nil {
			return
		}
		s.c.relocate() // the node may be gone for good
		if wasUp && time.Since(start) > backoffMax {
			// The first try after a good connection goes immediately. One that comes up and dies immediately must not
			// become a busy loop.
			pause = 0
		}
		select {
		case <-time.After(time.Duration((0.5 + rand.Float64()/2) * float64(pause))):
		case <-s.ctx.Done():
			return
		}
		pause = min(max(2*pause, backoffMin), backoffMax)
		s.c.subs.rehome(s)
	}
}

// needed reports whether the writer must continue.
func (s *subscriber) needed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = len(s.channels) > 0
	return s.started
}

// connect makes one connection and serves it until it ends. It reports whether the connection ever worked.
func (s *subscriber) connect() (wasUp bool, err error) {
	s.mu.Lock()
	first := s.own
	if e := s.lists[chPending].Front(); first == nil && e != nil {
		first = e.Value.(*channel)
	}
	s.mu.Unlock()
	if first == nil {
		return false, errIdle
	}
	ps, err := s.pubsub(first.key)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	if s.ctx.Err() != nil || s.channels[first.name] != first { // closed, or forgotten: its only watch was closed
		s.mu.Unlock()
		return false, errIdle
	}
	s.generation++
	s.dropped, s.dropErr = make(chan struct{}), nil
	dropped, generation := s.dropped, s.generation
	s.putLocked(first, chAsked)
	s.mu.Unlock()
	if err = s.subscribe(ps, s.ctx, first.name); err != nil {
		_ = ps.Close()
		return false, err
	}
	s.mu.Lock()
	s.askedAt = time.Now() // connecting took its own time
	s.heardAt, s.tended = s.askedAt, s.askedAt
	s.mu.Unlock()
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.read(ps, generation)
	}()
	err = s.write(ps, dropped)
	_ = ps.Close() // ends the reader
	<-read
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up, err
}

// write serves the lists until the connection ends, and returns why it did.
func (s *subscriber) write(ps *redis.PubSub, dropped <-chan struct{}) error {
	for {
		if err := s.tend(ps); err != nil {
			return err
		}
		subscribe, unsubscribe, next, err := s.plan()
		if err == nil && len(unsubscribe) > 0 {
			err = s.unsubscribe(ps, s.onceMade(), unsubscribe...)
		}
		if err == nil && len(subscribe) > 0 {
			err = s.subscribe(ps, s.onceMade(), subscribe...)
		}
		if err != nil {
			return err
		}
		var due <-chan time.Time // never
		if !next.IsZero() {
			due = time.After(time.Until(next))
		}
		select {
		case <-s.kick:
		case <-due:
		case <-dropped:
		}
		s.mu.Lock()
		ended, err := s.dropped == nil, s.dropErr
		s.mu.Unlock()
		if ended {
			return err
		}
	}
}

// plan takes the next batches from the lists, and returns when to plan again at the latest (zero: when kicked). An
// unanswered SUBSCRIBE that is too old is an error: the connection is open and dead.
func (s *subscriber) plan() (subscribe, unsubscribe []string, next time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	most := subscribeBatch
	if s.own == nil {
		most = 1 // the channels of one command must be of one slot
		next = s.tended.Add(tendEvery)
	}
	for ch := s.firstLocked(chConfirmed); ch != nil && len(unsubscribe) < most; ch = s.firstLocked(chConfirmed) {
		s.forgetLocked(ch)
		unsubscribe = append(unsubscribe, ch.name)
	}
	if len(unsubscribe) == most {
		next = now // there may be more
	}
	if len(s.channels) == 0 {
		return nil, nil, next, errIdle
	}
	for ch := s.firstLocked(chRefused); ch != nil; ch = s.firstLocked(chRefused) {
		if again := ch.since.Add(refusedRetry); now.Before(again) {
			next = earlier(next, again)
			break
		}
		s.putLocked(ch, chPending)
	}
	for s.lists[chAsked].Len() == 0 || len(subscribe) > 0 {
		ch := s.firstLocked(chPending)
		if ch == nil || len(subscribe) == most || ch.alone && len(subscribe) > 0 {
			break
		}
		s.putLocked(ch, chAsked)
		s.askedAt = now
		if subscribe = append(subscribe, ch.name); ch.alone {
			break
		}
	}
	if s.lists[chAsked].Len() > 0 {
		limit := s.askedAt.Add(s.c.patience())
		if !now.Before(limit) {
			return nil, nil, next, ErrNotSubscribed
		}
		next = earlier(next, limit)
	}
	return subscribe, unsubscribe, next, nil
}

// patience is how long a connection may be silent when something is due, or take until it is made.
func (c *Client) patience() time.Duration { return max(2*c.opt.CommandTimeout, time.Second) }

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// tend sees to a connection to a shard, of which no probe proves that it delivers: it pings, and a silent one is
// given up.
func (s *subscriber) tend(ps *redis.PubSub) error {
	now := time.Now()
	if s.own != nil || now.Before(s.tended.Add(tendEvery)) {
		return nil
	}
	s.tended = now
	s.c.subs.rehome(s)
	s.c.relocate() // a demoted master still serves its subscribers; the next check uses the new layout
	s.mu.Lock()
	silent := now.Sub(s.heardAt)
	s.mu.Unlock()
	if silent > tendEvery+s.c.patience() {
		return ErrNotDelivered
	}
	return ps.Ping(s.onceMade())
}

// down notes the end of a connection: what is watched is pending again, what is not is forgotten, and the change is
// reported.
func (s *subscriber) down(err error) {
	s.mu.Lock()
	wasUp := s.up
	s.up, s.dropped = false, nil
	for _, ch := range s.channels {
		if ch.unwatched() {
			s.forgetLocked(ch)
			continue
		}
		ch.alone = false
		s.putLocked(ch, chPending)
	}
	s.mu.Unlock()
	if wasUp && s.own != nil && s.c.opt.OnSubscription != nil {
		s.c.opt.OnSubscription(false, err)
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
