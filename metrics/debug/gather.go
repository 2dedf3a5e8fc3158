package debug

import (
	"cmp"
	"slices"
	"time"

	"github.com/anteroom/anteroom/sync/observe"
)

// found is one lock of one Manager before it is formatted.
type found struct {
	manager string
	observe.State
}

// gather reads the attached Managers and builds the Report.
func (p *Page) gather(q query) Report {
	hide := p.cfg.HideKeys
	r := Report{KeysHidden: hide, Managers: []Manager{}, Classes: []Class{}, Locks: []Lock{}, Lost: []Event{}, Events: []Event{}}
	opts := observe.SurveyOptions{MaxKeys: q.limit, MaxWaiters: q.waiters}
	if q.class != "" || q.key != "" {
		opts.Match = func(class, key string) bool { return q.finds(class, filterOf(key, hide)) }
	}
	classes := map[string]observe.Count{}
	var locks []found
	var surveys []observe.Survey
	for _, m := range p.attached() {
		s := m.Survey(opts)
		surveys = append(surveys, s)
		r.Keys += s.Keys
		for _, st := range s.States {
			locks = append(locks, found{s.ClientID, st})
		}
	}
	now := time.Now()
	r.At = now.UTC()
	for _, s := range surveys {
		m := Manager{ClientID: s.ClientID, CallSitesRecorded: s.CallSites, Closed: s.Closed, Checks: checks(s.Verdicts, "", hide, now)}
		for name, n := range s.Counts {
			c := classes[name]
			classes[name] = observe.Count{
				Held: c.Held + n.Held, Waiting: c.Waiting + n.Waiting,
				OldestHold: max(c.OldestHold, n.OldestHold), OldestWait: max(c.OldestWait, n.OldestWait),
			}
			m.Held, m.Waiting = m.Held+n.Held, m.Waiting+n.Waiting
		}
		r.Held, r.Waiting = r.Held+m.Held, r.Waiting+m.Waiting
		r.Managers = append(r.Managers, m)
	}
	r.Managers, r.ManagersNotShown = cut(r.Managers, maxManagers)
	for name, n := range classes {
		r.Classes = append(r.Classes, Class{
			Class: name, Held: n.Held, Waiting: n.Waiting,
			OldestHoldSeconds: seconds(n.OldestHold), OldestWaitSeconds: seconds(n.OldestWait),
		})
	}
	slices.SortFunc(r.Classes, func(a, b Class) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(b.Held, a.Held), cmp.Compare(a.Class, b.Class))
	})
	r.Classes, r.ClassesNotShown = cut(r.Classes, maxClasses)
	for i := range r.Classes {
		c := &r.Classes[i]
		c.filter, c.Class = c.Class, show(c.Class)
	}
	slices.SortStableFunc(locks, order)
	locks, _ = cut(locks, q.limit)
	waiters := maxWaitersSum
	for _, l := range locks {
		r.Locks = append(r.Locks, lock(l, now, hide, &waiters))
	}
	r.LocksNotShown = r.Keys - len(r.Locks)
	p.recent(&r, q, now)
	return r
}

// cut returns the first n of list, and how many it leaves out.
func cut[T any](list []T, n int) ([]T, int) {
	n = min(n, len(list))
	return list[:n], len(list) - n
}

// order is the order of Survey.States, across several Managers.
func order(a, b found) int {
	if x, y := a.unwell(), b.unwell(); x != y {
		if x {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.wait(), a.wait()), earlier(a.Granted, b.Granted), cmp.Compare(a.Key, b.Key))
}

// unwell reports whether f is lost or unhealthy, and so sorts first.
func (f found) unwell() bool {
	return f.Status == "lost" || slices.ContainsFunc(f.Verdicts, func(v observe.VerdictState) bool { return v.Health == "unhealthy" })
}

// wait is how long the first waiter has waited; -1 without one.
func (f found) wait() time.Duration {
	if len(f.Waiters) == 0 {
		return -1
	}
	return f.Waiters[0].Waiting
}

// earlier orders by time; a zero time comes last.
func earlier(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return b.Compare(a)
	}
	return a.Compare(b)
}

// lock formats one lock. waiters is how many more waiters the answer may list.
func lock(f found, now time.Time, hide bool, waiters *int) Lock {
	l := Lock{
		Name: nameOf(f.Key, hide), filter: filterOf(f.Key, hide), Manager: f.manager, Class: show(f.Class),
		Status: f.Status, Lost: f.Lost, HeldBy: brief(f.HeldBy, maxKeyText), Waiting: f.Waiting, Waiters: []Waiter{},
		Checks: checks(f.Verdicts, f.Key, hide, now),
	}
	if f.InLine {
		l.Ahead = &f.Ahead
	}
	if f.Capacity > 0 {
		l.Units = &Units{Has: f.Units, Used: f.Used, Capacity: f.Capacity, Readers: f.Readers}
	}
	if !f.Since.IsZero() {
		l.Owner = &Owner{
			Goroutine: f.Goroutine, Kind: f.Kind, CallSite: brief(f.CallSite, maxEventText), Since: f.Since.UTC(),
			HeldSeconds: seconds(now.Sub(f.Since)), Count: f.Count, Token: f.Token,
		}
	}
	if f.Holder != "" {
		l.Lease = &Lease{
			Holder: f.Holder, Granted: f.Granted.UTC(), LengthSeconds: seconds(f.Lease),
			LeftSeconds: seconds(f.Deadline.Sub(now)), Deadline: f.Deadline.UTC(), HandOffs: f.HandOffs,
		}
		if !f.NextRenewal.IsZero() {
			next, in := f.NextRenewal.UTC(), seconds(f.NextRenewal.Sub(now))
			l.Lease.NextRenewal, l.Lease.NextRenewalSeconds = &next, &in
		}
	}
	shown, _ := cut(f.Waiters, *waiters)
	*waiters -= len(shown)
	for _, w := range shown {
		l.Waiters = append(l.Waiters, Waiter{
			Goroutine: w.Goroutine, Kind: w.Kind, WaitingSeconds: seconds(w.Waiting), CallSite: brief(w.CallSite, maxEventText),
			Mode: w.Mode, Units: w.Units,
		})
	}
	l.WaitersNotShown = l.Waiting - len(shown)
	return l
}

// checks formats verdicts. If keys are hidden, it removes the key from server errors.
func checks(verdicts []observe.VerdictState, key string, hide bool, now time.Time) []Check {
	list := []Check{}
	for _, v := range verdicts {
		reason := v.Reason
		switch {
		case v.Err == nil:
		case hide:
			reason += ": " + v.ErrText
		default:
			reason += ": " + v.Err.Error()
		}
		list = append(list, Check{
			Check: v.Check, Health: v.Health, Finding: v.Finding, Reason: brief(reason, maxEventText),
			At: v.At.UTC(), AgoSeconds: seconds(now.Sub(v.At)),
		})
	}
	return list
}

// lostFor is how long a loss is shown above the locks. Its key is not among those any more once the owner has left.
const lostFor = time.Minute

// recent adds the losses and the events that match q, newest first.
func (p *Page) recent(r *Report, q query, now time.Time) {
	losses, _ := p.losses.newest()
	for _, k := range losses {
		if now.Sub(k.At) <= lostFor && q.finds(k.class, k.filter) {
			r.Lost = append(r.Lost, k.shown(now))
		}
	}
	r.Lost, r.LostNotShown = cut(r.Lost, maxLost)
	list, seen := p.events.newest()
	r.EventsSeen = seen
	for _, k := range list {
		switch {
		case !q.finds(k.class, k.filter):
		case len(r.Events) == q.events:
			r.EventsNotShown++
		default:
			r.Events = append(r.Events, k.shown(now))
		}
	}
}

// shown returns the event as an answer at that time has it.
func (k kept) shown(now time.Time) Event {
	e := k.Event
	e.AgoSeconds, e.filter = seconds(now.Sub(e.At)), k.filter
	return e
}
