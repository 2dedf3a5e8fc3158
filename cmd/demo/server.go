package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/anteroom/anteroom/internal/faultnet"
)

// server is the Redis of a run: the embedded one, or one that the user named.
type server interface {
	// options returns how to connect to it.
	options() *redis.Options
	// outage keeps the server unreachable for d and returns when it is back. errNotPermitted means that nothing
	// happened, because this server does not permit it.
	outage(d time.Duration) error
	close()
}

// errNotPermitted is returned by outage if the user may not pause the server.
var errNotPermitted = errors.New("this user may not pause the server")

// embedded is a miniredis whose clock runs, reached through a socket in a directory of its own: without a port, and
// closed to other users. It is a real socket and not an in-memory pipe, which has no buffer: a publisher would wait,
// holding the server's lock, until the subscriber reads. Safe for concurrent use.
type embedded struct {
	mini   *miniredis.Miniredis
	dir    string
	listen net.Listener
	net    *faultnet.Network // of all clients
	ended  chan struct{}     // closed when accept has ended
}

// newEmbedded starts a server; close ends it.
func newEmbedded() (*embedded, error) {
	dir, err := os.MkdirTemp("", "anteroom-demo-") // readable by us only
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", filepath.Join(dir, "redis"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	e := &embedded{
		mini: miniredis.NewMiniRedis(), dir: dir, listen: l, net: faultnet.New(nil), ended: make(chan struct{}),
	}
	// Without this its keys would never expire by themselves.
	e.mini.ClockTTL(true)
	// The first connection is what starts a server without a listener.
	first, err := e.mini.Dial()
	if err != nil {
		return nil, errors.Join(err, l.Close(), os.RemoveAll(dir))
	}
	_ = first.Close()
	go e.accept()
	return e, nil
}

// accept serves connections until the listener is closed.
func (e *embedded) accept() {
	defer close(e.ended)
	for {
		conn, err := e.listen.Accept()
		if err != nil {
			return
		}
		e.mini.Server().ServeConn(conn)
	}
}

// options returns how to reach the server. Every call returns new options, because a client changes them.
func (e *embedded) options() *redis.Options {
	return &redis.Options{
		Network: "unix",
		Addr:    e.listen.Addr().String(),
		Dialer:  e.net.Dial,
		// The server knows neither of these.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		DisableIdentity:          true,
		// A refused connection is reported immediately: waiting and retrying is the library's own work, which is to be
		// shown. The pool is larger than the number of commands that can fail during an outage, because a pool that
		// has seen that many failures pauses for a second.
		DialerRetries: 1,
		PoolSize:      256,
	}
}

// outage cuts every connection and refuses new ones for d. Nothing in the server is lost, and its clock runs on:
// leases expire meanwhile. A command in flight may have taken effect without its client knowing.
func (e *embedded) outage(d time.Duration) error {
	e.goAway()
	pause(context.Background(), d)
	e.net.Heal()
	return nil
}

func (e *embedded) goAway() {
	e.net.Refuse()
	e.net.CloseAll()
}

// close ends the server and its connections.
func (e *embedded) close() {
	_ = e.listen.Close()
	<-e.ended
	e.mini.Close()
	_ = os.RemoveAll(e.dir)
}

// real is a server that the user named and that may serve others too.
type real struct {
	opts *redis.Options
	rdb  *redis.Client
}

// newReal returns the server behind a redis:// URL. It does not connect.
func newReal(url string) (*real, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		// The URL may contain a password, so the error must not repeat it.
		return nil, fmt.Errorf("--redis: not a URL such as redis://user:password@host:6379/0; %w", errUsage)
	}
	return &real{opts: opts, rdb: redis.NewClient(opts)}, nil
}

// options returns a copy of the URL's options, because a client changes its options.
func (r *real) options() *redis.Options {
	o := *r.opts
	return &o
}

// outage pauses the server for everybody: connections stay open and nothing is answered, the other kind of outage.
// The server ends the pause by itself, so that not even our own death leaves it paused.
func (r *real) outage(d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	if err := r.rdb.Do(ctx, "client", "pause", d.Milliseconds()).Err(); err != nil {
		return fmt.Errorf("%w: %w", errNotPermitted, err)
	}
	pause(context.Background(), d)
	return nil
}

func (r *real) close() { _ = r.rdb.Close() }
