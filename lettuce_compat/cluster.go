package lettucecompat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// node returns the client of the node that owns key, the user's client on a single server and beside an error. From
// the first success on the layout is known, so that asking needs no I/O and may be done on a caller's goroutine.
func (c *Client) node(ctx context.Context, key string) (endpoint, error) {
	if c.route == nil {
		return c.rdb, nil
	}
	n, err := c.route(ctx, key)
	if err != nil {
		return c.rdb, &notSentError{err}
	}
	c.routed.Store(true)
	return n, nil
}

// noteErrors draws conclusions from the errors of a round trip: a cluster that was not known for one, and a node that
// is dead, silent or demoted, whose keys may have another owner by now.
func (c *Client) noteErrors(cmds ...*redisCmd) {
	stale := false
	for _, cmd := range cmds {
		c.noteCluster(cmd)
		stale = stale || classify(cmd.Err()) >= classUnreachable || hasCode(cmd.Err(), "READONLY")
	}
	if stale {
		c.relocate()
		c.tracking.doubt()
	}
}

// relocateEvery is the least time between two requests for the layout after errors. A client that finds no node at
// all asks every one it knows, for each request, and ends without a pause: each command that fails while a cluster
// restarts would be many dials.
const relocateEvery = 100 * time.Millisecond

// relocate asks a cluster client to load the layout again. By itself it does so once a minute, when a slot has
// moved, and after errors only for commands that it may send again, which ours are not: without this they would go to
// a dead master for up to a minute, longer than most leases. A request that comes too soon is dropped: as long as
// commands fail there will be another.
func (c *Client) relocate() {
	now := time.Now()
	last := c.relocated.Load()
	if last != nil && now.Sub(*last) < relocateEvery || !c.relocated.CompareAndSwap(last, &now) {
		return
	}
	c.reload()
}

// reload asks a cluster client for the layout, which it fetches on a goroutine of its own.
func (c *Client) reload() {
	if r, ok := c.rdb.(interface{ ReloadState(context.Context) }); ok {
		r.ReloadState(context.Background())
	}
}

// Some clusters are hidden: New has not recognised them, behind a plain client, a proxy, or a type that wraps a
// ClusterClient and hides its methods. Locks work there, since each script is about one slot. What speaks about
// several keys, or about a server as a whole, does not. The first answer that only a cluster gives is believed for
// good: from then on keys go one by one, nothing is concluded from the number of subscribers, and one warning names
// the remedy.

// ErrHiddenCluster is the error of WarnHiddenCluster, and of a renewal that asks for replicas through a client of a
// type of its own that hides a cluster: WAIT would ask any node. Whether a plain client has a proxy before it that
// does is not asked; see docs/compatibility.md.
var ErrHiddenCluster = errors.New("this client hides a Redis Cluster: pass the *redis.ClusterClient of redis.NewClusterClient itself")

// noteCluster notes that an answer comes from a cluster that was not known for one. It reports whether cmd is about
// keys of several slots, so that they must be asked about one by one.
func (c *Client) noteCluster(cmd *redisCmd) (crossSlot bool) {
	err := cmd.Err()
	if err == nil || c.route != nil {
		return false
	}
	crossSlot = hasCode(err, "CROSSSLOT")
	if crossSlot || hasCode(err, "MOVED") || hasCode(err, "ASK") || hasCode(err, "CLUSTERDOWN") {
		c.foundCluster(fmt.Errorf("%w (it answered: %w)", ErrHiddenCluster, err))
	}
	return crossSlot
}

func (c *Client) foundCluster(err error) {
	if !c.hidden.Swap(true) {
		c.warn.raise(Warning{Kind: WarnHiddenCluster, Err: err})
	}
}

// askForCluster asks once whether a client of a type that is not known hides a cluster. A client that follows
// redirections by itself shows none of the answers that noteCluster needs, and WAIT would speak about any node. While
// it is not known, WAIT cannot be used: an error says why.
func (c *Client) askForCluster(ctx context.Context) error {
	if !c.followsRedirections() || c.hidden.Load() || c.alone.Load() {
		return nil
	}
	cmd := newRedisCmd(0, "cluster", "info")
	_, err := c.one(ctx, c.single.keep, cmd, time.Now(), 0)
	switch {
	case err == nil:
		c.foundCluster(fmt.Errorf("%w (it answers CLUSTER INFO)", ErrHiddenCluster))
	case strings.Contains(err.Error(), "cluster support disabled"):
		c.alone.Store(true)
	default:
		return fmt.Errorf("asking whether this client hides a Redis Cluster (CLUSTER INFO): %w", err)
	}
	return nil
}

// oneByOne reports whether a batch that was just answered must be asked about again, key by key, because it reached a
// cluster that nobody knew of, and what is left of its time then. The batch was refused as a whole, before anything
// of it ran.
func (c *Client) oneByOne(cmds []*redisCmd, size int, now time.Time, limit time.Duration) (left time.Duration, again bool) {
	if size == 1 {
		return 0, false
	}
	for _, cmd := range cmds {
		if c.noteCluster(cmd) {
			left = cmp.Or(limit, c.opt.CommandTimeout) - time.Since(now)
			return left, left > 0
		}
	}
	return 0, false
}

// followsRedirections reports whether the client may send a command of a pipeline again by itself, after a node has
// refused it. A plain client does not. A cluster client does, and if the second answer is lost it leaves the first one,
// the redirection, on the command. That answer then does not prove that the command was not executed. Pipelines go to
// the nodes of a cluster that is known for one, so this is about types that New does not know.
func (c *Client) followsRedirections() bool {
	_, plain := c.rdb.(*redis.Client)
	return !plain && c.route == nil
}

// doubtRedirections makes those answers of a pipeline unknown that followsRedirections is about.
func (c *Client) doubtRedirections(cmds []*redisCmd) {
	for _, cmd := range cmds {
		if c.followsRedirections() && (hasCode(cmd.Err(), "MOVED") || hasCode(cmd.Err(), "ASK")) {
			c.noteCluster(cmd)
			cmd.SetErr(errors.New(cmd.Err().Error())) // a text, no answer
		}
	}
}
