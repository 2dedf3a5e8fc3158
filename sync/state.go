package anteroom

import (
	"slices"
	"strings"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/lock"
)

// State is what a Manager knows about one live key, for people and for metrics; it
// may be outdated when it is looked at.
type State struct {
	Key   string
	Class string
	// Status is the queue's state: "free", "acquiring", "granted" (to this process,
	// and about to be taken), "owned", "releasing" or "lost" (and not yet unlocked).
	Status string
	// Holder is the field in Redis, Goroutine who acquired (0 if nobody owns it), Kind
	// how, as WaiterState has it; a "hold" or "try" may be released by any goroutine.
	// CallSite is where, if recorded, Since since when, Count how many holds.
	Holder    string
	Goroutine int64
	Kind      string
	CallSite  string
	Since     time.Time
	Count     int
	// HeldBy is, in status "acquiring", the field with which somebody else held the key
	// when Redis answered this Manager last; "" if nobody did. Standing tells that this
	// Manager has a place in the line for it, and Ahead how many places are before that, at
	// most: some of them may have gone.
	HeldBy   string
	Standing bool
	Ahead    int
	// Token is the owner's fencing token, 0 without Fencing.
	Token int64
	// Deadline is until when the lock can be relied on without a further renewal;
	// NextRenewal when the next one is due, zero for a fixed lease. Lease is how long
	// the lease was made, which is more than what is left to Deadline by the Margin.
	// Granted is when Redis granted it to this process; owners before this one may have
	// had it since.
	Deadline    time.Time
	NextRenewal time.Time
	Lease       time.Duration
	Granted     time.Time
	// HandOffs counts the hand-offs within the process since the grant.
	HandOffs int
	// Lost tells that the hold is lost and its owner has not unlocked yet.
	Lost bool
	// Waiters are those who wait in this process, in order, and Waiting how many they
	// are: Survey may list the first of them only.
	Waiters []WaiterState
	Waiting int
	// Verdicts are the watchdog's last, one per check that has looked.
	Verdicts []VerdictState
}

// WaiterState is one waiting caller.
type WaiterState struct {
	Goroutine int64
	Kind      string // "hold", "lock", "try" or "try_lock"
	Waiting   time.Duration
	CallSite  string // if recorded
}

// VerdictState is one verdict of the watchdog.
type VerdictState struct {
	Check   string
	Health  string // "healthy", "unhealthy" or "unknown"
	Finding string
	Reason  string // in the library's words
	Err     error  // what Redis brought instead of an answer, if Reason speaks of that
	At      time.Time
}

// Count is how many locks of one class a Manager holds and how many callers wait, and
// for how long those do that began first.
type Count struct {
	Held, Waiting int
	// OldestHold is the age of the oldest hold, from getting the lock to now; that of a
	// lock that was lost and is not unlocked yet goes on. OldestWait is how long the
	// caller has waited that waits longest. Each is 0 where there is none.
	OldestHold, OldestWait time.Duration
}

// Snapshot returns what this Manager knows about every key that is held or waited
// for here, sorted by key. It asks nobody; each key's part is consistent in
// itself. It is for monitoring, not for synchronization control.
func (m *Manager) Snapshot() []State {
	keys, now := m.locks.All(), time.Now()
	states := make([]State, 0, len(keys))
	for _, k := range keys {
		states = append(states, m.state(k, now, -1))
	}
	slices.SortFunc(states, func(a, b State) int { return strings.Compare(a.Key, b.Key) })
	return states
}

// Counts returns the held and waiting figures by class. It is much cheaper than
// Snapshot: metrics read it at each scrape.
func (m *Manager) Counts() map[string]Count {
	counts := map[string]Count{}
	now := m.leases.Glance()
	for _, k := range m.locks.All() {
		class := settingsOf(k).cfg.Name
		f, _ := k.Queue().Look(0)
		counts[class] = counts[class].with(k, f, now)
	}
	return counts
}

// with returns c with the key k more, which has f.
func (c Count) with(k *lock.Key, f queue.Front, now lock.Moment) Count {
	switch f.Current.State {
	case queue.Owned, queue.Granted, queue.Lost: // this process has the lock in Redis, as far as it knows
		c.Held++
	}
	if o := current(k); o != nil { // a lock that is just coming or going has no owner
		c.OldestHold = max(c.OldestHold, now-o.Since())
	}
	if f.Waiting > 0 {
		c.Waiting += f.Waiting
		c.OldestWait = max(c.OldestWait, time.Since(f.First.Since))
	}
	return c
}

// state describes the key, with the first n of its waiters, or all with a negative n.
func (m *Manager) state(k *lock.Key, now time.Time, n int) State {
	f, waiters := k.Queue().Look(n)
	s := State{
		Key: k.Name(), Class: settingsOf(k).cfg.Name, Status: strings.ToLower(f.Current.State.String()), Count: f.Current.Count, HandOffs: f.Current.HandOffs,
		Lost: f.Current.State == queue.Lost, Waiting: f.Waiting,
	}
	if a := k.Answer(); a != nil && f.Current.State == queue.Acquiring {
		s.HeldBy, s.Standing = a.Holder, a.Word == lettucecompat.WordStands
		if s.Standing {
			s.Ahead = a.Ahead
		}
	}
	if f.Current.State == queue.Free && k.Leaves() {
		s.Status = strings.ToLower(queue.Releasing.String())
	}
	if g := k.Held(); g != nil && g.Number() == f.Current.Grant {
		m.describe(g, &s, f)
		s.Verdicts = m.verdicts(g.Number())
	}
	for _, w := range waiters {
		s.Waiters = append(s.Waiters, WaiterState{
			Goroutine: int64(w.Owner), Kind: kindName(w.Kind), Waiting: now.Sub(w.Since), CallSite: callSiteOf(w),
		})
	}
	return s
}

// describe puts into s what is known of the current grant and its owner.
func (m *Manager) describe(g *lock.Held, s *State, f queue.Front) {
	lease := g.Lease()
	times := lease.Times(m.leases.Now())
	s.Holder, s.Deadline, s.Lease, s.Granted = g.Field(), times.Deadline, g.Terms().For, m.moment(g.Since())
	if lease.State() == renewal.StateActive {
		s.NextRenewal = times.NextDue
	}
	s.Lost = s.Lost || g.Loss() != nil || times.Left <= 0
	if o := g.Owner(); o != nil && o.Number() == f.Current.Number {
		s.Goroutine, s.Kind, s.CallSite, s.Since, s.Token = int64(o.Goroutine), kindName(f.Current.Kind), o.CallSite, m.moment(o.Since()), o.Token()
	}
}

// callSiteOf returns where w was called, if that was recorded.
func callSiteOf(w queue.WaiterInfo) string {
	if o, is := w.Note.(*lock.Owner); is {
		return o.CallSite
	}
	return ""
}

// verdicts returns the watchdog's last on a grant, or on the process as a whole with 0.
func (m *Manager) verdicts(n uint64) []VerdictState {
	var list []VerdictState
	for _, v := range m.dog.Verdicts(n) {
		list = append(list, VerdictState{
			Check: v.Check.String(), Health: v.Health.String(), Finding: v.Finding.String(), Reason: v.Reason, Err: v.Err, At: m.dated(v.At),
		})
	}
	return list
}

// kindName is how a waiter came, by what it asked for.
func kindName(k queue.Kind) string {
	switch {
	case k.IsTry() && !k.CanNotify():
		return "try_lock"
	case k.IsTry():
		return "try"
	case !k.CanNotify():
		return "lock"
	}
	return "hold"
}
