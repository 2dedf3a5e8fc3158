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
}

// ReleaseReply is the answer to a ReleaseRequest.
type ReleaseReply struct {
	// Outcome is OK (our field was there, or its mark), Gone, Failed or Unknown. What
	// Gone means after an Unknown is for the caller to say: it may have been this
	// request that removed the field.
	Outcome   Outcome
	Marked    bool // with OK: only the mark of an earlier release with Keep was there
	Receivers int  // that the message reached on that server; -1: the publication was refused
	Err       error
}

// Release removes the field and publishes the release. It never removes the field of
// another. On Failed nothing was changed.
func (c *Client) Release(ctx context.Context, r ReleaseRequest) ReleaseReply {
	start := time.Now()
	reply := c.release(ctx, r, start)
	c.observe("release", reply.Outcome, start)
	return reply
}

func (c *Client) release(ctx context.Context, r ReleaseRequest, now time.Time) ReleaseReply {
	channel := c.dialect.channel(r.Key)
	argv := append(make([]any, 0, 7), r.Field, channel, c.dialect.message(r.Key, r.Field, now))
	fenced := r.Fenced || r.ReservedUpTo > 0
	if fenced || r.Keep > 0 { // otherwise the rest says nothing
		keep := "0"
		if r.Keep > 0 {
			keep = millis(r.Keep)
		}
		argv = append(argv, keep, strconv.FormatInt(r.LastToken, 10), strconv.FormatInt(r.ReservedUpTo, 10), recordMillis(r.RecordTime))
	}
	k := newScriptCall(c.dialect.scripts.release, r.Key, c.fenceIf(r.Key, fenced), argv...)
	outcome, err := c.one(ctx, c.lanes(r.Key).locks, &k.call, now, r.Timeout)
	if outcome != OutcomeOK {
		return ReleaseReply{Outcome: outcome, Err: err}
	}
	switch answer := k.command.Val().(type) {
	case int64:
		if answer >= -1 {
			c.warn.published(channel, int(answer))
			return ReleaseReply{Outcome: OutcomeOK, Receivers: int(answer)}
		}
	case []any:
		switch {
		case len(answer) != 2 || answer[1] != int64(0):
		case answer[0] == int64(0):
			return ReleaseReply{Outcome: OutcomeGone}
		case answer[0] == int64(2):
			return ReleaseReply{Outcome: OutcomeOK, Marked: true}
		}
	}
	return ReleaseReply{Outcome: OutcomeUnknown, Err: ErrMalformed}
}

// one sends a call of a single command down a lane and returns what is known about it.
func (c *Client) one(ctx context.Context, l *lane, k *call, now time.Time, limit time.Duration) (Outcome, error) {
	left := l.do(ctx, k, now, limit)
	return k.cmds[0].result(left)
}
