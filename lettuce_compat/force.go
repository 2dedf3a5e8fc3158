package lettucecompat

import (
	"context"
	"strconv"
	"time"
)

// ForceRelease deletes the lock, of whatever kind and whatever client holds it, publishes the release, and notifies the client behind each
// deleted field immediately, on that client's own channel. It asks the first two in line to retry. It returns the
// deleted fields, "" for a string, the clients of an RWMutex or a Semaphore, none if the lock was free. What is no lock is a permanent error and stays; strings
// says whether a string is one. After an error whose class is unknown the lock may be deleted or not; asking again is
// harmless.
//
// A caller that ran under the lock still runs until the message arrives: exclusion is broken on purpose.
func (c *Client) ForceRelease(ctx context.Context, key string, strings bool) (released []string, err error) {
	if err := c.CheckKey(key); err != nil {
		return nil, err
	}
	start := time.Now()
	cmd, left := c.script(ctx, c.senders(key).locks, key, start, 0, true, func(line string) *scriptRequest {
		return newScriptRequest(c.scripts().force, key, line, "", c.opt.Dialect.message(key, c.opt.ClientID, start), stringsFlag(strings), c.multi())
	})
	outcome, err := cmd.result(left)
	c.observe("force", outcome, start)
	if err != nil {
		return nil, err
	}
	fields, ok := cmd.Val().([]any)
	if !ok {
		return nil, ErrMalformed
	}
	for _, f := range fields {
		if f != unitsHeader {
			released = append(released, text(f))
		}
	}
	return released, nil
}

// Taking asks that the lock is taken from its holder and given to a place of this client, ahead of the line.
type Taking struct {
	Key   string
	From  string // the field that it is taken from, or nothing happens; "": from any holder
	Place uint64 // the number of the last statement about the place
	Unit  uint64 // the number of the unit that the place becomes, which no other command uses
	Terms *Terms
}

// TakeReply is the answer to a Taking.
type TakeReply struct {
	// Outcome is OK, Gone (the field is not there), Refused (the place is not, or was confirmed since), Failed or Unknown.
	// After Unknown the next confirmation of the place settles it; otherwise nothing has changed.
	Outcome   Outcome
	Token     int64         // with Terms.Fenced
	Contended bool          // another client waits
	Lease     time.Duration // for so long the unit is there, counted from a moment after the command was sent
	Err       error
}

// Take takes the lock. It notifies the client behind each field that had it, as ForceRelease does.
func (c *Client) Take(ctx context.Context, t Taking, timeout time.Duration) (r TakeReply) {
	start, fence := time.Now(), ""
	defer func() { c.observe("take", r.Outcome, start) }()
	if t.Terms.Fenced {
		fence = c.fence(t.Key)
	}
	terms := t.Terms.of(c)
	k := newScriptRequest(c.scripts().force, t.Key, c.line(t.Key), fence, c.opt.Dialect.notice(), stringsFlag(t.Terms.Strings), c.multi(),
		t.From, c.id, strconv.FormatUint(t.Place, 10), strconv.FormatUint(t.Unit, 10), terms.call, terms.record)
	if r.Outcome, r.Err = c.one(ctx, c.senders(t.Key).locks, &k.request, start, timeout); r.Outcome != OutcomeOK {
		return r
	}
	answer, _ := k.command.Val().([]any)
	switch {
	case len(answer) == 1 && text(answer[0]) == "gone":
		r.Outcome = OutcomeGone
	case len(answer) == 1 && text(answer[0]) == "place":
		r.Outcome = OutcomeRefused
	case len(answer) == 4 && text(answer[0]) == "has":
		r.Contended = answer[2] == int64(1)
		ms, _ := answer[3].(int64)
		r.Lease = time.Duration(ms) * time.Millisecond
		r.Token, _ = strconv.ParseInt(text(answer[1]), 10, 64)
	default:
		r.Outcome, r.Err = OutcomeUnknown, ErrMalformed
	}
	return r
}

// multi is the argument that says to a script whether NUMSUB knows nothing.
func (c *Client) multi() any {
	if c.Multi() {
		return "m"
	}
	return ""
}

// stringsFlag is the argument that says to a script whether a string is a lock.
func stringsFlag(strings bool) any {
	if strings {
		return "s"
	}
	return ""
}
