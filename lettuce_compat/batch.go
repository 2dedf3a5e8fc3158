package lettucecompat

import (
	"cmp"
	"context"
	"time"
)

// Renewal asks that the lease of one field is raised to Lease from now. It changes nothing else.
type Renewal struct {
	Key, Field string
	Lease      time.Duration
	// Grant and Units say what the client has of an RWMutex or a Semaphore, where Field says nothing: the number under which
	// its first units came, and how many it has. Fewer in Redis, or an older record, are OutcomeGone.
	Grant uint64
	Units int64 // 0: it is a Mutex
	// Replicas is the number of replicas that must confirm the renewal within ReplicaTimeout. Only Extend minds them.
	// Keep the timeout below the client's ReadTimeout.
	Replicas       int
	ReplicaTimeout time.Duration
	Note           string // for people: stored with the field, and announced to its watchers. Only Extend minds it
}

// RenewReply is the answer to a Renewal.
type RenewReply struct {
	// Outcome is OK, Gone (the field is not there, or the key is of another type, both concluded by a master), Failed
	// or Unknown; the last two may be repeated.
	Outcome   Outcome
	SentAt    time.Time // the lease counts from here; zero if the command was never sent
	Units     int64     // that Redis has of the client, if Renewal has any: more than it says if a failover has lost that it gave some back
	Contended bool      // another client waits for them. The client was notified of that, but a message may be lost
	Err       error
}

// Renew raises the leases of a batch, at most some hundred, that belong to one shard, all fields or all units: one script call on a
// single server, one pipeline to the node on a cluster. It returns one reply per item, in order; one bad key fails no
// other. The owner of the keys is asked for anew; an item that has moved is sent to its new one.
func (c *Client) Renew(ctx context.Context, batch []Renewal, timeout time.Duration) []RenewReply {
	return askBatch(ctx, c, "renew", batch, timeout, c.renewCmd, parseRenewal)
}

// Extend raises the lease of one field outside of the batches. With Replicas it waits for them on the connection that
// has renewed, which takes ReplicaTimeout more. Too few of them is OutcomeRefused with ErrReplicas: the field is
// there and renewed, and it is for the caller to give it back.
func (c *Client) Extend(ctx context.Context, r Renewal, timeout time.Duration) RenewReply {
	if r.Replicas == 0 {
		return askBatch(ctx, c, "extend", []Renewal{r}, timeout, c.renewCmd, parseRenewal)[0]
	}
	start := time.Now()
	reply := c.extendSynced(ctx, r, start, cmp.Or(timeout, c.opt.CommandTimeout))
	c.observe("extend", reply.Outcome, start)
	return reply
}

func (c *Client) renewCmd(items []Renewal) *redisCmd {
	// Locks of one batch mostly have one lease, so it is said once.
	lease, s := items[0].Lease, c.scripts().renew
	if items[0].Units > 0 {
		s = c.scripts().renewUnits
	}
	cmd := batchCmd(c, s, items, func(r *Renewal) string { return r.Key })
	cmd.add(millis(lease))
	for i := range items {
		if items[i].Units > 0 {
			cmd.addUint(items[i].Grant).addInt(items[i].Units)
		} else {
			cmd.add(items[i].Field)
		}
	}
	for i, r := range items {
		if r.Lease != lease {
			cmd.addInt(int64(i + 1)).add(millis(r.Lease))
		}
	}
	if items[0].Units > 0 {
		cmd.add(c.opt.ClientID)
	} else if note := items[0].Note; note != "" {
		cmd.add("note", note, c.opt.Dialect.notice())
	}
	return cmd
}

// batchCmd begins a command with a script about the keys of all items.
func batchCmd[T any](c *Client, s *script, items []T, key func(*T) string) *redisCmd {
	cmd := c.scriptCmd(s, len(items), key(&items[0]))
	for i := range items {
		cmd.add(key(&items[i]))
	}
	return cmd
}

// parseRenewal reads what lua/renew.lua says of one lock, 0 or 1, or lua/renewunits.lua: twice the units, and 1 more if another
// client waits.
func parseRenewal(item Renewal, b batchAnswer) RenewReply {
	r := RenewReply{Outcome: b.outcome, SentAt: b.sentAt, Err: b.err}
	switch a, ok := b.answer.(int64); {
	case r.Outcome != OutcomeOK:
	case ok && a == 0:
		r.Outcome = OutcomeGone
	case !ok || a < 0 || (a == 1) != (item.Units == 0):
		r.Outcome, r.Err = OutcomeUnknown, ErrMalformed
	case item.Units > 0:
		r.Units, r.Contended = a/2, a%2 == 1
	}
	return r
}

// Query asks about one field.
type Query struct{ Key, Field string }

// StatusReply is the state of a field in Redis.
type StatusReply struct {
	Outcome Outcome       // OK (the field is there), Gone (concluded by a master), Failed or Unknown
	Count   int64         // the field's value; 1 for a lock of ours
	Fields  int64         // number of fields of the key; 1 where nobody intruded
	TTL     time.Duration // what is left; negative: the key has no end
	Err     error
}

// Status asks for the state of a batch of fields of one shard, in one round trip. It changes nothing. It returns one
// reply per item, in order; one bad key fails no other.
func (c *Client) Status(ctx context.Context, batch []Query, timeout time.Duration) []StatusReply {
	return askBatch(ctx, c, "status", batch, timeout, c.statusCmd, parseStatus)
}

func (c *Client) statusCmd(items []Query) *redisCmd {
	cmd := batchCmd(c, c.scripts().status, items, func(q *Query) string { return q.Key })
	for i := range items {
		cmd.add(items[i].Field)
	}
	return cmd
}

func parseStatus(_ Query, b batchAnswer) StatusReply {
	switch a := b.answer.(type) {
	case int64:
		if a == 0 {
			return StatusReply{Outcome: OutcomeGone}
		}
		if a > 0 {
			return StatusReply{Outcome: OutcomeOK, Count: 1, Fields: 1, TTL: fromMillis(a - 1)}
		}
	case []any:
		if n, ok := numbers(a, 3); ok {
			return StatusReply{Outcome: OutcomeOK, Count: n[0], Fields: n[1], TTL: fromMillis(n[2])}
		}
	}
	if b.outcome == OutcomeOK {
		return StatusReply{Outcome: OutcomeUnknown, Err: ErrMalformed}
	}
	return StatusReply{Outcome: b.outcome, Err: b.err}
}

func (r RenewReply) worst(o Outcome) Outcome  { return max(o, r.Outcome) }
func (r StatusReply) worst(o Outcome) Outcome { return max(o, r.Outcome) }

// batchAnswer is what is known of one item of a batch.
type batchAnswer struct {
	outcome Outcome
	err     error
	answer  any // with OutcomeOK; no text, which is an error
	sentAt  time.Time
}

// askBatch asks a script about many locks of one shard: with one command on a single server, and with one for each
// lock, in a pipeline, on a cluster. It returns what read makes of each answer, in order.
func askBatch[T any, R interface{ worst(Outcome) Outcome }](
	ctx context.Context, c *Client, name string, batch []T, timeout time.Duration, ask func([]T) *redisCmd, read func(T, batchAnswer) R,
) []R {
	if len(batch) == 0 {
		return nil
	}
	start, worst := time.Now(), OutcomeOK
	replies := make([]R, 0, len(batch))
	c.sendBatch(ctx, len(batch), start, timeout, func(i, n int) *redisCmd { return ask(batch[i : i+n]) }, func(i int, b batchAnswer) {
		replies = append(replies, read(batch[i], b))
		worst = replies[i].worst(worst)
	})
	c.observe(name, worst, start)
	return replies
}

// sendBatch sends what ask makes of n items from number i on, and hands the answers to each, in order.
func (c *Client) sendBatch(
	ctx context.Context, items int, now time.Time, timeout time.Duration, ask func(i, n int) *redisCmd, each func(int, batchAnswer),
) {
	size := items
	if c.Multi() {
		size = 1
	}
	var cmds []*redisCmd
	for i := 0; i < items; i += size {
		cmds = append(cmds, ask(i, size))
	}
	left := c.doAll(ctx, c.shardOf(cmds[0].key).keep, cmds, now, timeout)
	if left == nil {
		if left, again := c.oneByOne(cmds, size, now, timeout); again {
			c.sendBatch(ctx, items, time.Now(), left, ask, each)
			return
		}
	}
	for n, cmd := range cmds {
		for i := range size {
			b := cmd.item(left, i, size)
			if b.outcome != OutcomeFailed || cmd.sent() {
				b.sentAt = cmd.sentAt
			}
			each(n*size+i, b)
		}
		if left == nil {
			c.reuse(cmd)
		}
	}
}

// item is what is known of item i of a command about size ones.
func (c *redisCmd) item(left error, i, size int) batchAnswer {
	outcome, err := c.result(left)
	if outcome != OutcomeOK {
		return batchAnswer{outcome: outcome, err: err}
	}
	answers, _ := c.Val().([]any)
	if len(answers) != size {
		return batchAnswer{outcome: OutcomeUnknown, err: ErrMalformed}
	}
	if said, refused := answers[i].(string); refused {
		return batchAnswer{outcome: OutcomeFailed, err: answerError(said)}
	}
	return batchAnswer{answer: answers[i]}
}

// numbers returns the elements of a reply that must be so many integers.
func numbers(reply []any, count int) (all []int64, ok bool) {
	all = make([]int64, 0, len(reply))
	for _, v := range reply {
		n, is := v.(int64)
		if !is {
			return nil, false
		}
		all = append(all, n)
	}
	return all, len(all) == count
}
