package lettucecompat

import (
	"context"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// noDeadline is that of a read or a write that has none.
var noDeadline time.Time

// failoverAddr is what go-redis calls the address of a master that Sentinel names.
const failoverAddr = "FailoverClient"

// mostHooked is how many commands, beside those that keep what is held, are in the hooks of the user's client at a time.
const mostHooked = 1024

// followEvery is the least time between two questions where the master is.
const followEvery = time.Second

// direct is the way of scripts to the only server, on connections of ours. The hooks of the user's client see them as they see a
// command of his: a *redis.Conn of it has a copy of them, and ours as the innermost, where go-redis would take a connection out of its
// pool. So that takes none. Hooks that are added to the client after the first command see only what go-redis sends.
type direct struct {
	user *redis.Client
	bare *redis.Client // of the same pool, without hooks
	// hookless: nothing of the user's sees the commands, neither hooks nor a Limiter. It is found out by the first one.
	hookless, asked atomic.Bool
	via             atomic.Pointer[redis.Conn] // with the hooks; nil before the first command
	*node

	followed atomic.Int64 // when the master was asked for, in nanoseconds

	// Of a client whose credentials change; guarded by credentialsMu.
	credentialsMu sync.Mutex
	credentials   auth.Credentials // the newest; nil: none yet
	unlisten      auth.UnsubscribeFunc
	ended         bool
}

func newDirect(c *Client, user *redis.Client) *direct {
	d := &direct{user: user, bare: user.WithTimeout(user.Options().ReadTimeout)}
	d.node = newNode(c, d.connect)
	d.lasts, d.idles = user.Options().ConnMaxLifetime, user.Options().ConnMaxIdleTime
	if user.Options().Addr == failoverAddr && (d.idles <= 0 || d.idles > followEvery) {
		d.idles = followEvery // see follow
	}
	return d
}

// hooked returns what sends a script through the hooks.
func (d *direct) hooked() *redis.Conn {
	if via := d.via.Load(); via != nil {
		return via
	}
	via := d.user.Conn()
	via.AddHook(innermost{d})
	if !d.via.CompareAndSwap(nil, via) {
		_ = via.Close()
	}
	return d.via.Load()
}

// innermost is the hook that sends.
type innermost struct{ d *direct }

func (h innermost) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h innermost) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h innermost) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		ours, is := cmd.(*redisCmd)
		if !is || ours.script == nil { // a hook sends another command
			return h.d.bare.Process(ctx, cmd)
		}
		if said := ours.said.Load(); said != nil { // or it once more
			return *said
		}
		if !h.d.asked.Load() {
			h.d.askForHooks()
		}
		limiter := h.d.user.Options().Limiter
		if limiter != nil {
			if err := limiter.Allow(); err != nil {
				return err
			}
		}
		answered, err := h.d.send(ctx, ours)
		ours.ended.Store(&err)
		if answered {
			ours.said.Store(&err)
		}
		if limiter != nil {
			limiter.ReportResult(err)
		}
		return err
	}
}

// askForHooks looks at who has called the innermost hook: go-redis itself, if there is no other.
func (d *direct) askForHooks() {
	defer d.asked.Store(true)
	var callers [8]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	for frame, more := frames.Next(); more; frame, more = frames.Next() {
		if strings.HasSuffix(frame.Function, ".innermost.ProcessHook.func1") {
			frame, _ = frames.Next()
			d.hookless.Store(d.user.Options().Limiter == nil && strings.HasSuffix(frame.Function, "/go-redis/v9.(*hooksMixin).processHook"))
			return
		}
	}
}

func (d *direct) send(ctx context.Context, cmd *redisCmd) (answered bool, err error) {
	if d.user.Options().Addr == failoverAddr {
		d.follow()
	}
	return d.do(ctx, cmd)
}

// lone is a copy of the options of the user's client, for a client that has one connection: nothing is retried or kept.
func lone(user *redis.Client) redis.Options {
	opt := *user.Options()
	opt.ContextTimeoutEnabled, opt.Limiter = true, nil
	opt.PoolSize, opt.MaxActiveConns, opt.MinIdleConns, opt.PipelinePoolSize = 1, 1, 0, -1
	opt.MaxRetries, opt.DialerRetries, opt.ConnMaxIdleTime, opt.ConnMaxLifetime = -1, 1, -1, -1
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opt.ClientSideCacheConfig, opt.ClientSideCache, opt.PushNotificationProcessor, opt.AutoPipelineOptions = nil, nil, nil, nil
	return opt
}

// connect makes a connection: go-redis dials it with the user's Dialer, and greets the server on it. Then it is ours.
func (d *direct) connect(ctx context.Context) (net.Conn, error) {
	opt := lone(d.user)
	if opt.StreamingCredentialsProvider != nil { // go-redis would greet again, on a connection that is ours
		c, err := d.listen()
		if err != nil {
			return nil, err
		}
		opt.StreamingCredentialsProvider = nil
		opt.CredentialsProviderContext = func(context.Context) (string, string, error) {
			name, password := c.BasicAuth()
			return name, password, nil
		}
	}
	opt.Protocol, opt.ReadBufferSize, opt.WriteBufferSize = 2, 1<<10, 1<<10
	var nc *handed
	dial := opt.Dialer
	opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if nc != nil {
			return nil, errStale // go-redis dials again
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		nc = &handed{Conn: conn}
		return nc, nil
	}
	rdb := redis.NewClient(&opt)
	rdb.AddHook(quietDial{})
	err := rdb.Ping(ctx).Err()
	if err == nil {
		nc.ours.Store(true)
	}
	_ = rdb.Close()
	if err != nil {
		return nil, err
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
	ours atomic.Bool
}

func (h *handed) Close() error {
	if h.ours.Load() {
		return nil
	}
	return h.Conn.Close()
}

// follow asks, not too often, where a new connection would lead. Sentinel may have named another master while the old one, which is cut
// off from it, still answers us: go-redis leaves that immediately, and so must we.
func (d *direct) follow() {
	last, now := d.followed.Load(), time.Now().UnixNano()
	if now-last < int64(followEvery) || !d.followed.CompareAndSwap(last, now) || last == 0 {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(d.ctx, d.c.patience())
		defer cancel()
		nc, err := d.user.Options().Dialer(ctx, "tcp", failoverAddr)
		if err != nil {
			return
		}
		defer nc.Close()
		d.retire(func(c net.Conn) bool { return c.RemoteAddr().String() == nc.RemoteAddr().String() })
	}()
}

// listen returns the newest credentials. When they change, connections that were greeted with others are replaced. One goroutine
// calls it at a time.
func (d *direct) listen() (auth.Credentials, error) {
	d.credentialsMu.Lock()
	defer d.credentialsMu.Unlock()
	if d.unlisten != nil {
		return d.credentials, nil
	}
	d.credentialsMu.Unlock()
	first, stop, err := d.user.Options().StreamingCredentialsProvider.Subscribe(rotation{d})
	d.credentialsMu.Lock()
	switch {
	case err != nil:
		d.credentials = nil
		return nil, err
	case d.ended:
		d.credentialsMu.Unlock()
		_ = stop() // which may wait for who is about to call OnNext
		d.credentialsMu.Lock()
		return nil, ErrClosed
	case d.credentials == nil: // otherwise newer ones have come meanwhile
		d.credentials = first
	}
	d.unlisten = stop
	return d.credentials, nil
}

// rotation is told of new credentials.
type rotation struct{ d *direct }

func (r rotation) OnNext(c auth.Credentials) {
	r.d.credentialsMu.Lock()
	r.d.credentials = c
	r.d.credentialsMu.Unlock()
	r.d.retire(nil)
}

func (r rotation) OnError(error) {}

// close ends the connections.
func (d *direct) close() {
	d.node.close()
	if via := d.via.Load(); via != nil {
		_ = via.Close()
	}
	d.credentialsMu.Lock()
	stop := d.unlisten
	d.unlisten, d.ended = nil, true
	d.credentialsMu.Unlock()
	if stop != nil {
		_ = stop()
	}
}
