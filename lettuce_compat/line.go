package lettucecompat

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// This file is the line: the queue in Redis of the clients that wait for a lock. The scripts
// keep it (lua/prelude.lua); docs/protocol.md says what is in it.

// Limits of a place and of a call, as in lua/prelude.lua.
const (
	maxPlaceLife = 30 * time.Second
	maxCallLease = 2 * time.Second
)

// PlaceLife is how long a place in line counts after it was confirmed, for a lock of this
// lease: after that its client is taken to be dead.
func PlaceLife(lease time.Duration) time.Duration { return min(lease, maxPlaceLife) }

// CallLease is how long Redis keeps a lock, of this lease, for the client that it has called,
// until the first renewal.
func CallLease(lease time.Duration) time.Duration { return min(lease, maxCallLease) }

// Call says that Redis has granted a lock to a field of this client that stood in line, for
// Lease from the moment on at which the client's attempt of that number was confirmed at the
// earliest. Whoever cannot tell when that was asks, with a marked repeat of the acquire.
type Call struct {
	N        uint64 // the number in the field
	Attempt  uint64
	Lease    time.Duration
	Token    int64 // first of the reserved tokens
	HasToken bool  // there are some
}

// fieldsFrom is the least number of a field whose client knows the line: such clients number
// their fields from the clock, in microseconds.
const fieldsFrom = 1_000_000_000_000_000

// Calls reports whether the client that holds a lock under this field calls the next in line
// when it releases. One that does not announces its release to all. "" is nobody.
func Calls(holder string) bool {
	_, n, ok := ParseField(holder)
	return holder == "" || ok && n >= fieldsFrom
}

// Listening reports whether calls and forced releases arrive, as far as is known.
func (c *Client) Listening() bool { return c.sub.confirmed(c.sub.own.name) }

// mode is what a script is told about this client: see open_line.
func (c *Client) mode(repeat bool) string {
	mode := 0
	if c.Multi() {
		mode |= 1
	}
	if !c.Listening() {
		mode |= 2
	}
	if repeat {
		mode |= 4
	}
	return [...]string{"", "m", "d", "md", "r", "mr", "dr", "mdr"}[mode]
}

// leftOpen is for how many milliseconds a lock is left to clients without a place: long enough
// for one that hears of it to come.
func (c *Client) leftOpen() string {
	ms := (2*c.RTT() + time.Millisecond - 1) / time.Millisecond
	return strconv.FormatInt(max(1, int64(ms)), 10)
}

// line returns the key of a lock's line, or the lock's own key, which stands for "none", where
// the line cannot be used at present.
func (c *Client) line(key string) string {
	if until := c.lineless.Load(); until != nil {
		if time.Now().Before(*until) {
			return key
		}
		c.lineless.CompareAndSwap(until, nil)
	}
	return derivedKey(linePrefix, key, func(slot uint16) uint32 { return c.tags()[slot] })
}

// inLine makes the call of a script with a line, and another one without where the line was the
// trouble: nothing has run then. It returns the last.
func (c *Client) inLine(ctx context.Context, l *lane, k *scriptCall, now time.Time, limit time.Duration) (*scriptCall, error) {
	left := l.do(ctx, &k.call, now, limit)
	if left == nil && k.command.Err() != nil {
		if again := c.withoutLine(k); again != nil {
			return again, l.do(ctx, &again.call, now, limit)
		}
	}
	return k, left
}

// withoutLine returns the call of k without the line, where k was refused for it, unexecuted;
// else nil.
func (c *Client) withoutLine(k *scriptCall) *scriptCall {
	var answer redis.Error
	args := k.command.Cmd.Args()
	if args[3] == args[4] || !errors.As(k.command.Err(), &answer) {
		return nil
	}
	switch answerCode(answer.Error()) {
	case "NOPERM":
		if !strings.Contains(answer.Error(), "key") {
			return nil
		}
		c.lineless.Store(new(time.Now().Add(refusedRetry)))
	case "TRYAGAIN", "CROSSSLOT":
	default:
		return nil
	}
	again := new(scriptCall)
	args = append([]any(nil), args...)
	args[4] = args[3]
	again.command.setScript(k.command.script, k.command.key, args)
	again.list[0] = &again.command
	again.cmds = again.list[:]
	again.wait, again.mayBeHeld = k.wait, k.mayBeHeld
	return again
}

// Place is a place in line that is to be confirmed.
type Place struct {
	Key, Field string
	Attempt    uint64 // as in AcquireRequest
}

// PlaceReply says how it stands.
type PlaceReply struct {
	// Outcome is OK (the field stands in line, or holds the lock), Gone (neither, concluded by
	// a master), Failed or Unknown.
	Outcome Outcome
	Called  bool          // with OK: it holds the lock, since it was called
	Ahead   int           // otherwise: places before it
	Holder  string        // who has the lock, "" where that is not known
	TTL     time.Duration // what is left to the holder; negative: it has no end
	SentAt  time.Time
	Err     error
}

// Confirm says of a batch of places of one shard that they are wanted still, in one round trip.
// It makes no place, and takes no lock for a field that has none; where it finds a lock free it
// calls the first in line. One bad key fails no other.
func (c *Client) Confirm(ctx context.Context, batch []Place, timeout time.Duration) []PlaceReply {
	start := time.Now()
	replies := askBatch(ctx, c, batch, start, timeout, toPlaces, c.confirmCommand, parsePlace)
	worst := OutcomeOK
	for i := range replies {
		worst = max(worst, replies[i].Outcome)
	}
	c.observe("confirm", worst, start)
	return replies
}

func toPlaces(s *shard) *lane { return s.places }

func (c *Client) confirmCommand(items []Place) *command {
	args := batchArgs(confirmScript, 2*len(items), 4*len(items)+1)
	for i := range items {
		args = append(args, items[i].Key)
	}
	for i := range items {
		args = append(args, c.line(items[i].Key))
	}
	args = append(args, c.mode(false))
	for i := range items {
		args = append(args, items[i].Field, strconv.FormatUint(items[i].Attempt, 10))
	}
	return newBatchCommand(confirmScript, items[0].Key, args)
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
		switch {
		case len(a) == 2 && a[0] == int64(2):
			ttl, ok := a[1].(int64)
			if r.Called, r.TTL = true, fromMillis(ttl); ok {
				return r
			}
		case len(a) == 4 && a[0] == int64(1):
			ahead, ok1 := a[1].(int64)
			ttl, ok2 := a[2].(int64)
			if r.Ahead, r.TTL, r.Holder = int(ahead), fromMillis(ttl), text(a[3]); ok1 && ok2 {
				return r
			}
		}
	}
	r.Outcome, r.Err = OutcomeUnknown, ErrMalformed
	return r
}
