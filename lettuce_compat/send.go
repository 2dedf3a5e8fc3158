package lettucecompat

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"
)

// endpoint is where a round trip goes: the user's client, or the client of one node.
type endpoint interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipelined(ctx context.Context, fn func(redis.Pipeliner) error) ([]redis.Cmder, error)
}

// send makes the round trip t, more only if a node did not know a script or no longer owns a slot. When it returns,
// every command has its reply or its error.
func (c *Client) send(t *roundTrip) {
	first := t.requests[0]
	cmds := slices.Clip(first.cmds)
	for _, r := range t.requests[1:] {
		cmds = append(cmds, r.cmds...)
	}
	switch {
	case first.wait != nil:
		c.sendWait(&t.ctx, cmds[0], first.wait)
	case len(cmds) == 1:
		c.sendOne(&t.ctx, cmds[0])
	default:
		c.sendMany(&t.ctx, cmds)
	}
	c.noteErrors(cmds)
}

// sendOne lets the user's client route the command. A cluster client obeys MOVED and ASK by itself, which repeats
// nothing: the node that answers so has not executed it.
func (c *Client) sendOne(ctx context.Context, cmd *redisCmd) {
	process(ctx, c.rdb, cmd)
	if c.route != nil && !c.routed.Load() && classify(cmd.Err()) < classUnreachable { // else asking would be I/O
		_, _ = c.node(ctx, cmd.key)
	}
	if !noScript(cmd) {
		return
	}
	node, _ := c.node(ctx, cmd.key)
	c.load(ctx, node, cmd.script)
	cmd.again()
	if process(ctx, c.rdb, cmd); noScript(cmd) {
		cmd.asEval()
		process(ctx, c.rdb, cmd)
	}
}

// process executes one command and leaves its error on it, even if the user's client is a wrapper that only returns
// it.
func process(ctx context.Context, node endpoint, cmd *redisCmd) {
	if err := node.Process(ctx, cmd); err != nil && cmd.Err() == nil {
		cmd.SetErr(err)
	}
}

// sendMany sends a pipeline to one node. On a cluster it goes through the node's own client: the cluster client's
// pipelines send commands again after a redirection, and then leave the first error on a command whose second reply
// was lost.
func (c *Client) sendMany(ctx context.Context, cmds []*redisCmd) {
	node, err := c.node(ctx, cmds[0].key)
	if err != nil {
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
		return
	}
	c.pipeline(ctx, node, cmds)
	if missing := selectCmds(cmds, noScript); len(missing) > 0 {
		loaded := map[*script]bool{}
		for _, cmd := range missing {
			if !loaded[cmd.script] {
				loaded[cmd.script] = true
				c.load(ctx, node, cmd.script)
			}
			cmd.again()
		}
		c.pipeline(ctx, node, missing)
	}
	// What is left is rare: a cluster that is being reshaped, or a script cache that was flushed again meanwhile.
	// Each of these was refused unexecuted.
	for _, cmd := range selectCmds(cmds, refusedUnexecuted) {
		if ctx.Err() != nil {
			return
		}
		cmd.again()
		c.sendOne(ctx, cmd)
	}
}

// pipeline sends cmds in one round trip. Each command carries its own error after.
func (c *Client) pipeline(ctx context.Context, node endpoint, cmds []*redisCmd) {
	_, err := node.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, cmd := range cmds {
			if err := p.Process(ctx, cmd); err != nil {
				return err
			}
		}
		return nil
	})
	// A hook that refuses a pipeline need not say so on each command. The error may as well be about another command,
	// so only one that is still held gets it, and only its text: an answer in it is not the answer to this one.
	for _, cmd := range cmds {
		if err != nil && cmd.Err() == nil && cmd.Val() == nil && cmd.withdraw() {
			cmd.SetErr(&notSentError{errors.New(err.Error())})
		}
	}
	c.doubtRedirections(cmds)
}

// load stores a script on a node for good: servers from 7.4 on forget, in time, the scripts that came by EVAL. A
// failure shows in the next EVALSHA.
func (c *Client) load(ctx context.Context, node endpoint, s *script) {
	_ = node.Process(ctx, newRedisCmd(0, "script", "load", s.source))
}

func selectCmds(cmds []*redisCmd, keep func(*redisCmd) bool) []*redisCmd {
	var out []*redisCmd
	for _, cmd := range cmds {
		if keep(cmd) {
			out = append(out, cmd)
		}
	}
	return out
}

// noScript reports whether the node did not know the command's script. Nothing ran.
func noScript(cmd *redisCmd) bool {
	return cmd.script != nil && redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT")
}

// refusedUnexecuted reports whether the command was refused by a node that is not its owner, or that did not know
// the script.
func refusedUnexecuted(cmd *redisCmd) bool {
	_, moved := redis.IsMovedError(cmd.Err())
	_, ask := redis.IsAskError(cmd.Err())
	return moved || ask || noScript(cmd)
}
