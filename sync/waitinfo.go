package anteroom

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/watchdog"
)

// WaitInfo is one wait of an EventLongWait or an EventDeadlock.
type WaitInfo struct {
	Key   string
	Class string

	// Goroutine is who waits, Kind how ("hold" or "lock", as in WaiterState), Since since
	// when. CallSite is where Lock or Acquire was called: as recorded, or else as a
	// goroutine scan saw it; "" where there was none (see docs/operations.md).
	Goroutine int64
	Kind      string
	Since     time.Time
	CallSite  string

	// Owner is the goroutine of this process that locked the key, or acquired its Hold;
	// 0 where no owner is in this process. OwnerKind and OwnerSince are how and since when.
	// OwnerSite is where that was, if Config.RecordCallSites is set. OwnerAt is where the
	// goroutine was when this was reported, as far as a goroutine scan saw it.
	Owner      int64
	OwnerKind  string
	OwnerSince time.Time
	OwnerSite  string
	OwnerAt    string
}

// waitInfo describes w, which waits for e.
func waitInfo(e *entry, f *queue.Front, w queue.WaiterInfo) WaitInfo {
	info := WaitInfo{
		Key: e.key, Class: e.cfg.Name,
		Goroutine: int64(w.Owner), Kind: kindName(w.Kind), Since: e.m.dated(w.Since),
		Owner: int64(f.Current.Owner),
	}
	if t, ok := w.Note.(*terms); ok {
		info.CallSite = t.callSite
	}
	if f.Current.Number == 0 {
		return info
	}
	info.OwnerKind = kindName(f.Current.Kind)
	if g := e.cur.Load(); g != nil && g.n == f.Current.Grant {
		g.e.mu.Lock()
		if t := g.owner; t != nil && t.number == f.Current.Number {
			info.OwnerSince, info.OwnerSite = e.m.dated(t.since), t.callSite
		}
		g.e.mu.Unlock()
	}
	return info
}

// purpose is what a goroutine scan is made for; each has its own rhythm, so that a long
// wait does not hide where a deadlock is.
type purpose int

const (
	forLongWaits purpose = iota
	forDeadlocks
	purposes
)

// scanEvery is the least time between two goroutine scans of one purpose. The watchdog has
// the same for its own.
const scanEvery = 30 * time.Second

// scanning is what a goroutine scan has found.
type scanning = watchdog.Goroutines

func scanGoroutines(asked []int64) scanning { return watchdog.Scan(asked) }

// locate fills in where the goroutines of the events are, unless that was recorded. It
// returns why some are missing, or "".
func (l *lookout) locate(p purpose, now time.Time, events []Event) string {
	var asked []int64
	for _, ev := range events {
		for _, w := range ev.Waits {
			if w.CallSite == "" {
				asked = append(asked, w.Goroutine)
			}
			if w.OwnerSite == "" && w.Owner != 0 {
				asked = append(asked, w.Owner)
			}
		}
	}
	if len(asked) == 0 {
		return ""
	}
	if last := l.scanned[p]; !last.IsZero() && now.Sub(last) < scanEvery {
		return "goroutines were looked at less than " + scanEvery.String() + " ago"
	}
	l.scanned[p] = now
	found := l.scan(asked)
	for _, ev := range events {
		for i := range ev.Waits {
			w := &ev.Waits[i]
			if w.CallSite == "" {
				w.CallSite = found.States[w.Goroutine].Caller
			}
			if w.OwnerSite == "" {
				w.OwnerAt = found.States[w.Owner].At()
			}
		}
	}
	return found.Reason
}

// report raises the events of one look.
func (l *lookout) report(now time.Time, waits []Event, cycles []cycle) {
	if len(cycles) > 0 {
		l.reportDeadlocks(now, cycles)
	}
	if len(waits) == 0 {
		return
	}
	why := l.locate(forLongWaits, now, waits)
	for _, ev := range waits {
		if len(ev.Waits) > 0 {
			ev.CallSite, ev.Text = ev.Waits[0].CallSite, longWaitText(&ev, why)
		}
		l.m.events.raise(ev)
	}
}

func (l *lookout) reportDeadlocks(now time.Time, cycles []cycle) {
	events := make([]Event, 0, maxReports)
	for _, c := range cycles[:min(maxReports, len(cycles))] {
		first := c[0].key
		ev := Event{Kind: EventDeadlock, At: now, Key: first.e.key, Class: first.e.cfg.Name}
		if g := first.e.cur.Load(); g != nil && g.n == first.front.Current.Grant {
			ev.Holder = g.name()
		}
		for _, n := range c {
			w := waitInfo(n.key.e, &n.key.front, n.waiter)
			if w.Since.After(ev.Since) {
				ev.Since = w.Since // since then it is one
			}
			ev.Waits = append(ev.Waits, w)
			ev.Waiters += n.key.front.Waiting
		}
		events = append(events, ev)
	}
	why := l.locate(forDeadlocks, now, events)
	for i, ev := range events {
		ev.CallSite, ev.Text = ev.Waits[0].CallSite, deadlockText(&ev, cycles[i].certain(), why, hashed)
		ev.named = deadlockText(&ev, cycles[i].certain(), why, strconv.Quote)
		l.m.events.raise(ev)
	}
	if n := len(cycles) - len(events); n > 0 {
		l.m.events.raise(Event{Kind: EventDeadlock, At: now, Text: plural(n, "further deadlock")})
	}
}

// longWaitText words a long wait: who waits, where, how many, and for whom.
func longWaitText(ev *Event, why string) string {
	w := &ev.Waits[0]
	text := fmt.Sprintf("goroutine %d has waited for %v%s; %s; ", w.Goroutine, rounded(ev.At.Sub(w.Since)), at(w.CallSite), waiting(ev.Waiters))
	if w.Owner == 0 {
		return text + ev.Text + unlocated(w.CallSite, why)
	}
	text += "held by goroutine " + strconv.FormatInt(w.Owner, 10)
	if !w.OwnerSince.IsZero() {
		text += " for " + rounded(ev.At.Sub(w.OwnerSince)).String()
	}
	text += ev.Text
	if w.OwnerSite != "" {
		text += ", taken" + at(w.OwnerSite)
	} else if w.OwnerAt != "" {
		text += ", now" + at(w.OwnerAt)
	}
	return text + unlocated(w.CallSite, why)
}

// shownLinks bounds the cycle that a text tells; Event.Waits has all of it.
const shownLinks = 8

// deadlockText words a cycle and says how sure it is. name says how keys are called.
func deadlockText(ev *Event, certain bool, why string, name func(key string) string) string {
	var text strings.Builder
	if !certain {
		text.WriteString("possible ")
	}
	text.WriteString("deadlock of " + plural(len(ev.Waits), "goroutine"))
	unknown := ""
	for i, w := range ev.Waits {
		if i == shownLinks {
			fmt.Fprintf(&text, "; and %d more", len(ev.Waits)-i)
			break
		}
		fmt.Fprintf(&text, "; goroutine %d waits%s for %s, which goroutine %d has", w.Goroutine, at(w.CallSite), name(w.Key), w.Owner)
		if w.OwnerSite != "" {
			text.WriteString(", taken" + at(w.OwnerSite))
		}
		if w.CallSite == "" {
			unknown = why
		}
	}
	if certain {
		text.WriteString("; only a wait with a limit (TryLockFor, a context) can end it")
	} else {
		text.WriteString("; it is none if a Hold was passed on to a goroutine that will release it, or if another goroutine unlocks a NotReentrant lock")
	}
	if unknown != "" {
		text.WriteString(unlocated("", unknown))
	}
	return text.String()
}

// hashed names a key where keys are not shown.
func hashed(key string) string { return "the key with hash " + keyHash(key) }

func at(site string) string {
	if site == "" {
		return ""
	}
	return " at " + site
}

func waiting(n int) string {
	if n == 1 {
		return "nobody else waits in this process"
	}
	return strconv.Itoa(n) + " wait in this process"
}

// unlocated says why a call site is missing, and what would help.
func unlocated(site, why string) string {
	if site != "" || why == "" {
		return ""
	}
	return " (call sites unknown: " + why + "; Config.RecordCallSites records them)"
}

func rounded(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
