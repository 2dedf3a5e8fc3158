package anteroom

import (
	"slices"
	"strings"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/internal/report"
	"github.com/anteroom/anteroom/sync/observe"
)

// Snapshot returns what this Manager knows about every key that is held or waited
// for here, sorted by key. It asks nobody; each key's part is consistent in
// itself. It is for monitoring, not for synchronization control.
func (m *Manager) Snapshot() []observe.State {
	states := m.Survey(observe.SurveyOptions{}).States
	slices.SortFunc(states, func(a, b observe.State) int { return strings.Compare(a.Key, b.Key) })
	return states
}

// Counts returns the held and waiting figures by class. It is much cheaper than
// Snapshot: metrics read it at each scrape.
func (m *Manager) Counts() map[string]observe.Count {
	counts := map[string]observe.Count{}
	if m.made() != nil {
		return counts
	}
	now := m.leases.Glance()
	for _, k := range m.locks.All() {
		class := k.Settings().Class
		counts[class] = countedIn(counts[class], k, k.Queue().Front(), now)
	}
	return counts
}

// countedIn returns c with the key k more, which has f.
func countedIn(c observe.Count, k *lock.Key, f queue.Front, now lock.Moment) observe.Count {
	switch s := f.State(); { // this process has the lock, or units of it, in Redis, as far as it knows
	case s == queue.Owned, s == queue.Granted, s == queue.Lost, s == queue.Lingers, f.Units > 0 && k.Settings().Shared:
		c.Held++
	}
	if o := ownerOf(k); o != nil { // a lock that is just coming or going has no owner
		c.OldestHold = max(c.OldestHold, now-o.Since())
	}
	if f.Waiting > 0 {
		c.Waiting += f.Waiting
		c.OldestWait = max(c.OldestWait, time.Since(f.First.Since))
	}
	return c
}

// state describes the key, with the first n of its waiters, or all with a negative n.
func (m *Manager) state(k *lock.Key, now time.Time, n int) observe.State {
	if k.Settings().Shared {
		return m.sharedState(k, now, n)
	}
	f, waiters := k.Queue().Peek(n)
	s := observe.State{
		Key: k.Name(), Class: settingsOf(k).cfg.Name, Status: strings.ToLower(f.State().String()), Count: f.Owner.Count, HandOffs: f.HandOffs(),
		Lost: f.Lost, Waiting: f.Waiting,
	}
	if a := k.Answer(); a != nil && f.State() == queue.Acquiring {
		s.HeldBy, s.InLine = a.Holder, a.Word == lettucecompat.WordWaits
		if s.InLine {
			s.Ahead = a.Ahead
		}
	}
	if f.State() == queue.Free && k.Leaves() {
		s.Status = strings.ToLower(queue.Releasing.String())
	}
	if g := k.Held(); g != nil && g.Number() == f.Grant {
		m.describe(g, &s, f)
		s.Verdicts = m.verdicts(g.Number(), k.Name())
	}
	s.Waiters = waiterStates(waiters, now)
	return s
}

func waiterStates(waiters []queue.WaiterInfo, now time.Time) (states []observe.WaiterState) {
	for _, w := range waiters {
		states = append(states, observe.WaiterState{
			Goroutine: int64(w.Goroutine), Kind: report.KindName(w.Kind), Waiting: now.Sub(w.Since), CallSite: report.CallSiteOf(w),
		})
	}
	return states
}

// describe puts into s what is known of the current grant and its owner.
func (m *Manager) describe(g *lock.Held, s *observe.State, f queue.Front) {
	lease := g.Lease()
	times := lease.Times(m.leases.Now())
	s.Holder, s.Deadline, s.Lease, s.Granted = g.Field(), times.Deadline, g.Terms().For, m.moment(g.Since())
	if lease.State() == renewal.StateActive {
		s.NextRenewal = times.NextDue
	}
	s.Lost = s.Lost || g.Loss() != nil || times.Left <= 0
	if o := g.Owner(); o != nil && o.Is(f.Owner) {
		s.Goroutine, s.Kind, s.CallSite, s.Since, s.Token = int64(o.Goroutine), report.KindName(o.Kind), o.CallSite, m.moment(o.Since()), o.Token()
	}
}

// verdicts returns the watchdog's last on the grant n of key, or on the process as a whole with 0.
func (m *Manager) verdicts(n uint64, key string) []observe.VerdictState {
	var list []observe.VerdictState
	for _, v := range m.dog.Verdicts(n) {
		s := observe.VerdictState{
			Check: v.Check.String(), Health: v.Health.String(), Finding: v.Finding.String(), Reason: v.Reason, Err: v.Err, At: m.dated(v.At),
		}
		if v.Err != nil {
			s.ErrText = wordsOf(v.Err, false, key, m.cfg.ClientID, m.locks.Field(n))
		}
		list = append(list, s)
	}
	return list
}

// sharedState describes an RWMutex or a Semaphore, with the first n of its waiters, or all with a negative n.
func (m *Manager) sharedState(k *lock.Key, now time.Time, n int) observe.State {
	is := k.Units()
	_, waiters := k.Queue().Peek(n)
	s := observe.State{
		Key: k.Name(), Class: k.Settings().Class, Status: sharedStatus(&is), Count: is.Entries, Lost: is.Lost, Waiting: is.Waiting,
		Units: is.Units, Used: is.Used, Capacity: is.Capacity, Readers: is.Readers, Goroutine: int64(is.Owner.Goroutine),
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
	for i, w := range waiters {
		s.Waiters[i].Units = w.Need
		switch {
		case k.Settings().Capacity > 0: // a Semaphore
		case w.Need == toWrite:
			s.Waiters[i].Mode = "write"
		default:
			s.Waiters[i].Mode = "read"
		}
	}
	return s
}

// sharedStatus is State.Status of an RWMutex or a Semaphore.
func sharedStatus(is *lock.UnitsState) string {
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

// ownerOf returns who has the lock of a Mutex, or of those known by name who have units of k the one who came first, or nil.
func ownerOf(k *lock.Key) *lock.Owner {
	if g := k.Held(); g != nil && k.Settings().Shared {
		return g.AnyOwner()
	}
	return k.Owner()
}
