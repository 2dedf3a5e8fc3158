package lettucecompat

import (
	"context"
	"net"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// mostHooked is how many commands, beside those that keep what is held, are in the hooks of a *redis.Client at a time, in place of
// MaxInFlight: they hold no connection of the pool.
const mostHooked = 1024

// direct is the way of scripts to one server, on connections of ours. The hooks of the client see them as they see a command of the user's:
// a *redis.Conn of it has a copy of them, and ours as the innermost, where go-redis would take a connection out of its pool. So that
// takes none. Hooks that are added to the client after the first command see only what go-redis sends.
//
// In a cluster the client is that of a node. A copy of the ClusterClient's own hooks is not to be had: if there are any, go-redis sends.
type direct struct {
	user *redis.Client // or that of the node
	bare *redis.Client // of the same pool, without hooks
	// hookless: nothing of the user's sees the commands, neither hooks nor a Limiter. It is found out by the first one.
	hookless, asked atomic.Bool
	via             atomic.Pointer[redis.Conn] // with the hooks; nil before the first command
	logins          *logins
	*node

	master follower
}

func newDirect(c *Client, user *redis.Client) *direct {
	d := &direct{user: user, bare: user.WithTimeout(user.Options().ReadTimeout)}
	d.node = newNode(c, func(ctx context.Context) (net.Conn, error) { return c.connect(ctx, user, d.logins) })
	d.logins = &logins{changed: func() { d.retire(nil) }}
	d.lasts, d.idles = user.Options().ConnMaxLifetime, user.Options().ConnMaxIdleTime
	return d
}

// directTo returns the way to the server that owns key; nil: go-redis sends what is about it.
func (c *Client) directTo(key string) *direct {
	if c.route == nil {
		return c.single.direct
	}
	if !c.hookless.Load() || !c.routed.Load() {
		return nil
	}
	node, err := c.route(context.Background(), key)
	if err != nil {
		return nil
	}
	s := c.shard(node.Options().Addr)
	c.mu.Lock()
	before := s.direct
	switch {
	case c.closed.Load():
		c.mu.Unlock()
		return nil
	case before == nil || before.user != node: // the node may have left, and have come again
		s.direct = newDirect(c, node)
	}
	d := s.direct
	c.mu.Unlock()
	if d != before && c.brief.Load() {
		d.keepNothing()
	}
	if d != before && before != nil {
		before.keepNothing()
	}
	return d
}

// directs returns all.
func (c *Client) directs() (all []*direct) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.shards {
		if s.direct != nil {
			all = append(all, s.direct)
		}
	}
	return all
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

// askForHooks looks at who has called the innermost hook.
func (d *direct) askForHooks() {
	hookless, _ := calledByGoRedis(".innermost.ProcessHook.func1")
	d.hookless.Store(hookless && d.user.Options().Limiter == nil)
	d.asked.Store(true)
}

// askForClusterHooks looks, in a command that a ClusterClient sends, at who has called what sends it. A type that wraps it may do more.
func (c *Client) askForClusterHooks() {
	if _, is := c.rdb.(*redis.ClusterClient); !is || c.asked.Load() {
		return
	}
	if hookless, found := calledByGoRedis("/go-redis/v9.(*ClusterClient).process"); found {
		c.hookless.Store(hookless)
		c.asked.Store(true)
	}
}

// calledByGoRedis reports whether a function that is running was called by us through nothing but go-redis' own Process, so by no hook,
// and whether it was found. A go-redis that calls its own function otherwise makes every client one with hooks, which is slower.
func calledByGoRedis(function string) (is, found bool) {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	for frame, more := frames.Next(); more; frame, more = frames.Next() {
		if strings.HasSuffix(frame.Function, function) {
			for more && strings.HasSuffix(frame.Function, function) || strings.HasSuffix(frame.Function, function+"-fm") {
				frame, more = frames.Next()
			}
			is := strings.HasSuffix(frame.Function, "/go-redis/v9.(*hooksMixin).processHook")
			frame, _ = frames.Next()
			is = is && strings.HasSuffix(frame.Function, ").Process")
			frame, _ = frames.Next()
			return is && strings.HasSuffix(frame.Function, "/lettuce_compat.process"), true
		}
	}
	return false, false
}

func (d *direct) send(ctx context.Context, cmd *redisCmd) (answered bool, err error) {
	if d.user.Options().Addr == failoverAddr {
		d.follow(ctx, cmd.end)
	}
	return d.do(ctx, cmd)
}

// close ends the connections.
func (d *direct) close() {
	d.node.close()
	if via := d.via.Load(); via != nil {
		_ = via.Close()
	}
	d.logins.close()
}
