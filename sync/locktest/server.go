package locktest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	miniserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/anteroom/anteroom/internal/faultnet"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

const (
	// port appears in addresses and errors; nothing listens there.
	port = 6379

	// controlTimeout bounds one command of TakeBy and Lose. In memory a command takes that long only on a machine
	// that hardly runs.
	controlTimeout = 10 * time.Second

	// closeTimeout bounds how long Stop waits for releases in flight. A clean-up retries within 1.25 s, and the
	// server is up by then.
	closeTimeout = 2 * time.Second
)

// server is the embedded Redis with its connections. The Managers reach it through a gate, which Down closes; TakeBy
// and Lose bypass the gate (control), so they work in either state.
type server struct {
	mini    *miniredis.Miniredis
	gate    *faultnet.Gate // to mini; nothing to do with Down
	control *redis.Client
	foreign *lettucecompat.Client // on control; the holder of TakeBy's locks
	said    atomic.Uint64         // commands of that client, each of which has a number of its own

	processes atomic.Uint64 // number of Another calls, for the log

	mu           sync.Mutex // a leaf
	down         bool
	conns        map[*conn]struct{} // open connections of the Managers
	managers     []*attached
	lossReported chan struct{}   // closed, and replaced, whenever a Manager has reported a loss
	dropped      []observe.Event // losses by leak, of all Managers
	stopped      bool
}

// attached is one Manager on the server.
type attached struct {
	m   *anteroom.Manager
	rdb *redis.Client
}

func newServer() (*server, error) {
	s := &server{
		mini: miniredis.NewMiniRedis(), conns: map[*conn]struct{}{}, lossReported: make(chan struct{}),
	}
	s.gate = faultnet.NewGate(s.mini)
	s.mini.ClockTTL(true)
	c, err := s.mini.Dial() // starts the server
	if err != nil {
		return nil, err
	}
	_ = c.Close()
	s.mini.Server().SetPreHook(track)
	s.control = s.client(func() (net.Conn, error) { return s.pipe(func(*conn) {}) })
	s.foreign, err = lettucecompat.New(s.control, lettucecompat.Options{
		ClientID: OtherClient, CommandTimeout: controlTimeout,
	})
	return s, err
}

// track answers CLIENT TRACKING, which miniredis does not know, so that a hold that lasts warns of nothing. No push follows: a
// removal is noticed by the watchdog and by renewals.
func track(c *miniserver.Peer, cmd string, args ...string) (answered bool) {
	if !strings.EqualFold(cmd, "CLIENT") || len(args) == 0 || !strings.EqualFold(args[0], "TRACKING") {
		return false
	}
	c.WriteOK()
	return true
}

// pipe opens a connection to the server. There is no listener: a goroutine that accepts on a real socket would keep
// virtual time from passing.
func (s *server) pipe(drop func(*conn)) (*conn, error) {
	c, err := s.gate.Dial(context.Background(), "memory", "")
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, drop: drop}, nil
}

// dial is the dialer of the Managers' clients. It opens the connection before it knows whether it is refused: nothing
// is called while mu is held, and Down and Stop must not miss a connection.
func (s *server) dial() (net.Conn, error) {
	c, err := s.pipe(s.drop)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	refuse := s.down
	if !refuse {
		s.conns[c] = struct{}{}
	}
	s.mu.Unlock()
	if refuse {
		_ = c.Close()
		return refusedConn{c}, nil
	}
	return c, nil
}

func (s *server) drop(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// client returns a go-redis client that works in virtual time. A name instead of the numeric address, or maintenance
// notifications, would make go-redis resolve a name in goroutines that outlive a bubble.
func (s *server) client(dial func() (net.Conn, error)) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:                     fmt.Sprintf("127.0.0.1:%d", port),
		Dialer:                   func(context.Context, string, string) (net.Conn, error) { return dial() },
		ContextTimeoutEnabled:    true,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		MaxRetries:               -1, // go-redis' own retries of a handshake would sleep
		PoolSize:                 64, // not by the number of processors, so that tests are the same everywhere
	})
}

// attach creates a Manager on the server.
func (s *server) attach(cfg anteroom.Config) (*anteroom.Manager, error) {
	cfg.Observer = s.witness(cfg.Observer)
	cfg.RecordCallSites, cfg.OnEvent = true, s.onEvent(cfg.OnEvent) // for leaks
	rdb := s.client(s.dial)
	m, err := anteroom.NewManager(rdb, cfg)
	if err != nil {
		_ = rdb.Close()
		return nil, err
	}
	s.mu.Lock()
	s.managers = append(s.managers, &attached{m, rdb})
	s.mu.Unlock()
	return m, nil
}

// witness returns the user's Observer, with a hook that notes when a Manager has reported a loss: after the holder's
// contexts have ended.
func (s *server) witness(users *observe.Observer) *observe.Observer {
	var o observe.Observer
	if users != nil {
		o = *users
	}
	lost := o.Lost
	o.Lost = func(class string, reason observe.LossReason) {
		if lost != nil {
			lost(class, reason)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.lossReported)
		s.lossReported = make(chan struct{})
	}
	return &o
}

// setDown cuts every connection and refuses new ones, or ends that.
func (s *server) setDown(down bool) {
	s.mu.Lock()
	s.down = down
	var cut []*conn
	if down {
		for c := range s.conns {
			cut = append(cut, c)
		}
	}
	s.mu.Unlock()
	for _, c := range cut {
		_ = c.Close()
	}
}

// stop ends everything, and returns the locks that are still held, as text, and the errors of Close; further calls have
// no effect. The server is up meanwhile, so that pending releases need not wait for the end of their leases. Nobody is
// waited for where a lock is leaked.
func (s *server) stop() (left []string, errs []error) {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return nil, nil
	}
	s.stopped = true
	managers := s.managers
	s.mu.Unlock()
	s.setDown(false)
	patience := closeTimeout
	if left = s.awaitLeft(); len(left) > 0 {
		patience = 0
	}
	for _, a := range managers {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		errs = append(errs, a.m.Close(ctx), a.rdb.Close())
		cancel()
	}
	s.foreign.Close()
	errs = append(errs, s.control.Close())
	s.setDown(true)
	s.gate.Close() // an abandoned command may still be dialing
	return left, errs
}
