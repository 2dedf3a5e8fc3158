package lettucecompat

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// endpoint is where a round trip goes: the user's client, or the client of one node.
type endpoint interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipelined(ctx context.Context, fn func(redis.Pipeliner) error) ([]redis.Cmder, error)
}

// send makes the round trip t, more only where a node did not know a script
// or no longer owns a slot. When it returns, every command has its reply or its error.
func (c *Client) send(t *roundTrip) {
	if w := t.requests[0].wait; w != nil {
		c.sendWait(&t.ctx, t.requests[0].cmds[0], w)
		return
	}
	var cmds []*command
	if len(t.requests) == 1 {
		cmds = t.requests[0].cmds
	} else {
		cmds = make([]*command, 0, len(t.requests))
		for _, r := range t.requests {
			cmds = append(cmds, r.cmds...)
		}
	}
	if len(cmds) == 1 {
		c.sendOne(&t.ctx, cmds[0])
	} else {
		c.sendMany(&t.ctx, cmds)
	}
	for _, cmd := range cmds {
		if cmd.Err() != nil {
			c.noteCluster(cmd)
		}
	}
}

// sendOne lets the user's client route the command. A cluster client follows MOVED and
// ASK by itself, which repeats nothing: the node that answers so has not executed it.
func (c *Client) sendOne(ctx context.Context, cmd *command) {
	process(ctx, c.rdb, cmd)
	if c.route != nil && !c.routed.Load() {
		c.learnNodes(ctx, cmd)
	}
	if cmd.Err() == nil {
		return
	}
	c.noteStale(cmd)
	if !noScript(cmd) {
		return
	}
	c.load(ctx, c.owner(ctx, cmd.key), cmd.script)
	cmd.again()
	if process(ctx, c.rdb, cmd); noScript(cmd) {
		cmd.asEval()
		process(ctx, c.rdb, cmd)
	}
}

// process executes one command and leaves its error on it, also where the user's
// client is a wrapper that only returns it.
func process(ctx context.Context, node endpoint, cmd *command) {
	if err := node.Process(ctx, cmd); err != nil && cmd.Err() == nil {
		cmd.SetErr(err)
	}
}

// sendMany sends a pipeline to one node. On a cluster it goes through the node's own
// client: the cluster client's pipelines send commands again after a redirection and
// then leave the first error on a command whose second reply was lost.
func (c *Client) sendMany(ctx context.Context, cmds []*command) {
	node := endpoint(c.rdb)
	if c.route != nil {
		n, err := c.route(ctx, cmds[0].key)
		if err != nil {
			for _, cmd := range cmds {
				cmd.SetErr(&notSentError{err})
			}
			return
		}
		node = n
		c.routed.Store(true)
	}
	pipeline(ctx, node, cmds)
	c.doubtRedirections(cmds)
	if missing := selectCommands(cmds, noScript); len(missing) > 0 {
		loaded := map[*script]bool{}
		for _, cmd := range missing {
			if !loaded[cmd.script] {
				loaded[cmd.script] = true
				c.load(ctx, node, cmd.script)
			}
			cmd.again()
		}
		pipeline(ctx, node, missing)
		c.doubtRedirections(missing)
	}
	// What is left is rare: a cluster that is being reshaped, or a script cache that
	// was flushed again meanwhile. Each of these was refused unexecuted.
	for _, cmd := range selectCommands(cmds, refusedUnexecuted) {
		if ctx.Err() != nil {
			return
		}
		cmd.again()
		c.sendOne(ctx, cmd)
	}
	c.noteStale(cmds...)
}

// pipeline sends cmds in one round trip. Each command carries its own error after.
func pipeline(ctx context.Context, node endpoint, cmds []*command) {
	_, err := node.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, cmd := range cmds {
			if err := p.Process(ctx, cmd); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		return
	}
	// A hook that refuses a pipeline need not say so on each command. The error may as well
	// be about another command, so only one that is still held gets it, and only its text: an
	// answer in it is not the answer to this one.
	for _, cmd := range cmds {
		if cmd.Err() == nil && cmd.Val() == nil && cmd.withdraw() {
			cmd.SetErr(&notSentError{errors.New(err.Error())})
		}
	}
}

// load stores a script on a node for good: servers from 7.4 on forget, in time, the
// scripts that came by EVAL. A failure shows in the EVALSHA that follows.
func (c *Client) load(ctx context.Context, node endpoint, s *script) {
	_ = node.Process(ctx, newCommand(0, "script", "load", s.source))
}

func selectCommands(cmds []*command, keep func(*command) bool) []*command {
	var out []*command
	for _, cmd := range cmds {
		if keep(cmd) {
			out = append(out, cmd)
		}
	}
	return out
}

// noScript reports whether the node did not know the command's script. Nothing ran.
func noScript(cmd *command) bool {
	err := cmd.Err()
	return err != nil && cmd.script != nil && redis.HasErrorPrefix(err, "NOSCRIPT")
}

// refusedUnexecuted reports whether the command was turned away by a node that is not
// its owner, or did not know the script.
func refusedUnexecuted(cmd *command) bool {
	err := cmd.Err()
	if err == nil {
		return false
	}
	_, moved := redis.IsMovedError(err)
	_, ask := redis.IsAskError(err)
	return moved || ask || noScript(cmd)
}
