package lettucecompat

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Holder is one field of a lock.
type Holder struct {
	Field  string
	Client string // the client id in it, "" for a foreign one
	Count  int64  // units of an RWMutex or a Semaphore
	Note   string // see Renewal.Note
}

// Info is what Redis knows about a key, for people and tools: it may be out of date when it arrives and must decide
// nothing.
type Info struct {
	Exists      bool
	Type        string // as TYPE answers: "hash" or "string" for a lock, "none" for a free one
	Kind        string // "rw" for an RWMutex, "sem" for a Semaphore; "" for a Mutex, or if nobody has the lock
	Capacity    int64  // the least of those who hold units; 0 for a Mutex
	Holders     []Holder
	TTL         time.Duration // negative: the key has no end, or does not exist
	Token       int64         // the newest in the fencing record; 0: there is none
	Subscribers int           // connections that listen for the release, on that server; -1: not known
	InLine      int           // clients in the line
	First       string        // the client that is first there, "" where none is or it is not known
	Open        time.Duration // for so long the lock is still left to clients outside the line
}

// Inspect asks one server about key and its fencing record and its line, in one step. It changes nothing. What is no
// lock is a permanent error; stringsAreLocks says whether a string is one.
func (c *Client) Inspect(ctx context.Context, key string, stringsAreLocks bool) (Info, error) {
	if err := c.CheckKey(key); err != nil {
		return Info{}, err
	}
	start := time.Now()
	cmd, left := c.script(ctx, c.shardOf(key).keep, key, start, 0, true, func(lined bool) *redisCmd {
		return c.newScriptCmd(c.scripts().inspect, key, lined, c.fence(key), flag("s", stringsAreLocks))
	})
	outcome, err := cmd.result(left)
	c.observe("inspect", outcome, start)
	if err != nil {
		return Info{}, err
	}
	a, ok := cmd.Val().([]any)
	if !ok || len(a) != 8 {
		return Info{}, ErrMalformed
	}
	pairs, ok1 := a[2].([]any)
	n, ok2 := numbers([]any{a[1], a[4], a[5], a[7]}, 4)
	if !ok1 || !ok2 {
		return Info{}, ErrMalformed
	}
	info := Info{Type: text(a[0]), TTL: fromMillis(n[0]), Subscribers: int(n[1]), InLine: int(n[2]), Open: fromMillis(n[3])}
	info.Exists = info.Type != "none"
	info.First, _, _ = ParseField(text(a[6]))
	info.Token, _ = strconv.ParseInt(text(a[3]), 10, 64)
	if i := slices.Index(pairs, any(unitsHeader)); i >= 0 && i%2 == 0 && i+1 < len(pairs) {
		info.units(text(pairs[i+1]), pairs)
		return info, nil
	}
	for ; len(pairs) >= 2; pairs = pairs[2:] {
		h := Holder{Field: text(pairs[0])}
		h.Client, _, _ = ParseField(withoutMark(h.Field))
		var count string
		count, h.Note, _ = strings.Cut(text(pairs[1]), " note: ")
		h.Count, _ = strconv.ParseInt(count, 10, 64)
		info.Holders = append(info.Holders, h)
	}
	return info, nil
}

// units takes in the hash of an RWMutex or a Semaphore. Whose lease is over has nothing, though its record may be there
// until the next script. What is left is that of the lease which lasts longest; the key lives a little longer.
func (i *Info) units(header string, pairs []any) {
	var kind string
	var least, held, next, till int64
	_, _ = fmt.Sscan(header, &kind, &least, &held, &next, &till)
	now, last := till-i.TTL.Milliseconds(), int64(0)
	for ; len(pairs) >= 2; pairs = pairs[2:] {
		var number uint64
		var ends, contended, capacity int64
		h := Holder{Field: text(pairs[0]), Client: text(pairs[0])}
		_, _ = fmt.Sscan(text(pairs[1]), &number, &h.Count, &ends, &contended, &capacity)
		if h.Field == unitsHeader || h.Count == 0 || i.TTL >= 0 && ends <= now {
			continue
		}
		if len(i.Holders) == 0 || capacity < i.Capacity {
			i.Capacity = capacity
		}
		i.Kind, last = kind, max(last, ends)
		i.Holders = append(i.Holders, h)
	}
	if i.TTL >= 0 {
		i.TTL = fromMillis(last - now)
	}
	if i.Exists = len(i.Holders) > 0; !i.Exists {
		i.TTL = fromMillis(-2) // as of a key that does not exist
	}
}

// keptSuffix ends the mark that a give-back with Command.Mark leaves.
const keptSuffix = ":kept"

// withoutMark returns the field that has left a mark, and any other field as it is.
func withoutMark(field string) string { return strings.TrimSuffix(field, keptSuffix) }
