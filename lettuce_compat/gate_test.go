package lettucecompat_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// gate is a go-redis hook that holds commands on one key before they are sent, and
// counts the round roundTrips.
type gate struct {
	key       string
	opened    chan struct{}
	once      sync.Once
	arrived   chan struct{}
	processed atomic.Int64
	pipelines atomic.Int64
	commands  atomic.Int64 // in pipelines
	before    func()       // runs before a pipeline is sent; may be nil
}

func newGate(key string) *gate {
	return &gate{key: key, opened: make(chan struct{}), arrived: make(chan struct{}, 1000)}
}

func (g *gate) open() { g.once.Do(func() { close(g.opened) }) }

func (g *gate) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		g.processed.Add(1)
		if slices.Contains(cmd.Args(), any(g.key)) {
			g.arrived <- struct{}{}
			<-g.opened
		}
		return next(ctx, cmd)
	}
}

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() != "evalsha" {
			return next(ctx, cmds) // go-redis introducing itself on a new connection
		}
		g.pipelines.Add(1)
		g.commands.Add(int64(len(cmds)))
		if g.before != nil {
			g.before()
		}
		return next(ctx, cmds)
	}
}
