package lettucecompat

import (
	"context"
	"strconv"
	"time"
)

// TurnRequest asks to end a turn: release the lock if anybody else waits for it and stand for it
// again, otherwise go on holding it.
type TurnRequest struct {
	Key, Field string
	// Next is the field that stands at the tail of the line if the lock is released, and
	// Attempt its number as in AcquireRequest; 0: none does. With a reply that is not known it
	// may stand, as after an acquire.
	Next    string
	Attempt uint64
	Lease   time.Duration // the time to live is raised to it when the lock is kept; that of Next
	Fenced  bool          // as in ReleaseRequest
	// RecordTime is as in AcquireRequest and ReleaseRequest.
	RecordTime time.Duration
	Tokens     int64 // to reserve when the lock is kept, or for Next when it is called; needs Fenced
	// LastToken and ReservedUpTo give tokens back, as in ReleaseRequest.
	LastToken, ReservedUpTo int64
	Timeout                 time.Duration // 0: Options.CommandTimeout
}

// TurnReply is the answer to a TurnRequest.
type TurnReply struct {
	// Outcome is OK, Gone (Next does not stand), Failed (nothing changed: still held) or
	// Unknown.
	Outcome Outcome
	Kept    bool  // with OK: nobody else waits, the lock is still ours; false: released
	Token   int64 // with Kept: first of the reserved tokens, 0 without fencing
	// Standing, Holder, TTL and Ahead, with OK and not Kept, are what an acquire of Next would
	// have been answered: see AcquireReply. Holder is "" where the lock is left open until TTL is over.
	Standing bool
	Holder   string
	TTL      time.Duration
	Ahead    int
	SentAt   time.Time // a kept lease counts from here
	Err      error
}

// EndTurn releases the lock as Release does, and stands for it with Next, in one step. Where the
// server knows that nobody else wants it, it keeps the lock for a further lease instead: nobody
// lives in the line, listens for the release, or was seen holding the lock without standing. Where
// that cannot be known it always releases: on a cluster, of which a server knows its own subscribers
// only (of the channels of shards it knows all), and without the right to ask. Where the line is left out it always releases, and nobody stands.
func (c *Client) EndTurn(ctx context.Context, r TurnRequest) (reply TurnReply) {
	start := time.Now()
	defer func() { c.observe("turn", reply.Outcome, start) }()
	k, left := c.withLine(r.Key, start, r.Timeout, func(line string, now time.Time, limit time.Duration) (*scriptParcel, error) {
		return c.sendTurn(ctx, &r, line, now, limit)
	})
	reply = c.parseTurn(&k.command, left, r.Key)
	if reply.Outcome != OutcomeFailed || k.command.sent() {
		reply.SentAt = k.sentAt
	}
	return reply
}

// sendTurn sends the request, with the line or, where that is the lock's key, without.
func (c *Client) sendTurn(ctx context.Context, r *TurnRequest, line string, now time.Time, limit time.Duration) (*scriptParcel, error) {
	k := newScriptParcel(c.scripts().turn, r.Key, line, c.fenceIf(r.Key, r.Fenced || r.Tokens > 0),
		r.Field, millis(r.Lease), c.opt.Dialect.message(r.Key, r.Field, now), c.ownSubscriptions(r.Key), c.window(),
		r.Next, strconv.FormatUint(r.Attempt, 10), c.ears(), strconv.FormatInt(r.Tokens, 10),
		strconv.FormatInt(r.LastToken, 10), strconv.FormatInt(r.ReservedUpTo, 10), recordMillis(r.RecordTime))
	return k, c.lanes(r.Key).locks.do(ctx, &k.parcel, now, limit)
}

func (c *Client) parseTurn(cmd *command, left error, key string) TurnReply {
	outcome, err := cmd.result(left)
	if outcome != OutcomeOK {
		return TurnReply{Outcome: outcome, Err: err}
	}
	answer, _ := cmd.Val().([]any)
	if len(answer) < 2 {
		return TurnReply{Outcome: OutcomeUnknown, Err: ErrMalformed}
	}
	receivers, counted := answer[1].(int64)
	switch {
	case counted && answer[0] == int64(0):
		return TurnReply{Outcome: OutcomeGone}
	case counted && answer[0] == int64(1):
		holder, ttl, ahead, _, ok := parseStanding(answer[2:])
		if !ok && len(answer) > 2 {
			break
		}
		c.published(key, int(receivers))
		return TurnReply{Outcome: OutcomeOK, Standing: ahead >= 0, Holder: holder, TTL: ttl, Ahead: max(ahead, 0)}
	case answer[0] == int64(2):
		if token, err := strconv.ParseInt(text(answer[1]), 10, 64); err == nil {
			return TurnReply{Outcome: OutcomeOK, Kept: true, Token: token}
		}
	}
	return TurnReply{Outcome: OutcomeUnknown, Err: ErrMalformed}
}
