package conformance

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// On a busy machine these are longer, up to five times.
var (
	stretched = min(pace.Scale(time.Second), 5*time.Second)
	// lease is so long that a machine that stalls for a second loses no lock.
	lease = 3 * stretched
	// commandTimeout is C of docs/guarantees.md.
	commandTimeout = stretched
	// watch is W of docs/guarantees.md in the behaviours about losses.
	watch = stretched
)

const (
	// long is a lease that is irrelevant to the behaviour.
	long = 30 * time.Second
	// patience bounds what must happen and is not timed. It is longer than what a command without an answer may leave on a
	// busy machine, a lease and a command timeout.
	patience = pace.Hang
	// fencePrefix is the prefix of the keys that remain on purpose.
	fencePrefix = "anteroom:fence:"
	linePrefix  = "anteroom:line:"
)

// stage is the environment of a behaviour. Its methods end the test if they fail, so they are for the test's own
// goroutine, unless stated otherwise.
type stage struct {
	*testing.T
	d    Deployment
	name string // of the clients, and part of the keys

	owned    map[string]bool // keys without the stage's name
	managers []*anteroom.Manager
	clients  []redis.UniversalClient
	closed   bool
}

// key returns a key that only this stage uses.
func (s *stage) key(name string) string { return s.name + ":" + name }

// own returns a key unchanged, and records that this stage uses it.
func (s *stage) own(key string) string {
	s.owned[key] = true
	return key
}

// client returns a client that is closed with the stage.
func (s *stage) client() redis.UniversalClient {
	c := s.d.Client(s.name)
	s.clients = append(s.clients, c)
	return c
}

// manager returns a Manager with a client of its own, like another process, and the number of its renewals.
func (s *stage) manager() (m *anteroom.Manager, renewals *atomic.Int64) {
	s.Helper()
	renewals = &atomic.Int64{}
	m, err := anteroom.NewManager(s.client(), anteroom.Config{
		CommandTimeout: commandTimeout, Logger: slog.New(slog.DiscardHandler),
		Observer: &observe.Observer{Renewed: func(_ string, o observe.Outcome, _ time.Duration) {
			if o == observe.OutcomeRenewed {
				renewals.Add(1)
			}
		}},
	})
	s.ok(err)
	s.managers = append(s.managers, m)
	return m, renewals
}

// mutex returns a lock of m; cfg has everything but the lease, which is long unless set.
func (s *stage) mutex(m *anteroom.Manager, cfg anteroom.LockConfig) *anteroom.Mutex {
	s.Helper()
	if cfg.LeaseTime == 0 {
		cfg.LeaseTime = long
	}
	mu, err := m.NewMutex(cfg)
	s.ok(err)
	return mu
}

// acquire acquires mu, which must succeed within patience.
func (s *stage) acquire(mu *anteroom.Mutex, opts ...anteroom.AcquireOption) *anteroom.Hold {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	h, err := mu.Acquire(ctx, opts...)
	s.ok(err)
	return h
}

// acquired acquires mu on a goroutine of its own and delivers the result.
func (s *stage) acquired(mu *anteroom.Mutex) <-chan grant {
	got := make(chan grant, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		h, err := mu.Acquire(ctx)
		got <- grant{hold: h, at: time.Now(), err: err}
	}()
	return got
}

// grant is a result of acquired.
type grant struct {
	hold *anteroom.Hold
	at   time.Time
	err  error
}

// take waits for a result, which must be a grant.
func (s *stage) take(c <-chan grant) grant {
	s.Helper()
	g := <-c
	s.ok(g.err)
	return g
}

// refused checks that mu cannot be acquired, because another holds it.
func (s *stage) refused(mu *anteroom.Mutex) {
	s.Helper()
	h, err := mu.TryAcquire(s.Context())
	for tries := 1; errors.Is(err, anteroom.ErrUnavailable) && tries < 5; tries++ { // a busy machine
		h, err = mu.TryAcquire(s.Context())
	}
	if !errors.Is(err, anteroom.ErrNotAcquired) {
		s.Fatalf("a lock that another holds: %v, %v", h, err)
	}
}

func (s *stage) release(h *anteroom.Hold) {
	s.Helper()
	err := h.Release(s.Context())
	if errors.Is(err, anteroom.ErrLost) && pace.Factor() > 2 { // the first lease is of two seconds, whatever the machine
		s.Log("on a loaded machine: ", err)
		return
	}
	s.ok(err)
}

func (s *stage) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) is(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("%v, want %v", err, want)
	}
}

// until waits until f is true.
func (s *stage) until(what string, f func() bool) {
	s.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		if time.Now().After(deadline) {
			s.Fatalf("not within %v: %s", patience, what)
		}
		<-tick.C
	}
}

// atMost checks that what took no longer than bound, and slack for the machine, which a busy one stretches.
func (s *stage) atMost(what string, took, bound, slack time.Duration) {
	s.Helper()
	if !pace.Within(took, bound+slack) {
		s.Fatalf("%s took %v, bound %v", what, took, bound)
	}
}

// stands reports whether one client waits in line for key, and hears when it is called.
func (s *stage) stands(key string) bool {
	s.Helper()
	info, err := s.managers[0].Inspect(s.Context(), key)
	s.ok(err)
	return info.InLine == 1 && s.hears(info.First)
}

// hears reports whether a client is subscribed to its own channel.
func (s *stage) hears(client string) bool {
	channel := "anteroom:client:" + client
	for _, c := range s.d.Nodes {
		if c.PubSubNumSub(s.Context(), channel).Val()[channel] > 0 {
			return true
		}
	}
	return false
}

// nothingLeft closes the stage and checks that nothing remains, neither in the Managers nor on a server.
func (s *stage) nothingLeft() {
	s.Helper()
	for _, m := range s.managers {
		s.until("every key is forgotten", func() bool { return len(m.Snapshot()) == 0 })
	}
	ids := s.close()
	s.until("no connection is left", func() bool { return s.connections() == 0 })
	for _, c := range s.d.Nodes {
		// A server may notice the end of a connection later than its client.
		s.until("no subscription is left", func() bool { return len(s.channels(c, ids)) == 0 })
	}
	for _, c := range s.d.Masters() {
		left := func(lines bool) (keys []string) {
			for key := range s.keys(c) {
				if (strings.Contains(key, s.name) || s.owned[key]) && !strings.HasPrefix(key, fencePrefix) &&
					strings.HasPrefix(key, linePrefix) == lines {
					keys = append(keys, key)
				}
			}
			return keys
		}
		for _, key := range left(false) {
			s.Errorf("the key %.100q is left", key)
		}
		// One that counts the turns beside somebody who listened for a release lives for a second more.
		s.until("no line is left", func() bool { return len(left(true)) == 0 })
	}
}

// connections counts the open connections of the stage's clients.
func (s *stage) connections() (n int) {
	for _, c := range s.d.Nodes {
		for line := range strings.Lines(c.ClientList(s.Context()).Val()) {
			if strings.Contains(line, " name="+s.name+" ") {
				n++
			}
		}
	}
	return n
}

// channels returns the channels to which clients of this stage are subscribed. ids are those of its Managers.
func (s *stage) channels(c *redis.Client, ids map[string]bool) (list []string) {
	s.Helper()
	all, err := c.PubSubChannels(context.Background(), "*").Result()
	s.ok(err)
	for _, channel := range all {
		key := strings.TrimPrefix(channel, "lock:release:")
		if strings.Contains(key, s.name) || s.owned[key] || ids[strings.TrimPrefix(channel, "anteroom:client:")] {
			list = append(list, channel)
		}
	}
	return list
}

// keys returns all keys of a server.
func (s *stage) keys(c *redis.Client) map[string]bool {
	s.Helper()
	keys := map[string]bool{}
	it := c.Scan(context.Background(), 0, "*", 1000).Iterator()
	for it.Next(context.Background()) {
		keys[it.Val()] = true
	}
	s.ok(it.Err())
	return keys
}

// close closes Managers and clients, and returns the Managers' client ids.
func (s *stage) close() map[string]bool {
	ids := map[string]bool{}
	if s.closed {
		return ids
	}
	s.closed = true
	for _, m := range s.managers {
		ids[m.ClientID()] = true
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		if s.Failed() {
			cancel() // a failed behaviour may have left a hold
		}
		if err := m.Close(ctx); err != nil && !s.Failed() {
			s.Errorf("Close: %v", err)
		}
		cancel()
	}
	for _, c := range s.clients {
		_ = c.Close()
	}
	return ids
}
