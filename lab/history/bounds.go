package history

import (
	"cmp"
	"slices"
	"time"
)

const (
	// slack is what the report of a loss may take beyond its bound: a goroutine has to run on a machine that others
	// use too. It applies only to notifications; answers to queries have none. History.Slow stretches it, and settle.
	slack = 300 * time.Millisecond
	// settle is how long it may take until a process is served again after an outage of Redis: connections are
	// re-established, and go-redis' pool pauses for a second after many failed dials in a row.
	settle = 1500 * time.Millisecond
)

// bounds computes until when a holder must be notified.
type bounds struct {
	locks []Lock
	slow  float64
	aways map[uint32][]Away // by process, including those of all processes; sorted by From
	every []Away
	known map[boundKey]int64
}

type boundKey struct {
	proc    uint32
	key     int
	from    int64
	removal bool
}

func newBounds(locks []Lock, aways []Away, slow float64) *bounds {
	b := &bounds{locks: locks, slow: max(slow, 1), aways: map[uint32][]Away{}, known: map[boundKey]int64{}}
	for _, a := range aways {
		if a.Proc == AllProcs {
			b.every = append(b.every, a)
		} else {
			b.aways[a.Proc] = append(b.aways[a.Proc], a)
		}
	}
	for proc := range b.aways {
		b.aways[proc] = append(b.aways[proc], b.every...)
		slices.SortFunc(b.aways[proc], func(x, y Away) int { return cmp.Compare(x.From, y.From) })
	}
	slices.SortFunc(b.every, func(x, y Away) int { return cmp.Compare(x.From, y.From) })
	return b
}

func (b *bounds) stretched(d time.Duration) int64 { return int64(float64(d) * b.slow) }

// removal is until when a hold of proc must be notified that r has removed its lock: no hold goes longer than W
// without an answer of Redis, and the answer takes C, or 2 C if the query before is still open. While Redis does not
// serve the process, or the process does not run, the bound is suspended.
func (b *bounds) removal(key int, proc uint32, r Removal) int64 {
	k := boundKey{proc, key, r.From, true}
	until, ok := b.known[k]
	if !ok {
		l := b.locks[key]
		step := int64(l.Period+2*l.Command) + b.stretched(slack)
		until = b.extend(proc, r.From, r.To+step, b.stretched(settle)+step, false)
		b.known[k] = until
	}
	return until
}

// expiry is until when the holder's context must have ended after the deadline: before Redis can grant the lock to
// anybody else, unless the process does not run.
func (b *bounds) expiry(h *Hold) int64 {
	step := int64(b.locks[h.Key].Margin) + b.stretched(slack)
	return b.extend(h.Proc, h.Deadline, h.Deadline+step, step, true)
}

// extend postpones until by the time that proc was away between from and until.
func (b *bounds) extend(proc uint32, from, until, again int64, stopped bool) int64 {
	aways, ok := b.aways[proc]
	if !ok {
		aways = b.every
	}
	for more := true; more; {
		more = false
		for _, a := range aways {
			if a.From > until {
				break
			}
			if a.To >= from && a.To+again > until && (a.Stopped || !stopped) {
				until, more = a.To+again, true
			}
		}
	}
	return until
}
