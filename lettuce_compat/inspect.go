package lettucecompat

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// maxListed bounds the holders that Inspect lists; a hash with more fields is no lock.
const maxListed = "64"

// Holder is one field of a lock.
type Holder struct {
	Field  string
	Client string // the client id in it, "" for a stranger's field
	Count  int64
}

// Info is what Redis knows about a key, for people and tools: it may be out of date
// when it arrives and must decide nothing.
type Info struct {
	Exists      bool
	Type        string // as TYPE answers; "hash" for a lock, "none" for a free one
	Holders     []Holder
	TTL         time.Duration // negative: the key has no end, or does not exist
	Token       int64         // the newest fencing token reserved; 0: never fenced
	Subscribers int           // connections that listen for the release, on that server; -1: not known
	Standing    int           // clients in the line
	First       string        // the client that is first there, "" where none is or it is not known
	Open        time.Duration // for so long the lock is still left to those who do not stand
}

// Inspect asks one server about key and its fencing record and its line, in one step. It changes
// nothing. A fencing record is no lock: its key is a permanent error.
func (c *Client) Inspect(ctx context.Context, key string) (Info, error) {
	if err := c.CheckKey(key); err != nil {
		return Info{}, err
	}
	start := time.Now()
	k, outcome, err := c.oneWithLine(ctx, c.lanes(key).keep, key, start, 0, func(line string) *scriptParcel {
		return newScriptParcel(c.scripts().inspect, key, line, c.fence(key), maxListed)
	})
	c.observe("inspect", outcome, start)
	if err != nil {
		return Info{}, err
	}
	a, ok := k.command.Val().([]any)
	if !ok || len(a) != 8 {
		return Info{}, ErrMalformed
	}
	ttl, ok1 := a[1].(int64)
	pairs, ok2 := a[2].([]any)
	subscribers, ok3 := a[4].(int64)
	standing, ok4 := a[5].(int64)
	open, ok5 := a[7].(int64)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 {
		return Info{}, ErrMalformed
	}
	info := Info{
		Type: text(a[0]), TTL: fromMillis(ttl), Subscribers: int(subscribers),
		Standing: int(standing), Open: fromMillis(open),
	}
	info.Exists = info.Type != "none"
	info.First, _, _ = ParseField(text(a[6]))
	info.Token, _ = strconv.ParseInt(text(a[3]), 10, 64)
	for ; len(pairs) >= 2; pairs = pairs[2:] {
		h := Holder{Field: text(pairs[0])}
		h.Client, _, _ = ParseField(strings.TrimSuffix(h.Field, keptSuffix))
		h.Count, _ = strconv.ParseInt(text(pairs[1]), 10, 64)
		info.Holders = append(info.Holders, h)
	}
	return info, nil
}

// keptSuffix ends the mark that a release with Keep leaves.
const keptSuffix = ":kept"
