package anteroom

import (
	"cmp"
	"slices"
	"time"

	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/observe"
)

// Survey visits every live key, and reads closely only those that it lists. So it costs
// little more than Counts, and can be asked for every few seconds where a Snapshot of
// 100,000 keys takes hundreds of megabytes. It asks nobody; each key's part is consistent
// in itself. It is for monitoring, not for synchronization control.
func (m *Manager) Survey(o observe.SurveyOptions) observe.Survey {
	if m.made() != nil {
		return observe.Survey{Counts: map[string]observe.Count{}, States: []observe.State{}}
	}
	keys := m.locks.All()
	s := observe.Survey{
		ClientID: m.cfg.ClientID, CallSites: m.cfg.RecordCallSites, Closed: m.closing.Load(),
		Counts: map[string]observe.Count{}, Verdicts: m.verdicts(0, ""), States: []observe.State{}, // in JSON a list, too, if it is empty
	}
	unhealthy := map[uint64]bool{}
	for _, n := range m.dog.Unhealthy() {
		unhealthy[n] = true
	}
	glance := m.leases.Glance()
	var list []rank
	var last *rank // nothing after it is listed; nil while there is room
	add := func(r rank) {
		if last != nil && r.compare(*last) >= 0 {
			return
		}
		// A million keys cost no place and little time.
		if list = append(list, r); o.MaxKeys > 0 && len(list) == 2*o.MaxKeys {
			list = foremost(list, o.MaxKeys)
			last = &list[o.MaxKeys-1]
		}
	}
	for _, k := range keys {
		class := k.Settings().Class
		f := k.Queue().Front()
		s.Counts[class] = countedIn(s.Counts[class], k, f, glance)
		if o.Match != nil && !o.Match(class, k.Name()) {
			continue
		}
		s.Keys++
		r := rank{k: k, since: f.First.Since}
		if g := k.Held(); g != nil && f.Grant != 0 {
			r.granted, r.bad = m.leases.Zero().Add(g.Since()), f.Lost || unhealthy[g.Number()] ||
				len(unhealthy) > 0 && slices.ContainsFunc(g.Owners(), func(o *lock.Owner) bool { return unhealthy[o.Number()] })
		}
		add(r)
	}
	if o.MaxWaiters == 0 {
		o.MaxWaiters = -1
	}
	now := time.Now()
	for _, r := range foremost(list, o.MaxKeys) {
		s.States = append(s.States, m.state(r.k, now, o.MaxWaiters))
	}
	return s
}

// rank says how much a key is worth showing.
type rank struct {
	k       *lock.Key
	bad     bool      // lost, or something unhealthy was found
	since   time.Time // the first waiter's; zero where nobody waits
	granted time.Time // zero without a grant
}

// foremost sorts list and cuts it to its first max, or not if max is 0.
func foremost(list []rank, max int) []rank {
	slices.SortFunc(list, rank.compare)
	if max > 0 && len(list) > max {
		list = list[:max]
	}
	return list
}

// compare is negative where r comes before o.
func (r rank) compare(o rank) int {
	if r.bad != o.bad {
		if r.bad {
			return -1
		}
		return 1
	}
	return cmp.Or(earlier(r.since, o.since), earlier(r.granted, o.granted), cmp.Compare(r.k.Name(), o.k.Name()))
}

// earlier orders by time; a zero time comes last.
func earlier(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return b.Compare(a)
	}
	return a.Compare(b)
}
