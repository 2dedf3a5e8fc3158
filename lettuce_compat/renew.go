package lettucecompat

import (
	"context"
	"strconv"
	"time"
)

// Renewal asks that the lease of one field is raised to Lease from now.
type Renewal struct {
	Key, Field string
	Lease      time.Duration
	// Reacquire takes the lock again where its key is missing and the fencing record
	// still names this field as the last grantee: nobody had it in between. It also keeps
	// that record alive: once half of RecordTime (0: DefaultRecordTime) is over, the record
	// gets all of it again. Half of it must be longer than the lease.
	Reacquire  bool
	RecordTime time.Duration
}

// RenewReply is the answer to a Renewal.
type RenewReply struct {
	// Outcome is OK, Gone (the field is not there, or the key is of another type, both
	// concluded by a master), Failed or Unknown; the last two may be repeated.
	Outcome    Outcome
	Reacquired bool      // with OK: the field had gone and is set again
	SentAt     time.Time // the lease counts from here; zero if the command was never sent
	Err        error
}

// Renew raises the leases of a batch of fields, at most some hundred, that belong to
// one shard: one script call on a single server, one pipeline to the node on a
// cluster. It only ever raises a time to live, never shortens one. It returns one reply
// per item, in order; one bad key fails no other. The owner of the keys is asked for anew; an item that has
// moved is sent to its new one.
func (c *Client) Renew(ctx context.Context, batch []Renewal, timeout time.Duration) []RenewReply {
	start := time.Now()
	replies := c.renew(ctx, batch, start, timeout)
	worst := OutcomeOK
	for i := range replies {
		worst = max(worst, replies[i].Outcome)
	}
	c.observe("renew", worst, start)
	return replies
}

// Extend raises the lease of one field outside of the batches.
func (c *Client) Extend(ctx context.Context, r Renewal, timeout time.Duration) RenewReply {
	start := time.Now()
	reply := c.renew(ctx, []Renewal{r}, start, timeout)[0]
	c.observe("extend", reply.Outcome, start)
	return reply
}

func (c *Client) renew(ctx context.Context, batch []Renewal, now time.Time, timeout time.Duration) []RenewReply {
	if len(batch) == 0 {
		return nil
	}
	k := &call{}
	size := len(batch)
	if c.Multi() {
		size = 1
	}
	for rest := batch; len(rest) > 0; rest = rest[size:] {
		k.cmds = append(k.cmds, c.renewCommand(rest[:size]))
	}
	left := c.lanes(batch[0].Key).keep.do(ctx, k, now, timeout)
	if left == nil {
		if rest, again := c.oneByOne(k.cmds, size, now, timeout); again {
			return c.renew(ctx, batch, time.Now(), rest)
		}
	}
	replies := make([]RenewReply, 0, len(batch))
	for _, cmd := range k.cmds {
		replies = appendRenewals(replies, cmd, left, size)
	}
	for i := range replies {
		if replies[i].Outcome != OutcomeFailed || k.cmds[i/size].sent() {
			replies[i].SentAt = k.sentAt
		}
	}
	return replies
}

func (c *Client) renewCommand(items []Renewal) *command {
	// Locks of one batch mostly have one lease, so it is said once.
	lease, fences := items[0].Lease, 0
	for i := range items {
		if items[i].Reacquire {
			fences++
		}
	}
	keys := len(items) + fences
	args := batchArgs(c.dialect.scripts.renew, keys, keys+2+len(items))
	for i := range items {
		args = append(args, items[i].Key)
	}
	for i := range items {
		if items[i].Reacquire {
			args = append(args, c.fence(items[i].Key))
		}
	}
	args = append(args, strconv.Itoa(len(items)), millis(lease))
	for i := range items {
		args = append(args, items[i].Field)
	}
	record := len(items) // the last fencing record that was named
	for i, r := range items {
		fence := 0
		if r.Reacquire {
			record++
			fence = record
		}
		if fence > 0 || r.Lease != lease {
			args = append(args, strconv.Itoa(i+1), millis(r.Lease), strconv.Itoa(fence), recordMillis(r.RecordTime))
		}
	}
	return newBatchCommand(c.dialect.scripts.renew, items[0].Key, args)
}

// batchArgs begins the arguments of a script about many locks; most is how many follow in
// the common case. They are written where they are sent from, without a list of keys and
// one of values before: that was a sixth of what a renewal left to the collector.
func batchArgs(s *script, keys, most int) []any {
	return append(make([]any, 0, 3+most), "evalsha", s.shaArg, keys)
}

// newBatchCommand is the command of newScriptCall for arguments that are complete. All are
// strings but the number of keys.
func newBatchCommand(s *script, key string, args []any) *command {
	c := new(command)
	c.setScript(s, key, args)
	return c
}

// appendRenewals appends the replies of one command that carried n items.
func appendRenewals(replies []RenewReply, cmd *command, left error, n int) []RenewReply {
	outcome, err := cmd.result(left)
	answers, _ := cmd.entries(outcome, n)
	if outcome == OutcomeOK && answers == nil {
		outcome, err = OutcomeUnknown, ErrMalformed
	}
	for i := range n {
		r := RenewReply{Outcome: outcome, Err: err}
		if outcome == OutcomeOK {
			r = parseRenewal(answers[i])
		}
		replies = append(replies, r)
	}
	return replies
}

func parseRenewal(answer any) RenewReply {
	switch answer {
	case int64(0):
		return RenewReply{Outcome: OutcomeGone}
	case int64(1), int64(2):
		return RenewReply{Outcome: OutcomeOK, Reacquired: answer == int64(2)}
	}
	if text, is := answer.(string); is {
		return RenewReply{Outcome: OutcomeFailed, Err: scriptError(text)}
	}
	return RenewReply{Outcome: OutcomeUnknown, Err: ErrMalformed}
}

// entries returns the answers of a script that gives one entry per key, nil if the
// reply is not of that form.
func (c *command) entries(outcome Outcome, n int) ([]any, bool) {
	if outcome != OutcomeOK {
		return nil, false
	}
	answers, ok := c.Val().([]any)
	if !ok || len(answers) != n {
		return nil, false
	}
	return answers, true
}

// scriptError is the error that a script met on one key of a batch and returned as
// text. It is an answer of the server like any other.
type scriptError string

func (e scriptError) Error() string { return string(e) }

// RedisError marks it as an answer of the server, as go-redis does.
func (e scriptError) RedisError() {}
