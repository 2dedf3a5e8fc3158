package lettucecompat

import (
	"context"
	"time"
)

// ForceRelease deletes the lock, whoever holds it, publishes the release, and tells
// the client behind each deleted field on that client's own channel, at once. It
// returns the deleted fields, none if the lock was free. A key of another type is a
// permanent error and stays, and so does a fencing record, which is a hash as well: without
// it tokens would begin again. After an error whose class is unknown the lock may be
// deleted or not; asking again is harmless.
//
// Whoever ran under the lock still runs until the message arrives: exclusion is broken
// on purpose.
func (c *Client) ForceRelease(ctx context.Context, key string) (released []string, err error) {
	if err := checkReserved(key); err != nil {
		return nil, err
	}
	start := time.Now()
	before, after := forcedParts(key)
	k := newScriptCall(c.dialect.scripts.force, key, c.fence(key),
		c.dialect.channel(key), c.dialect.message(key, c.opt.ClientID, start),
		ownPrefix, before, after)
	outcome, err := c.one(ctx, c.lanes(key).locks, &k.call, start, 0)
	c.observe("force", outcome, start)
	if err != nil {
		return nil, err
	}
	fields, ok := k.command.Val().([]any)
	if !ok {
		return nil, ErrMalformed
	}
	for _, f := range fields {
		released = append(released, text(f))
	}
	return released, nil
}
