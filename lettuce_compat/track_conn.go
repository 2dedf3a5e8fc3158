package lettucecompat

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// trackRefusal is why a server cannot be asked to track, until somebody changes it.
type trackRefusal struct{ err error }

func (e *trackRefusal) Error() string { return "tracking is refused: " + e.err.Error() }
func (e *trackRefusal) Unwrap() error { return e.err }

var (
	errTrackEnded  = errors.New("the tracking connection has ended")
	errTrackSilent = errors.New("the tracking connection has not answered in time")
	errTrackType   = errors.New("a client of this type has no options: pass a *redis.Client or a *redis.ClusterClient")
	errTrackOld    = errors.New("the server does not speak RESP3")
)

// trackConn is one connection for which Redis tracks keys. The tracker's goroutine writes and awaits replies, and another one reads.
type trackConn struct {
	nc    net.Conn
	ended chan struct{} // closed when nothing more comes
	out   []byte        // to be written
	full  chan struct{} // cap 1: as many replies have come as are awaited

	// Guarded by tracking.mu; replies of who asks once full is signalled.
	awaited int
	replies []any
}

// connect makes the connection to the tracker's master, in several round trips.
func (t *tracker) connect() (*trackConn, error) {
	ctx, cancel := context.WithTimeout(t.ctx, t.c.patience())
	defer cancel()
	user, err := t.user(ctx)
	if err != nil {
		return nil, err
	}
	nc, err := t.c.connect(ctx, user, &t.logins)
	if err != nil {
		return nil, err
	}
	c := &trackConn{nc: nc, ended: make(chan struct{}), full: make(chan struct{}, 1)}
	t.wg.Go(func() { c.receive(t) })
	if err := c.begin(t); err != nil {
		_ = nc.Close()
		return nil, err
	}
	return c, nil
}

// user returns the client whose options lead to the tracker's master.
func (t *tracker) user(ctx context.Context) (*redis.Client, error) {
	if t.c.route != nil {
		t.mu.Lock()
		var some *Tracked
		for _, some = range t.held {
			break
		}
		t.mu.Unlock()
		if some == nil {
			return nil, errNoMaster
		}
		return t.c.route(ctx, some.Key)
	}
	if user, is := t.c.rdb.(*redis.Client); is && !t.c.hidden.Load() {
		return user, nil
	}
	return nil, &trackRefusal{errTrackType}
}

// begin has Redis track what is read, and push in RESP3: in RESP2 a server takes the command, and pushes nothing.
func (c *trackConn) begin(t *tracker) error {
	c.add("hello", "3")
	c.add("client", "tracking", "on")
	replies, err := c.ask(t, 2)
	if err != nil {
		return err
	}
	_, old := replies[0].(error)
	refused, _ := replies[1].(error)
	switch {
	case Permanent(refused):
		return &trackRefusal{refused}
	case refused == nil && old:
		return &trackRefusal{errTrackOld}
	}
	return refused
}

// exist asks whether the fields are there: a reply is 1, 0, or an error.
func (c *trackConn) exist(t *tracker, some []*Tracked) ([]any, error) {
	for _, e := range some {
		c.add("hexists", e.Key, e.Field)
	}
	return c.ask(t, len(some))
}

// ping finds a connection that is dead.
func (c *trackConn) ping(t *tracker) error {
	c.add("ping")
	_, err := c.ask(t, 1)
	return err
}

// add puts a command among those to be written.
func (c *trackConn) add(args ...string) {
	c.out = appendHeader(c.out, len(args))
	for _, a := range args {
		c.out = appendArg(c.out, a)
	}
}

// ask writes what was added, and returns the replies, which are valid until the next call. An error ends the connection.
func (c *trackConn) ask(t *tracker, n int) (replies []any, err error) {
	t.mu.Lock()
	c.awaited, c.replies = n, c.replies[:0]
	t.mu.Unlock()
	limit := t.c.opt.CommandTimeout
	_ = c.nc.SetWriteDeadline(time.Now().Add(limit))
	_, err = c.nc.Write(c.out)
	if c.out = c.out[:0]; err != nil {
		return nil, err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.full:
		return c.replies, nil
	case <-timer.C:
		return nil, errTrackSilent
	case <-c.ended:
		return nil, errTrackEnded
	case <-t.ctx.Done():
		return nil, t.ctx.Err()
	}
}

// receive takes in what comes, until the connection ends.
func (c *trackConn) receive(t *tracker) {
	defer close(c.ended)
	defer c.nc.Close()
	for in := newInbox(resp3); ; {
		err := in.read(c.nc)
		bad := c.take(t, &in)
		if err != nil || bad != nil {
			return
		}
	}
}

// take takes in pushes, and replies. An error: the rest cannot be understood.
func (c *trackConn) take(t *tracker, in *inbox) error {
	for {
		v, err := in.next()
		switch {
		case v == nil:
			return err
		case v[0] == '>':
			t.pushed(v)
		default:
			reply, _ := value(v)
			if err := c.took(t, reply); err != nil {
				return err
			}
		}
	}
}

// took takes in a reply.
func (c *trackConn) took(t *tracker, reply any) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(c.replies) == c.awaited { // nobody has asked
		return errReply
	}
	if c.replies = append(c.replies, reply); len(c.replies) == c.awaited {
		signal(c.full)
	}
	return nil
}
