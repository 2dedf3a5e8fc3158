package lettucecompat

import (
	"context"
	"strconv"
	"time"
)

// ReleaseRequest asks that one field of ours is removed, with its place, and that the next one in line
// gets the lock.
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
	// Outcome is OK (our field was there, or its mark, or its place), Gone, Failed or Unknown. What
	// Gone means after an Unknown is for the caller to say: it may have been this
	// request that removed the field.
	Outcome Outcome
	Marked  bool // with OK: only the mark of an earlier release with Keep was there
	Left    bool // with OK: only a place of the field in the line was there
	Err     error
}

// Release removes the field and its place in the line, publishes the release, and gives the lock to
// the next one in line. It never removes the field of another. On Failed nothing was changed.
func (c *Client) Release(ctx context.Context, r ReleaseRequest) (reply ReleaseReply) {
	start := time.Now()
	defer func() { c.observe("release", reply.Outcome, start) }()
	k, left := c.withLine(r.Key, start, r.Timeout, func(line string, now time.Time, limit time.Duration) (*scriptParcel, error) {
		return c.sendRelease(ctx, &r, line, now, limit)
	})
	return c.parseRelease(&k.command, left, r.Key)
}

// sendRelease sends the request, with the line or, where that is the lock's key, without.
func (c *Client) sendRelease(ctx context.Context, r *ReleaseRequest, line string, now time.Time, limit time.Duration) (*scriptParcel, error) {
	argv := append(make([]any, 0, 8), r.Field, c.opt.Dialect.message(r.Key, r.Field, now), c.ownSubscriptions(r.Key), c.window())
	fence := ""
	if fenced := r.Fenced || r.ReservedUpTo > 0; fenced || r.Keep > 0 { // otherwise the rest says nothing
		fence = c.fenceIf(r.Key, fenced)
		keep := "0"
		if r.Keep > 0 {
			keep = millis(r.Keep)
		}
		argv = append(argv, keep, strconv.FormatInt(r.LastToken, 10), strconv.FormatInt(r.ReservedUpTo, 10), recordMillis(r.RecordTime))
	}
	k := newScriptParcel(c.scripts().release, r.Key, line, fence, argv...)
	k.mayBeHeld = r.MayBeHeld
	return k, c.lanes(r.Key).locks.do(ctx, &k.parcel, now, limit)
}

func (c *Client) parseRelease(cmd *command, left error, key string) ReleaseReply {
	outcome, err := cmd.result(left)
	if outcome != OutcomeOK {
		return ReleaseReply{Outcome: outcome, Err: err}
	}
	switch answer := cmd.Val().(type) {
	case int64:
		if answer >= -2 {
			c.published(key, int(answer))
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
	if err := c.CheckKey(key); err != nil {
		return nil, err
	}
	start := time.Now()
	before, after := forcedParts(key)
	k, outcome, err := c.oneWithLine(ctx, c.lanes(key).locks, key, start, 0, func(line string) *scriptParcel {
		return newScriptParcel(c.scripts().force, key, line, c.fence(key), c.opt.Dialect.message(key, c.opt.ClientID, start),
			before, after, c.ownSubscriptions(key), c.window(), recordMillis(0))
	})
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
