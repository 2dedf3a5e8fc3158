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
	outcome, err := c.one(ctx, c.lanes("").keep, newCall(newCommand(0, "ping")), start, timeout)
	c.observe("ping", outcome, start)
	return time.Since(start), err
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
	s := c.sub
	s.mu.Lock()
	if s.closed {
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
	outcome, err := c.one(ctx, c.lanes("").keep, newCall(newCommand(0, "publish", s.own.name, string(payload))), time.Now(), 0)
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

// Stats are figures about the subscription connection, for monitoring only.
type Stats struct {
	Up        bool   // connected, and at least one channel confirmed
	Channels  int    // subscribed or being subscribed, the client's own included
	Idle      int    // of these, watched by nobody
	Malformed uint64 // messages that could not be understood
}

// Stats returns the current figures.
func (c *Client) Stats() Stats {
	c.sub.mu.Lock()
	defer c.sub.mu.Unlock()
	return Stats{Up: c.sub.up, Channels: len(c.sub.channels), Idle: c.sub.idle.Len(), Malformed: c.sub.malformed}
}
