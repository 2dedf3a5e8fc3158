package lettucecompat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Ping asks whether a server answers, within timeout (0: Options.CommandTimeout). On a
// cluster any master may answer.
func (c *Client) Ping(ctx context.Context, timeout time.Duration) (rtt time.Duration, err error) {
	start := time.Now()
	outcome, err := c.one(ctx, c.lanes("").keep, newParcel(newCommand(0, "ping")), start, timeout)
	c.observe("ping", outcome, start)
	return time.Since(start), err
}

// RehearseRequest says what a Rehearse is about.
type RehearseRequest struct {
	Key       string
	Fenced    bool          // acquires reserve tokens
	Replicas  bool          // acquires wait for replicas
	Reacquire bool          // a renewal may take the lock back
	Strings   bool          // a string at the key is a lock of another library
	Timeout   time.Duration // of the command; 0: Options.CommandTimeout
}

// Rehearse asks whether r.Key could be acquired, renewed and released now, if nobody held
// it. A script calls what these call, in two steps, and leaves everything as it was: a free
// lock is taken and given back within a step, a held one is only asked about. So it meets
// what an acquire would meet: a missing permission, a full memory, a replica, a key of
// another type. Some rights to a held lock can be told from Redis 7.0 on only, and so can
// the rights to channels.
//
// It returns the commands that are refused and that a lock can do without, in words for
// people that name no key.
func (c *Client) Rehearse(ctx context.Context, r RehearseRequest) (without []string, err error) {
	if err := c.CheckKey(r.Key); err != nil {
		return nil, err
	}
	for _, step := range []string{"1", "2"} {
		list, err := c.rehearse(ctx, r, step)
		if err != nil {
			return nil, err
		}
		without = append(without, list...)
	}
	return without, nil
}

func (c *Client) rehearse(ctx context.Context, r RehearseRequest, step string) (without []string, err error) {
	start := time.Now()
	k, outcome, err := c.oneWithLine(ctx, c.lanes(r.Key).locks, r.Key, start, r.Timeout, func(line string) *scriptParcel {
		return newScriptParcel(c.scripts().rehearse, r.Key, line, c.fenceIf(r.Key, r.Fenced),
			step, c.opt.Dialect.channel(r.Key), ownPrefix+c.opt.ClientID, flag(r.Replicas), flag(r.Reacquire), flag(r.Strings))
	})
	c.observe("ping", outcome, start)
	if err != nil {
		return nil, err
	}
	list, ok := k.command.Val().([]any)
	if !ok {
		return nil, ErrMalformed
	}
	for _, what := range list {
		without = append(without, text(what))
	}
	return without, nil
}

// Probe asks whether messages are delivered: it publishes one to the client's own
// channel and waits until it comes back on the subscription connection, at most one
// CommandTimeout. A connection that is open but delivers nothing (a hung proxy, a
// demoted master) is found by this alone; it is then dropped and made anew
// (ErrNotDelivered). An error of the publication itself says nothing about the
// subscription and leaves it alone. Without anything subscribed yet, or where the ACL
// refuses the channel, it returns 0 and nil: there is nothing to probe.
func (c *Client) Probe(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	outcome, err := c.probe(ctx)
	c.observe("probe", outcome, start)
	if err != nil || outcome == OutcomeGone {
		return 0, err
	}
	return time.Since(start), nil
}

// probe answers OutcomeGone when there is nothing to probe.
func (c *Client) probe(ctx context.Context) (Outcome, error) {
	s := c.subs.main
	s.mu.Lock()
	if c.subs.closed {
		s.mu.Unlock()
		return OutcomeFailed, ErrClosed
	}
	if !s.started || s.own.state == chRefused {
		s.mu.Unlock()
		return OutcomeGone, nil
	}
	if s.own.state != chConfirmed {
		s.mu.Unlock()
		return OutcomeFailed, ErrNotSubscribed
	}
	nonce, arrived, generation := rand.Text(), make(chan struct{}), s.generation
	s.probes[nonce] = arrived
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.probes, nonce)
		s.mu.Unlock()
	}()

	timer := time.NewTimer(c.opt.CommandTimeout)
	defer timer.Stop()
	payload, _ := json.Marshal(ownMessage{Probe: nonce}) // strings always encode
	outcome, err := c.one(ctx, c.lanes("").keep, newParcel(newCommand(0, "publish", s.own.name, string(payload))), time.Now(), 0)
	if redis.IsPermissionError(err) {
		return OutcomeGone, nil // releases warn about it, see WarnPublishRefused
	}
	if err != nil {
		return outcome, fmt.Errorf("publishing the probe: %w", err)
	}
	select {
	case <-arrived:
		return OutcomeOK, nil
	case <-timer.C:
	case <-ctx.Done():
		// Only a deadline says that the message is late.
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return OutcomeUnknown, context.Cause(ctx)
		}
	}
	s.drop(generation, ErrNotDelivered)
	return OutcomeFailed, ErrNotDelivered
}
