package debug

import (
	"strings"
	"sync"

	"github.com/anteroom/anteroom/sync/observe"
)

// The text kept of an event is bounded too: a key may have 64 KiB, and an error quotes what a server says.
const (
	maxEventText = 1 << 10
)

// recent keeps the last max events. Its methods are safe for concurrent use.
type recent struct {
	max int

	mu   sync.Mutex
	list []kept // the oldest at next once it is full; guarded by mu
	next int    // guarded by mu
	seen int64  // guarded by mu
}

// kept is one event as it will be shown, with its values for filtering.
type kept struct {
	Event
	class, filter string
}

// add keeps e, in place of the oldest event if max are kept. The error becomes text here, because it may
// reference anything.
func (r *recent) add(e observe.Event, hide bool) {
	k := keep(e, hide)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen++
	if len(r.list) < r.max {
		r.list = append(r.list, k)
		return
	}
	r.list[r.next] = k
	r.next = (r.next + 1) % r.max
}

// newest returns the kept events, newest first, and how many there have been.
func (r *recent) newest() (list []kept, seen int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list = make([]kept, 0, len(r.list))
	for i := range r.list {
		// next-1 is the newest once max are kept; before that next is 0.
		list = append(list, r.list[(r.next-1-i+len(r.list))%len(r.list)])
	}
	return list, r.seen
}

// keep converts e to what is shown of it.
func keep(e observe.Event, hide bool) kept {
	text, err := e.Text, e.ErrText
	if !hide {
		text, err = e.Text, ""
		if e.Err != nil {
			err = e.Err.Error()
		}
	}
	k := kept{class: e.Class, Event: Event{
		At: e.At.UTC(), Kind: string(e.Kind), Manager: e.ClientID, Holder: brief(e.Holder, maxKeyText), Class: brief(e.Class, maxKeyText),
		Reason: string(e.Reason), Owners: e.Owners, Check: e.Check, CallSite: brief(e.CallSite, maxEventText),
		Text: brief(text, maxEventText), Error: brief(err, maxEventText),
	}}
	if !e.Since.IsZero() {
		since := e.Since.UTC()
		k.Since = &since
	}
	if e.Key != "" {
		k.Name = nameOf(e.Key, hide)
		k.filter = filterOf(e.Key, hide)
		if len(k.filter) > maxFilter { // one byte more, so that there is no link to it
			k.filter = strings.Clone(k.filter[:maxFilter+1])
		}
	}
	return k
}
