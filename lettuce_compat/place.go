package lettucecompat

import (
	"context"
	"strconv"
	"time"
)

// Place is a field of this client that stands in line for a lock.
type Place struct {
	Key, Field string
	Attempt    uint64 // of this confirmation, see AcquireRequest
}

// PlaceReply is the answer to the confirmation of a Place.
type PlaceReply struct {
	// Outcome is OK (standing or called), Gone (neither, concluded by a master), Failed or
	// Unknown; the last two may be repeated.
	Outcome Outcome
	Called  bool // with OK: the field holds the lock; false: it stands, Ahead others before it
	Ahead   int
	TTL     time.Duration // what is left to the holder, or to the field that was called
	Holder  string        // while it stands; "" where the lock is free, and better asked for again when TTL is over
	SentAt  time.Time     // zero if the command was never sent
	Err     error
}

// Confirm says that places of one shard are still wanted, at most some hundred, and asks how they
// stand, in one round trip. It never makes a place, and never takes a lock for a field without
// one. A lock that it finds free goes to the first in its line. It returns one reply per item, in order; one
// bad key fails no other.
func (c *Client) Confirm(ctx context.Context, batch []Place, timeout time.Duration) []PlaceReply {
	if len(batch) == 0 {
		return nil
	}
	start := time.Now()
	replies := askBatch(ctx, c, c.lanes(batch[0].Key).places, batch, start, timeout, c.confirmCommand, parsePlace)
	worst := OutcomeOK
	for i := range replies {
		worst = max(worst, replies[i].Outcome)
	}
	c.observe("confirm", worst, start)
	return replies
}

func (c *Client) confirmCommand(items []Place) *command {
	args := batchArgs(c.scripts().confirm, 2*len(items), 4*len(items)+2)
	for i := range items {
		args = append(args, items[i].Key)
	}
	for i := range items {
		args = append(args, derivedKey(linePrefix, items[i].Key, func(slot uint16) uint32 { return c.tags()[slot] }))
	}
	args = append(args, c.ears(), flag(c.Multi()))
	for i := range items {
		args = append(args, items[i].Field, strconv.FormatUint(items[i].Attempt, 10))
	}
	return newBatchCommand(c.scripts().confirm, items[0].Key, args)
}

func parsePlace(outcome Outcome, err error, answer any, sentAt time.Time) PlaceReply {
	r := PlaceReply{Outcome: outcome, SentAt: sentAt, Err: err}
	if outcome != OutcomeOK {
		return r
	}
	switch a := answer.(type) {
	case int64:
		if a == 0 {
			r.Outcome = OutcomeGone
			return r
		}
	case string:
		r.Outcome, r.Err = OutcomeFailed, scriptError(a)
		return r
	case []any:
		if len(a) == 2 && a[0] == int64(2) {
			if ttl, ok := a[1].(int64); ok {
				r.Called, r.TTL = true, fromMillis(ttl)
				return r
			}
		}
		if len(a) == 4 && a[0] == int64(1) {
			ahead, ok1 := a[1].(int64)
			ttl, ok2 := a[2].(int64)
			if ok1 && ok2 {
				r.Ahead, r.TTL, r.Holder = int(ahead), fromMillis(ttl), text(a[3])
				return r
			}
		}
	}
	r.Outcome, r.Err = OutcomeUnknown, ErrMalformed
	return r
}
