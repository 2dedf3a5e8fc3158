package lettucecompat

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// trackRefusal is why a server cannot be asked to track, until somebody changes it.
type trackRefusal struct{ err error }

func (e *trackRefusal) Error() string { return "tracking is refused: " + e.err.Error() }
func (e *trackRefusal) Unwrap() error { return e.err }

var (
	errTrackEnded  = errors.New("the tracking connection has ended")
	errTrackType   = errors.New("a client of this type has no options: pass a *redis.Client or a *redis.ClusterClient")
	errTrackOld    = errors.New("the server does not speak RESP3")
	errTrackFormat = errors.New("no RESP3")
)

// trackConn is one connection that Redis tracks. go-redis makes it, from a copy of the options of the user's client, and
// speaks on it. It shows what Redis pushes only when something is asked, so a goroutine takes the pushes out, and hands
// on the rest.
type trackConn struct {
	rdb   *redis.Client
	ended chan struct{} // closed when nothing more comes
	resp3 atomic.Bool   // the server has answered HELLO 3

	// Guarded by tracking.mu.
	used bool // it was dialed, or must not be any more
	conn net.Conn
}

// connect makes the connection to the tracker's master, in several round trips.
func (t *tracker) connect() (*trackConn, error) {
	ctx, cancel := context.WithTimeout(t.ctx, t.c.patience())
	defer cancel()
	user, err := t.user(ctx)
	if err != nil {
		return nil, err
	}
	c := &trackConn{ended: make(chan struct{})}
	opt := lone(user)
	dial, hello := opt.Dialer, opt.OnConnect
	opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		mine, theirs := net.Pipe()
		t.mu.Lock()
		defer t.mu.Unlock()
		if c.used { // go-redis dials again, or late
			_ = conn.Close()
			return nil, errTrackEnded
		}
		c.used, c.conn = true, conn
		t.wg.Go(func() { c.receive(conn, mine, t.pushed) })
		return &tappedConn{conn, theirs}, nil
	}
	opt.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
		if hello != nil {
			if err := hello(ctx, conn); err != nil {
				return err
			}
		}
		err := conn.ClientTrackingOn(ctx, nil).Err()
		switch {
		case Permanent(err):
			return dialError{&trackRefusal{err}}
		case err == nil && !c.resp3.Load(): // a full server refuses HELLO, too, but then err is not nil
			return dialError{&trackRefusal{errTrackOld}}
		}
		return err
	}
	opt.Protocol = 3
	c.rdb = redis.NewClient(&opt)
	c.rdb.AddHook(quietDial{})
	if err := c.rdb.Ping(ctx).Err(); err != nil {
		c.close(t)
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

// close ends receive, too, at whatever stage go-redis has the connection.
func (c *trackConn) close(t *tracker) {
	t.mu.Lock()
	c.used = true
	conn := c.conn
	t.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
	}
	_ = c.rdb.Close()
}

// exist asks whether the fields are there.
func (c *trackConn) exist(t *tracker, some []*Tracked) ([]*redis.BoolCmd, error) {
	ctx, cancel := context.WithTimeout(t.ctx, t.c.opt.CommandTimeout)
	defer cancel()
	cmds := make([]*redis.BoolCmd, len(some))
	_, err := c.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, e := range some {
			cmds[i] = p.HExists(ctx, e.Key, e.Field)
		}
		return nil
	})
	if _, answer := errors.AsType[redis.Error](err); answer {
		err = nil // of one command, which has it
	}
	return cmds, err
}

// ping finds a connection that is dead.
func (c *trackConn) ping(t *tracker) error {
	ctx, cancel := context.WithTimeout(t.ctx, t.c.opt.CommandTimeout)
	defer cancel()
	return c.rdb.Ping(ctx).Err()
}

// receive hands on what comes from Redis to go-redis, and pushes to pushed, until either side ends.
func (c *trackConn) receive(from, to net.Conn, pushed func(keys [][]byte)) {
	defer close(c.ended)
	defer from.Close()
	defer to.Close()
	for r := bufio.NewReader(from); ; {
		f := frame{r: r}
		kind, err := f.value(0)
		switch {
		case err != nil:
			return
		case kind == '>':
			if len(f.texts) > 0 && string(f.texts[0]) == "invalidate" {
				pushed(f.texts[1:]) // none after FLUSHALL
			}
		default:
			if kind == '%' {
				c.resp3.Store(true)
			}
			if _, err := to.Write(f.raw); err != nil {
				return
			}
		}
	}
}

// tappedConn is what go-redis has of the connection: it writes to Redis, and reads what receive hands on.
type tappedConn struct {
	net.Conn
	rest net.Conn
}

func (c *tappedConn) Read(p []byte) (int, error)        { return c.rest.Read(p) }
func (c *tappedConn) SetReadDeadline(t time.Time) error { return c.rest.SetReadDeadline(t) }
func (c *tappedConn) SetDeadline(t time.Time) error {
	return errors.Join(c.rest.SetReadDeadline(t), c.Conn.SetWriteDeadline(t))
}
func (c *tappedConn) Close() error { return errors.Join(c.rest.Close(), c.Conn.Close()) }

// frame is one value in RESP3.
type frame struct {
	r     *bufio.Reader
	raw   []byte
	texts [][]byte // the strings in it, in order
}

// value reads a value, in depth others, and returns its first byte. The other side may be anybody: see resp.go.
func (f *frame) value(depth int) (kind byte, err error) {
	line, err := f.r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 3 || depth > maxDepth || len(f.raw) > maxReply {
		return 0, errTrackFormat
	}
	f.raw, kind = append(f.raw, line...), line[0]
	n, _ := strconv.Atoi(string(line[1 : len(line)-2])) // which only those below have
	switch kind {
	case '$', '=', '!':
		if n >= 0 {
			err = f.text(n)
		}
	case '*', '~', '>', '%', '|':
		if n > maxElements {
			return 0, errTrackFormat
		}
		if kind == '%' || kind == '|' {
			n *= 2
		}
		for ; n > 0 && err == nil; n-- {
			_, err = f.value(depth + 1)
		}
	}
	return kind, err
}

// text reads a string of n bytes. Memory is made for what has come.
func (f *frame) text(n int) error {
	if n > maxReply {
		return errTrackFormat
	}
	from := len(f.raw)
	for left := n + len("\r\n"); left > 0; {
		some := min(left, spareRoom)
		f.raw = append(f.raw, make([]byte, some)...)
		if _, err := io.ReadFull(f.r, f.raw[len(f.raw)-some:]); err != nil {
			return err
		}
		left -= some
	}
	f.texts = append(f.texts, f.raw[from:from+n])
	return nil
}
