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
	cmd, left := c.script(ctx, c.shardOf(key).locks, key, start, 0, true, func(lined bool) *redisCmd {
		message := string(c.opt.Dialect.appendMessage(nil, key, []byte(c.opt.ClientID), start))
		return c.newScriptCmd(c.scripts().force, key, lined, "", message, flag("s", strings), flag("m", c.Multi()))
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
	Place uint64 // the number of the last command about the place
	Unit  uint64 // the number of the unit that the place becomes, which no other command uses
	Terms *Terms
}

// Take takes the lock, and answers WordHas; WordGone: the field is not there; WordRefused: the place is not, or was confirmed since.
// After OutcomeUnknown the next confirmation of the place settles it; otherwise nothing has changed. It notifies the client behind
// each field that had the lock, as ForceRelease does.
func (c *Client) Take(ctx context.Context, t Taking, timeout time.Duration) (a Answer) {
	start, fence := time.Now(), ""
	defer func() { c.observe("take", a.Outcome, start) }()
	if t.Terms.Fenced {
		fence = c.fence(t.Key)
	}
	terms := t.Terms.of(c)
	cmd := c.newScriptCmd(c.scripts().force, t.Key, true, fence, c.opt.Dialect.notice(), flag("s", t.Terms.Strings), flag("m", c.Multi()),
		t.From, c.opt.ClientID, strconv.FormatUint(t.Place, 10), strconv.FormatUint(t.Unit, 10), terms.call, terms.record)
	if a.Outcome, a.Err = c.one(ctx, c.shardOf(t.Key).locks, cmd, start, timeout); a.Outcome != OutcomeOK {
		return a
	}
	v, _ := cmd.Val().([]any)
	switch {
	case len(v) == 1 && text(v[0]) == "gone":
		a.Word = WordGone
	case len(v) == 1 && text(v[0]) == "place":
		a.Word = WordRefused
	case len(v) == 4 && text(v[0]) == "has":
		ms, _ := v[3].(int64)
		a.Word, a.Units, a.TTL, a.Unit, a.Contended = WordHas, 1, fromMillis(ms), t.Unit, v[2] == int64(1)
		a.Token, _ = strconv.ParseInt(text(v[1]), 10, 64)
	default:
		a.Outcome, a.Err = OutcomeUnknown, ErrMalformed
	}
	return a
}

// flag is an argument that says something to a script, or nothing: m that NUMSUB knows nothing, s that a string is a lock.
func flag(letter string, on bool) string {
	if on {
		return letter
	}
	return ""
}
