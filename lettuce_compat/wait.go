package lettucecompat

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// waitFor asks that a renewal is confirmed by replicas. The sending goroutine fills in the answer before the call is
// done.
type waitFor struct {
	replicas int
	timeout  time.Duration
	synced   int
	err      error
}

// extendSynced renews and waits for replicas.
func (c *Client) extendSynced(ctx context.Context, r Renewal, now time.Time, limit time.Duration) RenewReply {
	w := &waitFor{replicas: r.Replicas, timeout: r.ReplicaTimeout}
	cmd := c.renewCmd([]Renewal{r})
	left := c.doSynced(ctx, c.shardOf(r.Key).synced, cmd, w, now, limit+w.timeout)
	reply := parseRenewal(r, cmd.item(left, 0, 1))
	if reply.Outcome != OutcomeFailed || cmd.sent() {
		reply.SentAt = cmd.sentAt
	}
	if reply.Outcome != OutcomeOK || w.err == nil && w.synced >= r.Replicas {
		return reply
	}
	reply.Outcome, reply.Err = OutcomeRefused, fmt.Errorf("%w: %d of %d within %v", ErrReplicas, w.synced, r.Replicas, w.timeout)
	if w.err != nil {
		reply.Err = fmt.Errorf("%w: %w", reply.Err, w.err)
	}
	return reply
}

// waitTries bounds how often a renewal with WAIT is sent after a slot that moves.
const waitTries = 5

// waitInFlight bounds the renewals of a shard that wait for replicas at the same time. Each has a connection of the
// client's pool to itself for as long as it waits.
const waitInFlight = 8

// sendWait sends the renewal and, if its field was there, WAIT on the same connection: WAIT speaks about the writes
// of its own connection only. On a cluster that connection belongs to the slot's owner, and redirections are handled
// here: a node that answers MOVED has not executed the renewal.
func (c *Client) sendWait(ctx context.Context, cmd *redisCmd, w *waitFor) {
	loaded := false
	for try := 1; ; try++ {
		node, err := c.node(ctx, cmd.key)
		if err != nil {
			cmd.SetErr(err)
			return
		}
		c.askReplicas(ctx, node, cmd, w)
		switch {
		case !refusedUnexecuted(cmd) || try == waitTries || ctx.Err() != nil:
			return
		case !noScript(cmd):
			c.relearn(ctx, try)
			cmd.again()
		case !loaded:
			loaded = true
			process(ctx, node, cmd.script.load())
			cmd.again()
		default: // it may not be loaded, or another node owns the slot by now
			cmd.asEval()
		}
	}
}

// askReplicas sends cmd, and WAIT after it. On a connection of their own the answer to the first decides whether the
// second is sent: a renewal that finds nothing has written nothing, and must not cost the time for which another
// would wait. go-redis never replaces a connection that has failed in between; WAIT fails then.
//
// A client of a type that is not known offers no such connection, and both go in one pipeline. If it hides a cluster,
// WAIT would go to any node, so that is asked for before.
func (c *Client) askReplicas(ctx context.Context, node endpoint, cmd *redisCmd, w *waitFor) {
	ms := max(1, int64(w.timeout/time.Millisecond)) // 0 would wait for ever
	wait := newRedisCmd(0, "wait", w.replicas, ms)
	client, plain := node.(*redis.Client)
	if !plain {
		if err := c.askForCluster(ctx); err != nil {
			cmd.SetErr(&notSentError{err})
			return
		}
		c.pipeline(ctx, node, []*redisCmd{cmd, wait})
		if w.synced, w.err = wait.Int(); c.hidden.Load() {
			w.synced, w.err = 0, ErrHiddenCluster
		}
		return
	}
	conn := client.Conn()
	defer func() { _ = conn.Close() }()
	process(ctx, conn, cmd)
	if cmd.item(nil, 0, 1).answer == int64(1) {
		process(ctx, conn, wait)
		w.synced, w.err = wait.Int()
	}
}

// relearn asks for the new layout, and gives it a moment.
func (c *Client) relearn(ctx context.Context, try int) {
	c.reload() // a node has answered that the slot moved, so there is a layout to fetch
	select {
	case <-time.After(time.Duration(try) * 20 * time.Millisecond):
	case <-ctx.Done():
	}
}
