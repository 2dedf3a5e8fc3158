package lettucecompat

import (
	"container/list"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
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
)

var (
	// errStopped ends the connection of a client that is closed.
	errStopped = errors.New("subscriptions are closed")
	// errIdle ends that of a shard of which nothing is listened to.
	errIdle = errors.New("nothing to subscribe")
)

// subscriber owns one subscription connection. One goroutine makes the
// connection and writes to it, another reads it; both exist from the first need until
// Close, those of a shard while it has channels. Callers never do I/O here: they change the lists under mu
// and kick the writer.
//
// The writer, in words. Connect with the own channel, or the first one that is wanted; then, until the
// connection fails or is dropped: if no SUBSCRIBE is unanswered, send one for what is wanted; unsubscribe
// what nobody watches any more; sleep until kicked or until the next of these is due.
// When the connection has ended, everything watched is wanted again, and the loop
// starts over after a pause.
//
// At most one SUBSCRIBE is unanswered, because an error answer does not say which
// channel it is about: so it is known to be about that batch.
type subscriber struct {
	c    *Client
	own  *channel      // nil: of a shard
	addr string        // of the shard's master, "" for those whose master is not known
	kick chan struct{} // cap 1: look at the lists again

	ctx    context.Context // of the connection's I/O; ends with close
	cancel context.CancelFunc

	mu         *sync.Mutex     // of subscriptions
	done       chan struct{}   // closed while no writer runs
	made       context.Context // for a connection that is made already: see read
	started    bool
	channels   map[string]*channel
	wanted     *list.List // to subscribe, oldest first
	asked      *list.List // in the unanswered SUBSCRIBE
	askedAt    time.Time
	unwatched  *list.List // confirmed and watched by nobody: to unsubscribe
	refused    *list.List // refused by the ACL, oldest first
	up         bool       // the connection has confirmed a channel
	generation uint64     // number of the connection
	dropped    chan struct{}
	dropErr    error // set before dropped is closed
	probes     map[string]chan struct{}
	heardAt    time.Time // when anything arrived last; of a shard
	tended     time.Time // the writer's, see tend
}

func newSubscriber(c *Client, mu *sync.Mutex, addr string) *subscriber {
	s := &subscriber{
		c: c, mu: mu, addr: addr, kick: make(chan struct{}, 1), done: make(chan struct{}),
		channels: map[string]*channel{}, probes: map[string]chan struct{}{},
		wanted: list.New(), asked: list.New(), unwatched: list.New(), refused: list.New(),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	ended, end := context.WithCancel(context.Background())
	end()
	s.made = ended
	close(s.done)
	return s
}

// startLocked starts the writer at the first need.
func (s *subscriber) startLocked() {
	s.started, s.done = true, make(chan struct{})
	go s.run(s.done)
}

// closeLocked ends the connection and signals every watch. done is closed
// when the goroutines have ended.
func (s *subscriber) closeLocked() {
	s.cancel()
	s.wakeAllLocked()
	s.dropLocked(s.generation, errStopped)
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
			// The first try after a good connection goes at once. One that comes up and
			// dies right away must not become a busy loop.
			pause = 0
		}
		if pause > 0 {
			timer := time.NewTimer(time.Duration((0.5 + rand.Float64()/2) * float64(pause)))
			select {
			case <-timer.C:
			case <-s.ctx.Done():
				timer.Stop()
				return
			}
		}
		pause = min(max(2*pause, backoffMin), backoffMax)
		s.c.subs.rehome(s)
	}
}

// needed reports whether the writer is to go on.
func (s *subscriber) needed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = len(s.channels) > 0
	return s.started
}

// connect makes one connection and serves it until it ends. It reports whether the
// connection ever worked.
func (s *subscriber) connect() (wasUp bool, err error) {
	s.mu.Lock()
	first := s.own
	if e := s.wanted.Front(); first == nil && e != nil {
		first = e.Value.(*channel)
	}
	if first == nil {
		s.mu.Unlock()
		return false, errIdle
	}
	s.mu.Unlock()
	ps, err := s.pubsub(first.key)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	if s.channels[first.name] != first { // forgotten meanwhile: its only watch was closed
		s.mu.Unlock()
		return false, errIdle
	}
	s.generation++
	s.dropped, s.dropErr = make(chan struct{}), nil
	dropped, generation := s.dropped, s.generation
	s.unlistLocked(first)
	s.askLocked(first)
	s.mu.Unlock()

	if err = s.subscribe(s.ctx, ps, first.name); err == nil {
		s.mu.Lock()
		s.askedAt = time.Now() // connecting took its own time
		s.heardAt = s.askedAt
		s.mu.Unlock()
		s.tended = time.Now()
		read := make(chan struct{})
		go func() {
			defer close(read)
			s.read(ps, generation)
		}()
		err = s.write(ps, dropped)
		_ = ps.Close() // ends the reader
		<-read
	} else {
		_ = ps.Close()
	}
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
			err = s.unsubscribe(s.onceMade(), ps, unsubscribe...)
		}
		if err == nil && len(subscribe) > 0 {
			err = s.subscribe(s.onceMade(), ps, subscribe...)
		}
		if err != nil {
			return err
		}
		var due <-chan time.Time
		var timer *time.Timer
		if !next.IsZero() {
			timer = time.NewTimer(time.Until(next))
			due = timer.C
		}
		select {
		case <-s.kick:
		case <-due:
		case <-dropped:
		case <-s.ctx.Done():
		}
		if timer != nil {
			timer.Stop()
		}
		if s.ctx.Err() != nil {
			return errStopped
		}
		select {
		case <-dropped:
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.dropErr
		default:
		}
	}
}

// plan takes the next batches from the lists, and says when to look again at the
// latest (zero: when kicked). An unanswered SUBSCRIBE that is too old is an error: the
// connection is open and dead.
func (s *subscriber) plan() (subscribe, unsubscribe []string, next time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	most := subscribeBatch
	if s.own == nil {
		most = 1 // the channels of one command must be of one slot
		next = s.tended.Add(tendEvery)
	}
	for e := s.unwatched.Front(); e != nil && len(unsubscribe) < most; e = s.unwatched.Front() {
		ch := e.Value.(*channel)
		s.forgetLocked(ch)
		unsubscribe = append(unsubscribe, ch.name)
	}
	if len(unsubscribe) == most {
		next = now // there may be more
	}
	if len(s.channels) == 0 {
		return nil, nil, next, errIdle
	}
	for e := s.refused.Front(); e != nil; e = s.refused.Front() {
		ch := e.Value.(*channel)
		if again := ch.since.Add(refusedRetry); now.Before(again) {
			next = earlier(next, again)
			break
		}
		s.unlistLocked(ch)
		s.enlistLocked(ch, s.wanted)
	}
	for s.asked.Len() == 0 || len(subscribe) > 0 {
		e := s.wanted.Front()
		if e == nil || len(subscribe) == most {
			break
		}
		ch := e.Value.(*channel)
		if ch.alone && len(subscribe) > 0 {
			break
		}
		s.unlistLocked(ch)
		s.askLocked(ch)
		s.askedAt = now
		if subscribe = append(subscribe, ch.name); ch.alone {
			break
		}
	}
	if s.asked.Len() > 0 {
		limit := s.askedAt.Add(max(2*s.c.opt.CommandTimeout, time.Second))
		if !now.Before(limit) {
			return nil, nil, next, ErrNotSubscribed
		}
		next = earlier(next, limit)
	}
	return subscribe, unsubscribe, next, nil
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// down notes the end of a connection: what is watched is wanted again, what is not is
// forgotten, and the change is reported.
func (s *subscriber) down(err error) {
	s.mu.Lock()
	wasUp := s.up
	s.up = false
	s.dropped = nil
	for _, ch := range s.channels {
		s.unlistLocked(ch)
		if len(ch.watches) == 0 && !ch.own {
			s.forgetLocked(ch)
			continue
		}
		ch.state, ch.alone = chWanted, false
		s.enlistLocked(ch, s.wanted)
	}
	s.mu.Unlock()
	if wasUp && s.own != nil && s.c.opt.OnSubscription != nil {
		s.c.opt.OnSubscription(false, err)
	}
}
