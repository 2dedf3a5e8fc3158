package lettucecompat

import (
	"context"
	"time"
)

// ForceRelease deletes the lock, whoever holds it, publishes the release, and tells the client behind each deleted
// field on that client's own channel, at once. The first two in line are told to look. It returns the deleted fields,
// "" for a string, none if the lock was free. What is no lock is a permanent error and stays; strings says whether a
// string is one. After an error whose class is unknown the lock may be deleted or not; asking again is harmless.
//
// Whoever ran under the lock still runs until the message arrives: exclusion is broken on purpose.
func (c *Client) ForceRelease(ctx context.Context, key string, strings bool) (released []string, err error) {
	if err := c.CheckKey(key); err != nil {
		return nil, err
	}
	start := time.Now()
	multi := ""
	if c.Multi() {
		multi = "m"
	}
	k := newScriptRequest(c.scripts().force, key, c.line(key), "",
		c.opt.Dialect.message(key, c.opt.ClientID, start), stringsFlag(strings), multi)
	outcome, err := c.one(ctx, c.senders(key).locks, &k.request, start, 0)
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

// stringsFlag tells a script whether a string is a lock.
func stringsFlag(strings bool) any {
	if strings {
		return "s"
	}
	return ""
}
