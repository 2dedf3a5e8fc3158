package lettucecompat

import (
	"context"
	"time"
)

// waitFor asks that an acquire is confirmed by replicas. The sending goroutine fills in
// the answer before the call is done.
type waitFor struct {
	replicas int
	timeout  time.Duration
	synced   int
	err      error
}

// waitTries bounds how often an acquire with WAIT follows a slot that moves.
const waitTries = 5

// sendWait sends the acquire and WAIT in one pipeline, hence on one connection: WAIT
// speaks about the writes of its own connection only. On a cluster that connection
// belongs to the slot's owner, and redirections are followed here: a node that answers
// MOVED has not executed the acquire.
func (c *Client) sendWait(ctx context.Context, cmd *command, w *waitFor) {
	for try := 1; ; try++ {
		node := sender(c.rdb)
		if c.route != nil {
			n, err := c.route(ctx, cmd.key)
			if err != nil {
				cmd.SetErr(&notSentError{err})
				return
			}
			node = n
			c.routed.Store(true)
		}
		ms := max(1, int64(w.timeout/time.Millisecond)) // 0 would wait for ever
		wait := newCommand(0, "wait", w.replicas, ms)
		pipeline(ctx, node, []*command{cmd, wait})
		if !refusedUnexecuted(cmd) || try == waitTries || ctx.Err() != nil {
			w.synced, w.err = wait.Int()
			c.noteStale(cmd)
			return
		}
		if noScript(cmd) {
			c.load(ctx, node, cmd.script)
		} else {
			c.relearn(ctx, try)
		}
		cmd.again()
	}
}

// relearn asks for the new layout, and gives it a moment.
func (c *Client) relearn(ctx context.Context, try int) {
	c.reload() // a node has answered that the slot moved, so there is a layout to fetch
	timer := time.NewTimer(time.Duration(try) * 20 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
