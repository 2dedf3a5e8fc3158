package lettucecompat

import (
	"cmp"
	"context"
	"strconv"
	"time"
)

// Renewal asks that the lease of one field is raised to Lease from now.
type Renewal struct {
	Key, Field string
	Lease      time.Duration
	// Reacquire takes the lock again, for CallLease(Lease), where its key is missing and the fencing record still
	// names this field as the last grantee: nobody had it in between.
	Reacquire bool
	// Replicas is the number of replicas that must confirm the renewal within
	// ReplicaTimeout (default: half the time limit). Only Extend minds them. Keep the timeout below the
	// client's ReadTimeout.
	Replicas       int
	ReplicaTimeout time.Duration
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
// per item, in order; one bad key fails no other. The owner of the keys is asked for anew;
// an item that has moved is sent to its new one.
func (c *Client) Renew(ctx context.Context, batch []Renewal, timeout time.Duration) []RenewReply {
	start := time.Now()
	replies := askBatch(ctx, c, nil, batch, start, timeout, c.renewCommand, parseRenewal)
	worst := OutcomeOK
	for i := range replies {
		worst = max(worst, replies[i].Outcome)
	}
	c.observe("renew", worst, start)
	return replies
}

// Extend raises the lease of one field outside of the batches. With Replicas it waits for them on the connection
// that has renewed, which takes ReplicaTimeout more. Too few of them is OutcomeRefused with ErrReplicas: the
// field is there and renewed, and it is for the caller to give it back.
func (c *Client) Extend(ctx context.Context, r Renewal, timeout time.Duration) RenewReply {
	start := time.Now()
	var reply RenewReply
	if r.Replicas > 0 {
		reply = c.extendSynced(ctx, r, start, cmp.Or(timeout, c.opt.CommandTimeout))
	} else {
		reply = askBatch(ctx, c, nil, []Renewal{r}, start, timeout, c.renewCommand, parseRenewal)[0]
	}
	c.observe("extend", reply.Outcome, start)
	return reply
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
	args := batchArgs(c.scripts().renew, keys, keys+2+len(items))
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
			args = append(args, strconv.Itoa(i+1), millis(r.Lease), millis(CallLease(r.Lease)), strconv.Itoa(fence))
		}
	}
	return newBatchCommand(c.scripts().renew, items[0].Key, args)
}

func parseRenewal(outcome Outcome, err error, answer any, sentAt time.Time) RenewReply {
	r := RenewReply{Outcome: outcome, SentAt: sentAt, Err: err}
	if outcome != OutcomeOK {
		return r
	}
	switch a := answer.(type) {
	case int64:
		switch a {
		case 0:
			r.Outcome = OutcomeGone
			return r
		case 1, 2:
			r.Reacquired = a == 2
			return r
		}
	case string:
		r.Outcome, r.Err = OutcomeFailed, scriptError(a)
		return r
	}
	r.Outcome, r.Err = OutcomeUnknown, ErrMalformed
	return r
}

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
	replies := askBatch(ctx, c, nil, batch, start, timeout, c.statusCommand, parseStatus)
	worst := OutcomeOK
	for i := range replies {
		worst = max(worst, replies[i].Outcome)
	}
	c.observe("status", worst, start)
	return replies
}

func (c *Client) statusCommand(items []Query) *command {
	args := batchArgs(c.scripts().status, len(items), 2*len(items))
	for i := range items {
		args = append(args, items[i].Key)
	}
	for i := range items {
		args = append(args, items[i].Field)
	}
	return newBatchCommand(c.scripts().status, items[0].Key, args)
}

func parseStatus(outcome Outcome, err error, answer any, _ time.Time) StatusReply {
	if outcome != OutcomeOK {
		return StatusReply{Outcome: outcome, Err: err}
	}
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

// askBatch asks a script about many locks of one shard: with one command on a single server,
// and with one for each lock, in a pipeline, on a cluster. It returns what read makes of each
// answer, in order, or of the outcome and error that stand for it.
func askBatch[T, R any](
	ctx context.Context, c *Client, l *sender, batch []T, now time.Time, timeout time.Duration,
	ask func([]T) *command, read func(outcome Outcome, err error, answer any, sentAt time.Time) R,
) []R {
	if len(batch) == 0 {
		return nil
	}
	size := len(batch)
	if c.Multi() {
		size = 1
	}
	k := &request{}
	for rest := batch; len(rest) > 0; rest = rest[size:] {
		k.cmds = append(k.cmds, ask(rest[:size]))
	}
	if l == nil {
		l = c.senders(k.cmds[0].key).keep
	}
	left := l.do(ctx, k, now, timeout)
	if left == nil {
		if rest, again := c.oneByOne(k.cmds, size, now, timeout); again {
			return askBatch(ctx, c, l, batch, time.Now(), rest, ask, read)
		}
	}
	replies := make([]R, 0, len(batch))
	for _, cmd := range k.cmds {
		outcome, err := cmd.result(left)
		var answers []any
		if outcome == OutcomeOK {
			if answers, _ = cmd.Val().([]any); len(answers) != size {
				outcome, err = OutcomeUnknown, ErrMalformed
			}
		}
		var sentAt time.Time
		if outcome != OutcomeFailed || cmd.sent() {
			sentAt = k.sentAt
		}
		for i := range size {
			var answer any
			if outcome == OutcomeOK {
				answer = answers[i]
			}
			replies = append(replies, read(outcome, err, answer, sentAt))
		}
	}
	return replies
}

// scriptError is the error that a script met on one key of a batch and returned as
// text. It is an answer of the server like any other.
type scriptError string

func (e scriptError) Error() string { return string(e) }

// RedisError marks it as an answer of the server, as go-redis does.
func (e scriptError) RedisError() {}
