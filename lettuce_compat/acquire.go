package lettucecompat

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"
)

// AcquireRequest asks for a lock once.
type AcquireRequest struct {
	Key   string        // any bytes
	Field string        // a fresh field of this client, see NewField
	Lease time.Duration // how long Redis keeps the grant unless it is renewed; at least 1 ms
	// Repeat marks a further attempt with the same field, after an outcome that is not known, or
	// for a field that stands: only then may the field be there already, and counts as granted.
	Repeat bool
	// Drop names burnt fields of this client (attempts that nobody wants any more);
	// those that are there are removed first, in the same step.
	Drop []string
	// GiveBack returns unused tokens of one dropped field before new ones are reserved,
	// so that the counter does not run ahead of the server's clock.
	GiveBack GiveBack
	// Tokens is the number of fencing tokens to reserve; 0 leaves the fencing record alone.
	Tokens int64
	// RecordTime is how long the fencing record lives after the server's clock has reached
	// the last of them. 0 means DefaultRecordTime.
	RecordTime time.Duration
	// Replicas is the number of replicas that must confirm the grant within
	// ReplicaTimeout (default: half the time limit). Keep that below the client's ReadTimeout.
	Replicas       int
	ReplicaTimeout time.Duration
	// Timeout limits the command, 0 means Options.CommandTimeout. Waiting for replicas
	// comes on top.
	Timeout time.Duration
	// Attempt numbers the sends of a field: it grows by one for each acquire and
	// confirmation of it, and begins at a random number from 2^40 to 2^52, so that nobody
	// who has not seen the line can name it. An attempt that is refused takes a place in the
	// line, or confirms the one that is there. 0: it does not stand.
	Attempt uint64
	// Strings: a string at the key is a lock of another library, by which the attempt is refused,
	// with no Holder. It does not stand then, whatever Attempt says, since such a lock calls nobody.
	Strings bool
	// MayBeHeld: the caller cannot leave, and may be held for the client's own time limits
	// while Redis hangs. So it may send the command itself, also on a client that does not
	// mind deadlines.
	MayBeHeld bool
}

// GiveBack names tokens that a grant had reserved and did not use: those above
// LastToken up to ReservedUpTo. They go back only if nobody has reserved since. The zero
// value gives nothing back.
type GiveBack struct {
	Field                   string
	LastToken, ReservedUpTo int64
}

// AcquireReply is the answer to an AcquireRequest.
type AcquireReply struct {
	// Outcome is OK (granted), Refused, Failed or Unknown. After Unknown the field may
	// be there, or come later: repeat the attempt marked as Repeat, or remove the field.
	Outcome Outcome
	Token   int64         // first of the reserved tokens; 0 without fencing
	Found   bool          // the field, or of a refusal its place, was there: one of the earlier sends has taken effect
	Dropped string        // of a grant or a refusal: which of the fields in Drop was there, "" if none was
	Holder  string        // of a refusal: the field that holds the lock, "" if it is not known
	TTL     time.Duration // of a refusal: what is left to the holder, or how soon it had better ask again; negative: no end
	// Standing, of a refusal: the field has a place in the line, with Ahead others before it.
	// False where the line is left out, or a newer field of this client stands already.
	Standing bool
	Ahead    int
	SentAt   time.Time // taken before the command was sent; zero if it never was
	Err      error
}

// TryAcquire asks for the lock once and does not wait for it. It returns when Redis has
// answered, ctx ends, or the time limit is reached, whichever is first. A key of another
// type is a permanent error and stays as it is (but see AcquireRequest.Strings).
func (c *Client) TryAcquire(ctx context.Context, r AcquireRequest) (reply AcquireReply) {
	start := time.Now()
	defer func() { c.observe("acquire", reply.Outcome, start) }()
	if err := c.CheckKey(r.Key); err != nil {
		return AcquireReply{Outcome: OutcomeFailed, Err: err}
	}
	limit := cmp.Or(r.Timeout, c.opt.CommandTimeout)
	k, left := c.withLine(r.Key, start, limit, func(line string, now time.Time, limit time.Duration) (*scriptParcel, error) {
		return c.sendAcquire(ctx, &r, line, now, limit)
	})
	reply = parseAcquire(&k.command, left)
	if reply.Outcome != OutcomeFailed || k.command.sent() {
		reply.SentAt = k.sentAt
	}
	if reply.Outcome == OutcomeOK && k.wait != nil {
		c.judgeReplicas(ctx, r, k.wait, &reply)
	}
	return reply
}

// sendAcquire sends the request, with the line or, where that is the lock's key, without.
func (c *Client) sendAcquire(ctx context.Context, r *AcquireRequest, line string, now time.Time, limit time.Duration) (*scriptParcel, error) {
	k, lanes := c.acquireCall(r, line), c.lanes(r.Key)
	lane := lanes.locks
	if r.Replicas > 0 {
		lane = lanes.synced
		k.wait = &waitFor{replicas: r.Replicas, timeout: r.ReplicaTimeout}
		if k.wait.timeout <= 0 {
			k.wait.timeout = limit / 2
		}
		limit += k.wait.timeout
	}
	k.mayBeHeld = r.MayBeHeld
	return k, lane.do(ctx, &k.parcel, now, limit)
}

// acquireCall is the script with what it is told. What says nothing at the end is left out: of
// most requests all but the first.
func (c *Client) acquireCall(r *AcquireRequest, line string) *scriptParcel {
	plain := !r.Repeat && r.Tokens == 0 && len(r.Drop) == 0
	multi := c.Multi()
	ears := c.ears()
	if plain && r.Attempt == 0 && !r.Strings && !multi && ears != mute {
		return newScriptParcel(c.scripts().acquire, r.Key, line, "", r.Field, millis(r.Lease))
	}
	attempt := "0"
	switch {
	case r.Strings:
		attempt = "strings"
	case r.Attempt > 0:
		attempt = strconv.FormatUint(r.Attempt, 10)
	}
	switch {
	case plain && !multi && ears == hearing:
		return newScriptParcel(c.scripts().acquire, r.Key, line, "", r.Field, millis(r.Lease), attempt)
	case plain:
		return newScriptParcel(c.scripts().acquire, r.Key, line, "", r.Field, millis(r.Lease), attempt, ears, flag(multi))
	}
	argv := append(
		make([]any, 0, 11+len(r.Drop)), r.Field, millis(r.Lease), attempt, ears, flag(multi), flag(r.Repeat), strconv.FormatInt(r.Tokens, 10),
		r.GiveBack.Field, strconv.FormatInt(r.GiveBack.LastToken, 10), strconv.FormatInt(r.GiveBack.ReservedUpTo, 10),
		recordMillis(r.RecordTime),
	)
	for _, field := range r.Drop {
		argv = append(argv, field)
	}
	return newScriptParcel(c.scripts().acquire, r.Key, line, c.fenceIf(r.Key, r.Tokens > 0), argv...)
}

// judgeReplicas judges the answer of the replicas. With too few, the field is removed at
// once; where that is not certain, the outcome is unknown and the caller cleans up.
func (c *Client) judgeReplicas(ctx context.Context, r AcquireRequest, w *waitFor, reply *AcquireReply) {
	if w.err == nil && w.synced >= r.Replicas {
		return
	}
	err := fmt.Errorf("%w: %d of %d within %v", ErrReplicas, w.synced, r.Replicas, w.timeout)
	if w.err != nil {
		err = fmt.Errorf("%w: %w", err, w.err)
	}
	released := c.Release(ctx, ReleaseRequest{Key: r.Key, Field: r.Field, Fenced: r.Tokens > 0, RecordTime: r.RecordTime, Timeout: r.Timeout})
	reply.Outcome, reply.Err, reply.Token = OutcomeRefused, err, 0
	if released.Outcome != OutcomeOK && released.Outcome != OutcomeGone {
		reply.Outcome = OutcomeUnknown
	}
}

func parseAcquire(cmd *command, left error) AcquireReply {
	outcome, err := cmd.result(left)
	if outcome != OutcomeOK {
		return AcquireReply{Outcome: outcome, Err: err}
	}
	if cmd.Val() == int64(1) {
		return AcquireReply{Outcome: OutcomeOK}
	}
	answer, _ := cmd.Val().([]any)
	if len(answer) == 4 && answer[0] == int64(1) {
		token, err := strconv.ParseInt(text(answer[1]), 10, 64)
		if err == nil {
			return AcquireReply{Outcome: OutcomeOK, Token: token, Found: answer[2] == int64(1), Dropped: text(answer[3])}
		}
	}
	if len(answer) >= 3 && answer[0] == int64(0) {
		dropped := ""
		if last := len(answer) - 1; last%2 == 1 {
			answer, dropped = answer[:last], text(answer[last])
		}
		if holder, ttl, ahead, found, ok := parseStanding(answer[1:]); ok {
			return AcquireReply{
				Outcome: OutcomeRefused, Holder: holder, TTL: ttl, Dropped: dropped,
				Standing: ahead >= 0, Ahead: max(ahead, 0), Found: found,
			}
		}
	}
	return AcquireReply{Outcome: OutcomeUnknown, Err: ErrMalformed}
}

// millis prints a duration in milliseconds, rounded up: Redis must never end a lease
// before its holder thinks that it ends. At least 1, since 0 would delete the key.
func millis(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Millisecond-1)/time.Millisecond)), 10)
}

// recordMillis prints how long a fencing record lives.
func recordMillis(d time.Duration) string {
	if d <= 0 {
		d = DefaultRecordTime
	}
	return millis(d)
}

// fromMillis turns the answer of PTTL into a duration, negative for no end.
func fromMillis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// flag is an argument of a script: of type any, so that no string is allocated for it.
func flag(b bool) any {
	if b {
		return "1"
	}
	return "0"
}

// text returns a bulk string of a reply, "" for anything else.
func text(v any) string {
	s, _ := v.(string)
	return s
}
