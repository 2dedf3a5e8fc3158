package lettucecompat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// room bounds the calls of go-redis and of hooks that are under way for one purpose: those that somebody waits for, and, with those that were
// abandoned, all. Who finds no room waits, and was not sent.
type room struct{ awaited, all chan struct{} }

// abandoned calls and others are bounded to so many times those that are awaited: a hung server costs a bounded number of goroutines
// and connections.
const abandoned = 5

func newRoom(limit int) room {
	return room{make(chan struct{}, limit), make(chan struct{}, abandoned*limit)}
}

// begin gives cmds their time limit, 0 being Options.CommandTimeout. An error: they were not sent, and never will be.
func (c *Client) begin(ctx context.Context, now time.Time, timeout time.Duration, cmds ...*redisCmd) error {
	timeout = cmp.Or(timeout, c.opt.CommandTimeout)
	for _, cmd := range cmds {
		cmd.timeout, cmd.end, cmd.sentAt = timeout, now.Add(timeout), now
	}
	switch {
	case c.closed.Load():
		return withdraw(cmds, ErrClosed)
	case ctx.Err() != nil:
		return withdraw(cmds, context.Cause(ctx))
	}
	return nil
}

// do sends cmd, which is new, and waits until it is answered (nil), ctx ends, or timeout has passed since now. After an error
// redisCmd.result says whether it may have been written, or may be yet.
//
// A script travels on a connection of ours if there may be one, and anything else by go-redis.
func (c *Client) do(ctx context.Context, by room, cmd *redisCmd, now time.Time, timeout time.Duration) error {
	defer c.exit()
	c.enter()
	if err := c.begin(ctx, now, timeout, cmd); err != nil {
		return err
	}
	if cmd.script != nil {
		if d := c.directTo(cmd.key); d != nil {
			return c.doDirect(ctx, d, by, cmd)
		}
	}
	return c.delegate(ctx, by, func(ctx context.Context) { c.sendOne(ctx, c.rdb, cmd) }, cmd)
}

// doAll is do for the commands of a batch: one, or several that go to a node of a cluster.
func (c *Client) doAll(ctx context.Context, by room, cmds []*redisCmd, now time.Time, timeout time.Duration) error {
	if len(cmds) == 1 {
		return c.do(ctx, by, cmds[0], now, timeout)
	}
	defer c.exit()
	c.enter()
	if err := c.begin(ctx, now, timeout, cmds...); err != nil {
		return err
	}
	return c.delegate(ctx, by, func(ctx context.Context) { c.sendMany(ctx, cmds) }, cmds...)
}

// doSynced is do for a renewal that waits for replicas.
func (c *Client) doSynced(ctx context.Context, by room, cmd *redisCmd, w *waitFor, now time.Time, timeout time.Duration) error {
	defer c.exit()
	c.enter()
	if err := c.begin(ctx, now, timeout, cmd); err != nil {
		return err
	}
	return c.delegate(ctx, by, func(ctx context.Context) { c.sendWait(ctx, cmd, w) }, cmd)
}

// one is do, and returns what is known about cmd.
func (c *Client) one(ctx context.Context, by room, cmd *redisCmd, now time.Time, timeout time.Duration) (Outcome, error) {
	return cmd.result(c.do(ctx, by, cmd, now, timeout))
}

// doDirect sends a script on a connection of ours: on the goroutine of its caller if nothing of the user's sees it. Hooks have one of their
// own, since a caller waits no longer than its time limit.
func (c *Client) doDirect(ctx context.Context, d *direct, by room, cmd *redisCmd) error {
	if d.hookless.Load() {
		answered, err := d.send(ctx, cmd)
		cmd.SetErr(err)
		left := cmd.hasLeft()
		if left == nil {
			c.noteErrors(cmd)
		} else if errors.Is(left, ErrTimeout) {
			c.relocate() // as delegate does
		}
		if left != nil || !noScript(cmd) && (c.route == nil || !elsewhere(cmd)) {
			cmd.ours = answered
			return left
		}
		cmd.again()
	}
	if err := c.delegate(ctx, by, func(ctx context.Context) { c.sendOne(ctx, d.hooked(), cmd) }, cmd); err != nil {
		return err
	}
	return cmd.hasLeft()
}

// delegate has a goroutine send cmds by go-redis, or through hooks, and waits as do does. go-redis may keep a goroutine for as long as its own time limits
// say.
func (c *Client) delegate(ctx context.Context, by room, send func(ctx context.Context), cmds ...*redisCmd) error {
	first := cmds[0]
	timer := time.NewTimer(time.Until(first.end))
	defer timer.Stop()
	for _, free := range []chan struct{}{by.awaited, by.all} {
		select {
		case free <- struct{}{}:
		case <-timer.C:
			return withdraw(cmds, first.timedOut())
		case <-ctx.Done():
			return withdraw(cmds, context.Cause(ctx))
		}
		if free == by.awaited {
			defer func() { <-by.awaited }()
		}
	}
	for _, cmd := range cmds {
		cmd.fill()
	}
	sent, done := time.Now(), make(chan struct{})
	with, stop := context.WithCancel(context.WithoutCancel(ctx)) // its trace, not its end
	defer stop()
	go func() {
		send(deadline{with, first.end})
		c.noteErrors(cmds...)
		<-by.all
		close(done)
	}()
	select {
	case <-done:
		if err := first.Err(); err == nil && !first.taken.Load() { // else the connection has noted it
			c.noteRTT(time.Since(sent))
		} else if classify(err) >= classUnreachable && !time.Now().Before(first.end) {
			return withdraw(cmds, first.timedOut()) // go-redis was a moment earlier
		}
		return nil
	case <-timer.C:
		c.relocate() // a node that hangs may have been replaced; its own error comes much later
		return withdraw(cmds, first.timedOut())
	case <-ctx.Done():
		return withdraw(cmds, context.Cause(ctx))
	}
}

// deadline is a context with a deadline for a client that minds one on the socket, and no timer.
type deadline struct {
	context.Context
	end time.Time
}

func (d deadline) Deadline() (time.Time, bool) { return d.end, true }

// withdraw marks every command as never sent, where that is still possible.
func withdraw(cmds []*redisCmd, err error) error {
	for _, cmd := range cmds {
		cmd.withdraw()
	}
	return err
}

// timedOut is the error of a command whose time is over.
func (c *redisCmd) timedOut() error { return fmt.Errorf("%w (%v)", ErrTimeout, c.timeout) }

// processor is what commands are sent by: the user's client, the client of one node, or a connection of ours behind hooks.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// endpoint is a processor that sends pipelines, too.
type endpoint interface {
	processor
	Pipelined(ctx context.Context, fn func(redis.Pipeliner) error) ([]redis.Cmder, error)
}

// sendOne sends the command to its server, or lets the user's client route it. A cluster client obeys MOVED and ASK by itself, which
// repeats nothing: the node that answers so has not executed it.
func (c *Client) sendOne(ctx context.Context, to processor, cmd *redisCmd) {
	if c.cluster && !c.asked.Load() {
		cmd.client = c
	}
	process(ctx, to, cmd)
	if cmd.doubt(); c.route != nil && elsewhere(cmd) && to != processor(c.rdb) {
		to = c.rdb
		cmd.again()
		process(ctx, to, cmd)
	}
	if c.route != nil && !c.routed.Load() && classify(cmd.Err()) < classUnreachable { // else asking would be I/O
		_, _ = c.node(ctx, cmd.key)
	}
	if !noScript(cmd) {
		return
	}
	cmd.again() // whoever leaves now has sent nothing
	if !c.load(ctx, cmd) {
		return
	}
	process(ctx, to, cmd)
	if cmd.doubt(); noScript(cmd) {
		cmd.asEval()
		process(ctx, to, cmd)
		cmd.doubt()
	}
}

// load has the server of cmd, which did not know its script, load it by go-redis. One call at a time does so, and those that have waited
// find it done. False: the caller has left.
func (c *Client) load(ctx context.Context, cmd *redisCmd) bool {
	s := c.shardOf(cmd.key)
	select {
	case s.loading <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer func() { <-s.loading }()
	if s.loaded[cmd.script].Before(cmd.sentAt) {
		node, _ := c.node(ctx, cmd.key)
		load := cmd.script.load()
		if process(ctx, node, load); load.Err() == nil {
			s.loaded[cmd.script] = time.Now()
		}
	}
	return ctx.Err() == nil
}

// process executes one command and leaves its error on it, even if the user's client is a wrapper that only returns
// it.
func process(ctx context.Context, node processor, cmd *redisCmd) {
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
		process(ctx, node, missing[0].script.load()) // that of all
		for _, cmd := range missing {
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
		c.sendOne(ctx, c.rdb, cmd)
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
	return cmd.script != nil && cmd.Err() != nil && redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT")
}

// elsewhere reports whether the command was refused by a node of a cluster that is not its owner.
func elsewhere(cmd *redisCmd) bool {
	err := cmd.Err()
	return err != nil && (redis.HasErrorPrefix(err, "MOVED ") || redis.HasErrorPrefix(err, "ASK "))
}

// refusedUnexecuted reports whether the command was refused by a node that is not its owner, or that did not know
// the script.
func refusedUnexecuted(cmd *redisCmd) bool { return elsewhere(cmd) || noScript(cmd) }
