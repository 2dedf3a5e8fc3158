package lettucecompat

import (
	"context"
	"time"
)

// RehearseRequest says what a Rehearse is about.
type RehearseRequest struct {
	Key       string
	Fenced    bool          // acquires reserve tokens
	Replicas  bool          // acquires wait for replicas
	Reacquire bool          // a renewal may take the lock back
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
	if err := checkReserved(r.Key); err != nil {
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
	k := newScriptCall(c.dialect.scripts.rehearse, r.Key, c.fenceIf(r.Key, r.Fenced),
		step, c.dialect.channel(r.Key), ownPrefix+c.opt.ClientID, flag(r.Replicas), flag(r.Reacquire))
	outcome, err := c.one(ctx, c.lanes(r.Key).locks, &k.call, start, r.Timeout)
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
