package lettucecompat

import (
	"context"
	"time"
)

// Query asks about one field.
type Query struct{ Key, Field string }

// StatusReply says how a field stands in Redis.
type StatusReply struct {
	Outcome Outcome       // OK (the field is there), Gone (concluded by a master), Failed or Unknown
	Count   int64         // the field's value; 1 for a lock of ours
	Fields  int64         // number of fields of the key; 1 where nobody intruded
	TTL     time.Duration // what is left; negative: the key has no end
	Err     error
}

// Status asks how a batch of fields of one shard stands, in one round trip. It changes
// nothing. It returns one reply per item, in order; one bad key fails no other.
func (c *Client) Status(ctx context.Context, batch []Query, timeout time.Duration) []StatusReply {
	start := time.Now()
	replies := c.status(ctx, batch, start, timeout)
	worst := OutcomeOK
	for i := range replies {
		worst = max(worst, replies[i].Outcome)
	}
	c.observe("status", worst, start)
	return replies
}

func (c *Client) status(ctx context.Context, batch []Query, now time.Time, timeout time.Duration) []StatusReply {
	if len(batch) == 0 {
		return nil
	}
	k := &call{}
	size := len(batch)
	if c.Multi() {
		size = 1
	}
	for rest := batch; len(rest) > 0; rest = rest[size:] {
		k.cmds = append(k.cmds, c.statusCommand(rest[:size]))
	}
	left := c.lanes(batch[0].Key).keep.do(ctx, k, now, timeout)
	if left == nil {
		if rest, again := c.oneByOne(k.cmds, size, now, timeout); again {
			return c.status(ctx, batch, time.Now(), rest)
		}
	}
	replies := make([]StatusReply, 0, len(batch))
	for _, cmd := range k.cmds {
		replies = appendStatus(replies, cmd, left, size)
	}
	return replies
}

func (c *Client) statusCommand(items []Query) *command {
	args := batchArgs(c.dialect.scripts.status, len(items), 2*len(items))
	for i := range items {
		args = append(args, items[i].Key)
	}
	for i := range items {
		args = append(args, items[i].Field)
	}
	return newBatchCommand(c.dialect.scripts.status, items[0].Key, args)
}

// appendStatus appends the replies of one command that carried n items.
func appendStatus(replies []StatusReply, cmd *command, left error, n int) []StatusReply {
	outcome, err := cmd.result(left)
	answers, _ := cmd.entries(outcome, n)
	if outcome == OutcomeOK && answers == nil {
		outcome, err = OutcomeUnknown, ErrMalformed
	}
	for i := range n {
		r := StatusReply{Outcome: outcome, Err: err}
		if outcome == OutcomeOK {
			r = parseStatus(answers[i])
		}
		replies = append(replies, r)
	}
	return replies
}

func parseStatus(answer any) StatusReply {
	switch a := answer.(type) {
	case int64:
		if a == 0 {
			return StatusReply{Outcome: OutcomeGone}
		}
		if a > 0 {
			return StatusReply{Outcome: OutcomeOK, Count: 1, Fields: 1, TTL: fromMillis(a - 1)}
		}
	case string:
		return StatusReply{Outcome: OutcomeFailed, Err: scriptError(a)}
	case []any:
		if len(a) == 3 {
			count, ok1 := a[0].(int64)
			fields, ok2 := a[1].(int64)
			ttl, ok3 := a[2].(int64)
			if ok1 && ok2 && ok3 {
				return StatusReply{Outcome: OutcomeOK, Count: count, Fields: fields, TTL: fromMillis(ttl)}
			}
		}
	}
	return StatusReply{Outcome: OutcomeUnknown, Err: ErrMalformed}
}
