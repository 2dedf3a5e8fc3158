package lettucecompat

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// noDeadline is that of a read or a write that has none.
var noDeadline time.Time

// connect makes a connection of our own, by a copy of the options of the user's client: go-redis dials it with his Dialer, and greets the
// server on it, in RESP2, with the newest of credentials that change. His DialHooks are not to be had.
func (c *Client) connect(ctx context.Context, user *redis.Client, l *logins) (net.Conn, error) {
	opt := *user.Options()
	if err := l.use(&opt); err != nil {
		return nil, err
	}
	opt.Protocol, opt.ReadBufferSize, opt.WriteBufferSize = 2, 1<<10, 1<<10
	opt.ContextTimeoutEnabled, opt.Limiter = true, nil
	opt.PoolSize, opt.MaxActiveConns, opt.MinIdleConns, opt.PipelinePoolSize = 1, 1, 0, -1
	opt.MaxRetries, opt.DialerRetries, opt.ConnMaxIdleTime, opt.ConnMaxLifetime = -1, 1, -1, -1
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opt.ClientSideCacheConfig, opt.ClientSideCache, opt.PushNotificationProcessor, opt.AutoPipelineOptions = nil, nil, nil, nil
	var nc *handed
	dial := opt.Dialer
	opt.Dialer = func(dialing context.Context, network, addr string) (net.Conn, error) {
		if nc != nil {
			return nil, errStale // go-redis dials again
		}
		conn, err := dial(dialing, network, addr)
		if err != nil {
			return nil, err
		}
		nc = &handed{Conn: conn, stop: context.AfterFunc(ctx, func() { _ = conn.Close() })}
		return nc, nil
	}
	rdb := redis.NewClient(&opt)
	rdb.AddHook(quietDial{})
	err := rdb.Ping(ctx).Err()
	if err == nil {
		nc.ours.Store(true)
	}
	_ = rdb.Close()
	switch {
	case err != nil:
		return nil, err
	case !nc.stop():
		return nil, context.Cause(ctx)
	}
	if err := nc.SetDeadline(noDeadline); err != nil {
		_ = nc.Conn.Close()
		return nil, err
	}
	return nc.Conn, nil
}

// handed is a connection that go-redis does not close once it is ours.
type handed struct {
	net.Conn
	stop func() bool // false: it was closed, since nobody waits for it any more
	ours atomic.Bool
}

func (h *handed) Close() error {
	if h.ours.Load() {
		return nil
	}
	return h.Conn.Close()
}
