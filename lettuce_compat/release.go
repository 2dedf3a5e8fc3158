package lettucecompat

import (
	"context"
	"strconv"
	"time"
)

// ReleaseRequest asks that one field of ours is removed, and that waiters are told.
// Sending it again is harmless.
type ReleaseRequest struct {
	Key, Field string
	// Keep leaves the key taken for so long (MinHold): a mark that belongs to nobody
	// replaces the field. 0 frees the key at once.
	Keep time.Duration
	// Fenced says that the grant touched the fencing record, also where its tokens are
	// not known. The record then forgets the grantee, so that no late renewal takes the
	// lock again.
	Fenced     bool
	RecordTime time.Duration // that the record lives from then on; 0: DefaultRecordTime
	// LastToken and ReservedUpTo give the tokens between them back, unless somebody
	// reserved after us. ReservedUpTo 0 gives nothing back.
	LastToken, ReservedUpTo int64
	Timeout                 time.Duration // 0: Options.CommandTimeout
	MayBeHeld               bool          // as in AcquireRequest
}

// ReleaseReply is the answer to a ReleaseRequest.
type ReleaseReply struct {
	// Outcome is OK (our field was there, or its mark), Gone, Failed or Unknown. What
	// Gone means after an Unknown is for the caller to say: it may have been this
	// request that removed the field.
	Outcome Outcome
	Marked  bool // with OK: only the mark of an earlier release with Keep was there
	Left    bool // with OK: only a place in line was there
	Err     error
}

// Release removes the field, or its place in line, publishes the release and calls the next in
// line. It never removes the field of
// another. On Failed nothing was changed.
func (c *Client) Release(ctx context.Context, r ReleaseRequest) (reply ReleaseReply) {
	start := time.Now()
	defer func() { c.observe("release", reply.Outcome, start) }()
	channel, fence := releasePrefix+r.Key, ""
	argv := append(make([]any, 0, 8), r.Field, releaseMessage(r.Key, r.Field, start), c.mode(false), c.leftOpen())
	if fenced := r.Fenced || r.ReservedUpTo > 0; fenced || r.Keep > 0 { // otherwise the rest says nothing
		fence = c.fenceIf(r.Key, fenced)
		keep := "0"
		if r.Keep > 0 {
			keep = millis(r.Keep)
		}
		argv = append(argv, keep, strconv.FormatInt(r.LastToken, 10), strconv.FormatInt(r.ReservedUpTo, 10), recordMillis(r.RecordTime))
	}
	k := newScriptCall(releaseScript, r.Key, c.line(r.Key), fence, argv...)
	k.mayBeHeld = r.MayBeHeld
	k, left := c.inLine(ctx, c.lanes(r.Key).locks, k, start, r.Timeout)
	outcome, err := k.command.result(left)
	if outcome != OutcomeOK {
		return ReleaseReply{Outcome: outcome, Err: err}
	}
	switch answer := k.command.Val().(type) {
	case int64:
		if answer >= -1 {
			c.warn.published(channel, int(answer))
			return ReleaseReply{Outcome: OutcomeOK}
		}
	case []any:
		switch {
		case len(answer) != 2 || answer[1] != int64(0):
		case answer[0] == int64(0):
			return ReleaseReply{Outcome: OutcomeGone}
		case answer[0] == int64(2):
			return ReleaseReply{Outcome: OutcomeOK, Marked: true}
		case answer[0] == int64(3):
			return ReleaseReply{Outcome: OutcomeOK, Left: true}
		}
	}
	return ReleaseReply{Outcome: OutcomeUnknown, Err: ErrMalformed}
}

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
	// Next is the field that stands in line afterwards, for the same lease, where the lock is
	// released, and Attempt is as in AcquireRequest.
	Next    string
	Attempt uint64
}

// TurnReply is the answer to a TurnRequest.
type TurnReply struct {
	// Outcome is OK, Gone, Failed (nothing changed: still held) or Unknown.
	Outcome Outcome
	Kept    bool      // with OK: nobody else waits, the lock is still ours; false: released
	Token   int64     // with Kept: first of the reserved tokens, 0 without fencing
	// With OK and not Kept: Standing, the next field has a place in line, with Ahead places
	// before it, while Holder has the lock for TTL more.
	Standing bool
	Holder   string
	TTL      time.Duration
	Ahead    int
	SentAt   time.Time // a kept lease counts from here
	Err     error
}

// EndTurn releases the lock exactly as Release does, unless the server knows that no
// other connection listens for its release; then it keeps it for a further lease. On a
// cluster, or where PUBSUB is forbidden, that cannot be known and it always releases; on a
// cluster that the client hides, only once that was found (see cluster.go).
func (c *Client) EndTurn(ctx context.Context, r TurnRequest) (reply TurnReply) {
	start := time.Now()
	defer func() { c.observe("turn", reply.Outcome, start) }()
	channel := releasePrefix + r.Key
	own := "-1"
	if !c.Multi() {
		own = flag(c.sub.confirmed(channel))
	}
	k := newScriptCall(turnScript, r.Key, c.line(r.Key), c.fenceIf(r.Key, r.Fenced || r.Tokens > 0),
		r.Field, millis(r.Lease), releaseMessage(r.Key, r.Field, start), c.mode(false), c.leftOpen(), own,
		r.Next, strconv.FormatUint(r.Attempt, 10), strconv.FormatInt(max(r.Tokens, 1), 10),
		strconv.FormatInt(r.LastToken, 10), strconv.FormatInt(r.ReservedUpTo, 10), recordMillis(r.RecordTime))
	k, left := c.inLine(ctx, c.lanes(r.Key).locks, k, start, r.Timeout)
	reply = c.parseTurn(&k.command, left, channel)
	if reply.Outcome != OutcomeFailed || k.command.sent() {
		reply.SentAt = k.sentAt
	}
	return reply
}

func (c *Client) parseTurn(cmd *command, left error, channel string) TurnReply {
	outcome, err := cmd.result(left)
	if outcome != OutcomeOK {
		return TurnReply{Outcome: outcome, Err: err}
	}
	if answer, _ := cmd.Val().([]any); len(answer) == 2 || len(answer) == 5 {
		receivers, counted := answer[1].(int64)
		switch {
		case counted && answer[0] == int64(0):
			return TurnReply{Outcome: OutcomeGone}
		case counted && answer[0] == int64(1):
			c.warn.published(channel, int(receivers))
			reply := TurnReply{Outcome: OutcomeOK}
			if len(answer) == 5 {
				ttl, ok1 := answer[3].(int64)
				ahead, ok2 := answer[4].(int64)
				if !ok1 || !ok2 {
					break
				}
				reply.Standing, reply.Holder, reply.TTL, reply.Ahead = true, text(answer[2]), fromMillis(ttl), int(ahead)
			}
			return reply
		case answer[0] == int64(2):
			if token, err := strconv.ParseInt(text(answer[1]), 10, 64); err == nil {
				return TurnReply{Outcome: OutcomeOK, Kept: true, Token: token}
			}
		}
	}
	return TurnReply{Outcome: OutcomeUnknown, Err: ErrMalformed}
}

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
	k := newScriptCall(forceScript, key, c.line(key), c.fence(key),
		releasePrefix+key, releaseMessage(key, c.opt.ClientID, start),
		ownPrefix, before, after, c.mode(false))
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
