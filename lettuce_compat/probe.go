package lettucecompat

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Ping asks whether a server answers, within timeout (0: Options.CommandTimeout). On a cluster any master may answer.
func (c *Client) Ping(ctx context.Context, timeout time.Duration) error {
	start := time.Now()
	outcome, err := c.one(ctx, c.single.keep, newRedisCmd(0, "ping"), start, timeout)
	c.observe("ping", outcome, start)
	return err
}

// RehearseRequest says what a Rehearse is about.
type RehearseRequest struct {
	Key      string
	Fenced   bool          // grants have tokens
	Replicas bool          // renewals wait for replicas
	Strings  bool          // a string at the key is a lock of another library
	Timeout  time.Duration // of all; 0: Options.CommandTimeout
}

// Rehearse asks whether r.Key could be asked for, waited for, renewed and released now, if nobody held it. A script
// calls what these call, in two steps, and leaves everything as it was: a free lock is taken and given back within a
// step, a held one is only asked about. So it fails as a command would fail: a missing permission, a full memory,
// a replica, what is no lock. Some rights to a held lock, and the rights to channels, can be checked from Redis 7.0 on
// only.
func (c *Client) Rehearse(ctx context.Context, r RehearseRequest) error {
	if err := c.CheckKey(r.Key); err != nil {
		return err
	}
	began, limit := time.Now(), cmp.Or(r.Timeout, c.opt.CommandTimeout)
	for _, step := range []string{"1", "2"} {
		r.Timeout = max(limit-time.Since(began), 1)
		if err := c.rehearse(ctx, r, step); err != nil {
			return err
		}
	}
	return c.subs.ownRefusal()
}

func (c *Client) rehearse(ctx context.Context, r RehearseRequest, step string) error {
	start := time.Now()
	fence, replicas := "", "0"
	if r.Fenced {
		fence = c.fence(r.Key)
	}
	if r.Replicas {
		replicas = "1"
	}
	cmd, left := c.script(ctx, c.shardOf(r.Key).locks, r.Key, start, r.Timeout, true, func(lined bool) *redisCmd {
		return c.newScriptCmd(c.scripts().rehearse, r.Key, lined, fence,
			step, c.opt.Dialect.channel(r.Key), ownPrefix+c.opt.ClientID, replicas, flag("s", r.Strings))
	})
	outcome, err := cmd.result(left)
	c.observe("ping", outcome, start)
	return err
}

// Probe asks whether messages are delivered: it publishes one to the client's own channel and waits until it comes
// back on the subscription connection, at most one CommandTimeout. This alone finds a connection that is open but
// delivers nothing (a hung proxy, a demoted master), which is then dropped and made anew (ErrNotDelivered). An error
// of the publication itself says nothing about the subscription and leaves it alone. Without anything subscribed yet,
// or if the ACL refuses the channel, it returns nil: there is nothing to probe.
func (c *Client) Probe(ctx context.Context) error {
	start := time.Now()
	outcome, err := c.probe(ctx)
	c.observe("probe", outcome, start)
	return err
}

// probe answers OutcomeGone when there is nothing to probe.
func (c *Client) probe(ctx context.Context) (Outcome, error) {
	s := c.subs.main
	nonce, arrived := rand.Text(), make(chan struct{})
	s.mu.Lock()
	generation, state, started, closed := s.generation, s.own.state, s.started, c.subs.closed
	s.probes[nonce] = arrived
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.probes, nonce)
		s.mu.Unlock()
	}()
	switch {
	case closed:
		return OutcomeFailed, ErrClosed
	case !started || state == chRefused:
		return OutcomeGone, nil
	case state != chConfirmed:
		return OutcomeFailed, ErrNotSubscribed
	}
	timer := time.NewTimer(c.opt.CommandTimeout)
	defer timer.Stop()
	outcome, err := c.one(ctx, c.single.keep, newRedisCmd(0, "publish", s.own.name, probePrefix+nonce), time.Now(), 0)
	if redis.IsPermissionError(err) {
		return OutcomeGone, nil // Rehearse reports it, and commands warn: see WarnPublishRefused
	}
	if err != nil {
		return outcome, fmt.Errorf("publishing the probe: %w", err)
	}
	select {
	case <-arrived:
		return OutcomeOK, nil
	case <-timer.C:
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) { // only a deadline says that the message is late
			return OutcomeUnknown, context.Cause(ctx)
		}
	}
	s.drop(generation, ErrNotDelivered)
	return OutcomeFailed, ErrNotDelivered
}
