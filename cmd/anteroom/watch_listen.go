package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// A connection that has been silent for pingEvery is pinged, and one that has been silent for patience is given up.
// go-redis itself never gives one up: it sends its pings and does not wait for answers.
const (
	pingEvery = 5 * time.Second
	patience  = 15 * time.Second
)

// Bounds of the pause between two attempts to connect.
const (
	minPause = 100 * time.Millisecond
	maxPause = 2 * time.Second
)

// errSilent is why a connection was given up.
var errSilent = errors.New("no sign of life from Redis")

// listener receives the messages of all channels that match a pattern, over one connection after the other. It
// subscribes only by patterns: before a hand-off a process asks how many clients are subscribed to the channel, and
// would count this one as a waiter.
type listener struct {
	rdb            redis.UniversalClient
	patterns       []string
	ping, patience time.Duration
	length         time.Duration // from the first confirmation to the end, 0 for no limit
	report         *reporter

	end       context.CancelFunc // of run
	confirmed bool               // at least once
	lost      time.Time          // when the last connection ended; zero while there is one
}

// run listens until ctx ends, which is not an error. Before the first confirmation every failure ends it, because the
// address may be wrong; afterwards only a refusal does, or the reporter. The context gets no deadline for the length:
// go-redis would apply it to the connection, which would then end first and seem lost.
func (l *listener) run(ctx context.Context) error {
	ctx, l.end = context.WithCancel(ctx)
	defer l.end()
	for wait := minPause; ; wait = min(2*wait, maxPause) {
		began := time.Now()
		err := l.listen(ctx)
		var over *overError
		switch {
		case errors.As(err, &over):
			return over.err
		case ctx.Err() != nil:
			return nil
		case lettucecompat.Permanent(err) || !l.confirmed:
			return unanswered(err)
		}
		if l.lost.IsZero() {
			wait, l.lost = minPause, time.Now()
			if err := l.report.disconnected(err); err != nil {
				return err
			}
		}
		pause(ctx, wait-time.Since(began))
	}
}

// pause sleeps for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// overError carries the reporter's error through listen, where it must not be taken for an error of the connection.
type overError struct{ err error }

func (e *overError) Error() string { return e.err.Error() }

// listen opens a connection and reports what arrives on it, until it ends. The connection is then closed, and all
// goroutines of this call have ended.
func (l *listener) listen(ctx context.Context) error {
	ps := l.rdb.Subscribe(ctx) // to nothing yet, and without I/O
	var silent atomic.Bool
	heard := newMoment()
	ended := make(chan struct{})
	var guard sync.WaitGroup
	guard.Go(func() {
		silent.Store(l.guard(ctx, ps, heard, ended))
		_ = ps.Close() // wakes the reader
	})
	err := l.read(ctx, ps, heard)
	close(ended)
	guard.Wait()
	if silent.Load() {
		return fmt.Errorf("%w for %v", errSilent, l.patience)
	}
	return err
}

// guard returns when the connection has been silent for too long (true), or when ctx or the reading has ended.
func (l *listener) guard(ctx context.Context, ps *redis.PubSub, heard *moment, ended <-chan struct{}) bool {
	tick := time.NewTicker(l.ping)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-ended:
			return false
		case <-tick.C:
			switch still := heard.ago(); {
			case still >= l.patience:
				return true
			case still >= l.ping/2:
				_ = ps.Ping(ctx) // a failure shows as silence, or in the reading
			}
		}
	}
}

// read subscribes and forwards what arrives.
func (l *listener) read(ctx context.Context, ps *redis.PubSub, heard *moment) error {
	if err := ps.PSubscribe(ctx, l.patterns...); err != nil {
		return err
	}
	for {
		m, err := ps.Receive(ctx)
		if err != nil {
			return err
		}
		heard.pause()
		switch m := m.(type) {
		case *redis.Subscription:
			if m.Channel == l.patterns[len(l.patterns)-1] { // all are confirmed
				err = l.subscribed()
			}
		case *redis.Message:
			err = l.report.heard(slices.Index(l.patterns, m.Pattern), m.Channel, m.Payload)
		}
		if err != nil {
			return &overError{err}
		}
		heard.now()
	}
}

// subscribed handles the server's confirmation of the subscription.
func (l *listener) subscribed() error {
	var missed time.Duration
	if !l.confirmed && l.length > 0 {
		time.AfterFunc(l.length, l.end)
	}
	if l.confirmed {
		missed = 1 // go-redis has reconnected by itself; how long that took is unknown
		if !l.lost.IsZero() {
			missed = time.Since(l.lost)
		}
	}
	l.confirmed, l.lost = true, time.Time{}
	return l.report.subscribed(strings.Join(l.patterns, " "), missed)
}

// moment is when something last happened. Safe for concurrent use.
type moment struct {
	start time.Time
	since atomic.Int64 // time since start; paused: it is happening
}

const paused = math.MaxInt64

func newMoment() *moment { return &moment{start: time.Now()} }

func (m *moment) now() { m.since.Store(int64(time.Since(m.start))) }

// pause makes it last until now is called: a reader of the output that pauses is no silence of Redis.
func (m *moment) pause() { m.since.Store(paused) }

func (m *moment) ago() time.Duration {
	return max(time.Since(m.start)-time.Duration(m.since.Load()), 0)
}
