package report

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/waits"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/observe"
)

const (
	// maxReports bounds the events of each kind that one check raises: an outage of Redis
	// may make 100,000 keys overdue together, and one line says that as well.
	maxReports = 10
	// scanEvery is the least time between two goroutine scans for long waits, and between
	// two for deadlocks: a long wait does not hide where a deadlock is. The watchdog has the
	// same for its own.
	scanEvery = 30 * time.Second
)

// FoundWaits reports what a check for long waits has found.
func (p *Reports) FoundWaits(found waits.Report) {
	p.deadlocks(found)
	p.longWaits(found)
}

// longWaits raises an event for each of the longest waits, and one for all others together.
func (p *Reports) longWaits(found waits.Report) {
	some := found.Overdue[:min(maxReports, len(found.Overdue))]
	events := make([]observe.Event, 0, len(some))
	for _, w := range some {
		info := p.waitInfo(w)
		ev := observe.Event{
			Kind: observe.EventLongWait, At: found.At, Key: info.Key, Class: info.Class, Since: info.Since,
			Waiters: w.Waiting, Waits: []observe.WaitInfo{info},
		}
		p.describeHolder(&ev, w)
		events = append(events, ev)
	}
	why := p.locate(&p.forWaits, found.At, events)
	for _, ev := range events {
		ev.CallSite, ev.Text = ev.Waits[0].CallSite, longWaitText(&ev, why)
		p.event(context.Background(), ev)
	}
	if others := found.Overdue[len(some):]; len(others) > 0 {
		ev := observe.Event{Kind: observe.EventLongWait, At: found.At, Since: p.leases.Dated(others[0].Waiter.Since)}
		for _, w := range others {
			ev.Waiters += w.Waiting
		}
		ev.Text = Plural(len(others), "further key") + " with callers that have waited for too long"
		p.event(context.Background(), ev)
	}
}

// deadlocks raises an event for each of some cycles, and one for all others together.
func (p *Reports) deadlocks(found waits.Report) {
	some := found.Cycles[:min(maxReports, len(found.Cycles))]
	events := make([]observe.Event, 0, len(some))
	for _, c := range some {
		ev := observe.Event{Kind: observe.EventDeadlock, At: found.At}
		for _, w := range c {
			info := p.waitInfo(w)
			if info.Since.After(ev.Since) {
				ev.Since = info.Since // since then it is one
			}
			ev.Waits = append(ev.Waits, info)
			ev.Waiters += w.Waiting
		}
		ev.Key, ev.Class = ev.Waits[0].Key, ev.Waits[0].Class
		if !c[0].Of.(*lock.Key).Settings().Shared {
			ev.Holder = p.locks.Field(c[0].Grant)
		}
		events = append(events, ev)
	}
	why := p.locate(&p.forCycles, found.At, events)
	for i, ev := range events {
		certain := some[i].Certain()
		ev.CallSite = ev.Waits[0].CallSite
		ev.Text = deadlockText(&ev, certain, why, hashed)
		p.Raise(context.Background(), ev, deadlockText(&ev, certain, why, strconv.Quote))
	}
	if n := len(found.Cycles) - len(some); n > 0 {
		p.event(context.Background(), observe.Event{Kind: observe.EventDeadlock, At: found.At, Text: Plural(n, "further deadlock")})
	}
}

func (p *Reports) waitInfo(w waits.Wait) observe.WaitInfo {
	k := w.Of.(*lock.Key)
	info := observe.WaitInfo{
		Key: k.Name(), Class: k.Settings().Class,
		Goroutine: int64(w.Waiter.Goroutine), Kind: KindName(w.Waiter.Kind), Since: p.leases.Dated(w.Waiter.Since), CallSite: CallSiteOf(w.Waiter),
		Owner: int64(w.Owner.Goroutine),
	}
	if w.Owner.Count == 0 {
		return info
	}
	info.OwnerKind = KindName(w.Owner.Kind)
	since := func(m lock.Moment) time.Time { return p.leases.Dated(p.leases.Zero().Add(m)) }
	o := k.Owner()
	if k.Settings().Shared {
		o = k.Units().Writes
	}
	if o != nil && o.Is(w.Owner) {
		info.OwnerSince, info.OwnerSite = since(o.Since()), o.CallSite
	}
	return info
}

// describeHolder adds to ev who has the key that w waits for, as far as this process knows: Holder,
// and in Text what longWaitText cannot know from the wait alone.
func (p *Reports) describeHolder(ev *observe.Event, w waits.Wait) {
	k := w.Of.(*lock.Key)
	if k.Settings().Shared {
		p.describeShared(ev, k)
		return
	}
	if w.Grant != 0 {
		ev.Holder = p.locks.Field(w.Grant)
		switch w.State() {
		case queue.Lost:
			ev.Text = ", which has lost it and not unlocked"
		case queue.Releasing:
			ev.Text = "it is just being released"
		case queue.Granted:
			ev.Text = "it has just been granted"
		}
		return
	}
	a := k.Answer()
	if a == nil || a.Err == nil && a.Word != lettucecompat.WordWaits && a.Word != lettucecompat.WordRefused {
		ev.Text = "it is just being acquired"
		return
	}
	ev.Holder, ev.Err = a.Holder, a.Err
	switch id, _, ours := lettucecompat.ParseField(a.Holder); {
	case a.Err != nil:
		ev.Text = "acquire is failing"
	case ours && id == p.cfg.ClientID:
		ev.Text = "held by an earlier grant of this Manager that is still to be removed"
	default:
		ev.Text = "held by another process, or by another Manager of this one"
		if a.Word == lettucecompat.WordWaits {
			ev.Text += fmt.Sprintf(", and %d in line before this one", a.Ahead)
		}
	}
}

// describeShared is describeHolder for units.
func (p *Reports) describeShared(ev *observe.Event, k *lock.Key) {
	is := k.Units()
	switch {
	case is.Writes != nil:
	case is.Demand.Lost:
		ev.Text = "callers of this process have lost it and not unlocked"
	case is.Readers > 0:
		ev.Text = "read by " + Plural(int(is.Readers), "caller") + " of this process" + sites(is.Held)
	case is.Used > 0:
		ev.Text = Plural(int(is.Used), "unit") + " of it held by callers of this process" + sites(is.Held)
	default:
		ev.Text = "held by other processes, or by other Managers of this one"
	}
	if is.Used > 0 {
		ev.Holder = p.cfg.ClientID
	}
	a := k.Answer()
	switch {
	case a == nil:
	case a.Err != nil:
		ev.Text, ev.Err = "acquire is failing", a.Err
	case is.InLine:
		ev.Text += fmt.Sprintf("; %d in line before this one", a.Ahead)
	}
}

// sites names where some of those who are known by name came in, if that was recorded.
func sites(g *lock.Held) string {
	var list []string
	for _, o := range g.Owners() {
		if o.CallSite != "" && len(list) < shownLinks {
			list = append(list, o.CallSite)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return ", taken at " + strings.Join(list, ", ")
}

// locate fills in where the goroutines of the events are, unless that was recorded or they
// were inspected a short time before, at last. It returns why some are missing, or "".
func (p *Reports) locate(last *time.Time, now time.Time, events []observe.Event) string {
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
	if !last.IsZero() && now.Sub(*last) < scanEvery {
		return "goroutines were inspected less than " + scanEvery.String() + " ago"
	}
	*last = now
	found := p.Scan(now, asked)
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

// CallSiteOf returns where w was called, if that was recorded.
func CallSiteOf(w queue.WaiterInfo) string {
	if o, is := w.Note.(*lock.Owner); is {
		return o.CallSite
	}
	return ""
}
