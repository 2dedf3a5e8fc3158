package lettucecompat

import (
	"context"
	"strconv"
	"time"
)

// TurnRequest asks to end a turn: release the lock if anybody else waits for it,
// otherwise go on holding it.
type TurnRequest struct {
	Key, Field string
	Lease      time.Duration // the time to live is raised to it when the lock is kept
	Fenced     bool          // as in ReleaseRequest
	RecordTime time.Duration // as in AcquireRequest and ReleaseRequest
	Tokens     int64         // to reserve for the next turn when the lock is kept; needs Fenced
	// LastToken and ReservedUpTo give tokens back when the lock is released.
	LastToken, ReservedUpTo int64
	Timeout                 time.Duration // 0: Options.CommandTimeout
}

// TurnReply is the answer to a TurnRequest.
type TurnReply struct {
	// Outcome is OK, Gone, Failed (nothing changed: still held) or Unknown.
	Outcome Outcome
	Kept    bool      // with OK: nobody else waits, the lock is still ours; false: released
	Token   int64     // with Kept: first of the reserved tokens, 0 without fencing
	Others  int       // subscribers of the release channel beside this client; -1: not known
	SentAt  time.Time // a kept lease counts from here
	Err     error
}

// EndTurn releases the lock exactly as Release does, unless the server knows that no
// other connection listens for its release; then it keeps it for a further lease. On a
// cluster, or where PUBSUB is forbidden, that cannot be known and it always releases; on a
// cluster that the client hides, only once that was found (see hidden.go).
func (c *Client) EndTurn(ctx context.Context, r TurnRequest) TurnReply {
	start := time.Now()
	reply := c.endTurn(ctx, r, start)
	c.observe("turn", reply.Outcome, start)
	return reply
}

func (c *Client) endTurn(ctx context.Context, r TurnRequest, now time.Time) TurnReply {
	channel := c.dialect.channel(r.Key)
	own := "-1"
	if !c.Multi() {
		own = flag(c.sub.confirmed(channel))
	}
	k := newScriptCall(c.dialect.scripts.turn, r.Key, c.fenceIf(r.Key, r.Fenced || r.Tokens > 0),
		r.Field, millis(r.Lease), channel, c.dialect.message(r.Key, r.Field, now), own,
		strconv.FormatInt(max(r.Tokens, 1), 10),
		strconv.FormatInt(r.LastToken, 10), strconv.FormatInt(r.ReservedUpTo, 10), recordMillis(r.RecordTime))
	left := c.lanes(r.Key).locks.do(ctx, &k.call, now, r.Timeout)
	reply := c.parseTurn(&k.command, left, channel)
	if reply.Outcome != OutcomeFailed || k.command.sent() {
		reply.SentAt = k.sentAt
	}
	return reply
}

func (c *Client) parseTurn(cmd *command, left error, channel string) TurnReply {
	outcome, err := cmd.result(left)
	if outcome != OutcomeOK {
		return TurnReply{Outcome: outcome, Others: -1, Err: err}
	}
	answer, _ := cmd.Val().([]any)
	if len(answer) != 3 {
		return TurnReply{Outcome: OutcomeUnknown, Others: -1, Err: ErrMalformed}
	}
	others, ok := answer[1].(int64)
	receivers, counted := answer[2].(int64)
	switch {
	case ok && counted && answer[0] == int64(0):
		return TurnReply{Outcome: OutcomeGone, Others: -1}
	case ok && counted && answer[0] == int64(1):
		c.warn.published(channel, int(receivers))
		return TurnReply{Outcome: OutcomeOK, Others: int(others)}
	case ok && answer[0] == int64(2):
		if token, err := strconv.ParseInt(text(answer[2]), 10, 64); err == nil {
			return TurnReply{Outcome: OutcomeOK, Kept: true, Token: token}
		}
	}
	return TurnReply{Outcome: OutcomeUnknown, Others: -1, Err: ErrMalformed}
}
