package anteroom

import (
	"cmp"
	"slices"
	"time"

	"github.com/anteroom/anteroom/queue"
)

// SurveyOptions says what a Survey lists. The zero value lists everything.
type SurveyOptions struct {
	// Match tells whether a live key belongs into Keys and States. It is called once for
	// each, by the goroutine that asked, while no lock is held. Defaults to all.
	Match func(class, key string) bool
	// MaxKeys bounds the States. Defaults to 0, no bound.
	MaxKeys int
	// MaxWaiters bounds the Waiters of each State. Defaults to 0, no bound.
	MaxWaiters int
}

// Survey is a bounded look at a Manager: what is most worth looking at, and how much
// more there is.
type Survey struct {
	ClientID string
	// CallSites tells whether they are recorded: Config.RecordCallSites.
	CallSites bool
	// Closed tells that Close has begun.
	Closed bool
	// Counts are those of Manager.Counts, whatever Match says.
	Counts map[string]Count
	// Keys is how many live keys match, and States the first MaxKeys of them: first
	// those that are lost or that the watchdog has found something unhealthy about, then
	// those whose first waiter waits for the longest, then those that Redis granted
	// the longest ago; in the order of their keys where these are equal.
	Keys   int
	States []State
	// Verdicts are the watchdog's last about the process as a whole.
	Verdicts []VerdictState
}

// Survey looks at every live key, and closely only at those that it lists. So it costs
// little more than Counts, and can be asked for every few seconds where a Snapshot of
// 100,000 keys takes hundreds of megabytes. It asks nobody; each key's part is consistent
// in itself. It is for monitoring, not for synchronization control.
func (m *Manager) Survey(o SurveyOptions) Survey {
	entries := m.live()
	s := Survey{
		ClientID: m.cfg.ClientID, CallSites: m.cfg.RecordCallSites, Closed: m.closing.Load(),
		Counts: map[string]Count{}, Verdicts: m.verdicts(0),
	}
	unhealthy := map[uint64]bool{}
	for _, n := range m.dog.Unhealthy() {
		unhealthy[n] = true
	}
	now := time.Now()
	first := firsts{max: o.MaxKeys}
	for _, e := range entries {
		sum, waiting := e.tally(s.Counts[e.cfg.Name], now)
		s.Counts[e.cfg.Name] = sum
		if o.Match == nil || o.Match(e.cfg.Name, e.key) {
			s.Keys++
			first.add(rankOf(e, waiting, unhealthy))
		}
	}
	now = time.Now()
	for _, r := range first.sorted() {
		s.States = append(s.States, r.e.state(now, o.MaxWaiters))
	}
	return s
}

// rank says how much a key is worth looking at.
type rank struct {
	e       *entry
	bad     bool      // lost, or something unhealthy was found
	since   time.Time // the first waiter's; zero where nobody waits
	granted time.Time // zero without a grant
}

// rankOf makes the rank of a key whose first waiter has waited for so long.
func rankOf(e *entry, waiting time.Duration, unhealthy map[uint64]bool) rank {
	r := rank{e: e}
	if waiting > 0 {
		r.since = time.Now().Add(-waiting)
	}
	if g := e.cur.Load(); g != nil && e.held() {
		r.granted = g.since
		r.bad = e.q.Word().State() == queue.Lost || unhealthy[g.n]
	}
	return r
}

// compare is negative where r comes before o.
func (r rank) compare(o rank) int {
	if r.bad != o.bad {
		if r.bad {
			return -1
		}
		return 1
	}
	return cmp.Or(earlier(r.since, o.since), earlier(r.granted, o.granted), cmp.Compare(r.e.key, o.e.key))
}

// earlier orders by time; a zero time comes last.
func earlier(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return b.Compare(a)
	}
	return a.Compare(b)
}

// firsts keeps the first max of what it is given, or all if max is 0. It sorts only when it
// has got max more than it keeps, so that a million keys cost no place and little time.
type firsts struct {
	max  int
	list []rank
	last *rank // what is not before it is not kept; nil before the first cut
}

func (f *firsts) add(r rank) {
	if f.last != nil && r.compare(*f.last) >= 0 {
		return
	}
	if f.list = append(f.list, r); f.max > 0 && len(f.list) >= 2*f.max {
		f.cut()
	}
}

func (f *firsts) cut() {
	slices.SortFunc(f.list, rank.compare)
	if f.max > 0 && len(f.list) > f.max {
		clear(f.list[f.max:]) // keeps no entry alive
		f.list = f.list[:f.max]
		last := f.list[f.max-1]
		f.last = &last
	}
}

func (f *firsts) sorted() []rank {
	f.cut()
	return f.list
}
