package anteroom

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/internal/report"
	"github.com/anteroom/anteroom/sync/observe"
)

// sharedState describes an RWMutex or a Semaphore, with the first n of its waiters, or all with a negative n.
func (m *Manager) sharedState(k *lock.SharedKey, now time.Time, n int) observe.State {
	is, waiters := k.State(), k.Gate().Peek(n)
	s := observe.State{
		Key: k.Name(), Class: k.Settings().Class, Status: sharedStatus(&is), Count: is.Shares, Lost: is.Lost, Waiting: is.Waiting,
		Units: is.Units, Used: is.Used, Capacity: is.Capacity, Readers: is.Readers, Goroutine: int64(is.Writer),
	}
	if s.InLine = is.InLine; s.InLine {
		s.Ahead = is.Ahead
	}
	if g := is.Held; g != nil && is.Valid {
		times := g.Lease().Times(m.leases.Now())
		s.Holder, s.Deadline, s.NextRenewal, s.Lease = g.Field(), times.Deadline, times.NextDue, k.Settings().Lease.For
		s.Lost = s.Lost || times.Left <= 0
		s.Granted, s.Verdicts = m.moment(g.Since()), m.verdicts(g.Number(), k.Name())
	}
	if w := is.Writes; w != nil {
		s.Kind, s.CallSite, s.Since, s.Token = report.KindName(w.Kind), w.CallSite, m.moment(w.Since()), w.Token()
	}
	s.Waiters = waiterStates(waiters, now)
	return s
}

// sharedStatus is State.Status of an RWMutex or a Semaphore.
func sharedStatus(is *lock.SharedState) string {
	switch {
	case is.Lost:
		return "lost"
	case is.Used > 0:
		return "owned"
	case is.Waiting > 0:
		return "acquiring"
	case is.Units > 0:
		return "granted"
	}
	return "releasing"
}

// sharedCountedIn returns c with the shared key k more.
func sharedCountedIn(c observe.Count, k *lock.SharedKey, now lock.Moment) observe.Count {
	d := k.Gate().Demand()
	if d.Units > 0 || d.Lost {
		c.Held++
	}
	if g := k.Held(); g != nil {
		if o := g.Someone(); o != nil {
			c.OldestHold = max(c.OldestHold, now-o.Since())
		}
	}
	if c.Waiting += d.Waiting; d.Waiting > 0 {
		for _, w := range k.Gate().Peek(1) {
			c.OldestWait = max(c.OldestWait, time.Since(w.Since))
		}
	}
	return c
}

// sharedRank says how much a shared key is worth showing. The watchdog has found something about those that are unhealthy.
func (m *Manager) sharedRank(k *lock.SharedKey, unhealthy map[uint64]bool) rank {
	d := k.Gate().Demand()
	r := rank{shared: k, bad: d.Lost}
	for _, w := range k.Gate().Peek(1) {
		r.since = w.Since
	}
	if g := k.Held(); g != nil && d.Units > 0 {
		r.granted = m.leases.Zero().Add(g.Since())
		r.bad = r.bad || unhealthy[g.Number()] ||
			len(unhealthy) > 0 && slices.ContainsFunc(g.Owners(), func(o *lock.Share) bool { return unhealthy[o.Number()] })
	}
	return r
}
