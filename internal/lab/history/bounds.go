package history

import (
	"cmp"
	"slices"
	"time"
)

const (
	// slack is what the report of a loss may take beyond its bound: a goroutine has to
	// run on a machine that others use as well. It is allowed for telling only; what a
	// question answers has none.
	slack = 300 * time.Millisecond
	// settle is how long it may take until a process is served again after Redis was
	// away: connections are made anew, and go-redis' pool rests for a second after many
	// dials in a row have failed.
	settle = 1500 * time.Millisecond
)

// bounds answers until when somebody has to be told.
type bounds struct {
	locks []Lock
	aways map[uint32][]Away // by process, those of all processes included; sorted by From
	every []Away
	known map[boundKey]int64
}

type boundKey struct {
	proc    uint32
	key     int
	from    int64
	removal bool
}

func newBounds(locks []Lock, aways []Away) *bounds {
	b := &bounds{locks: locks, aways: map[uint32][]Away{}, known: map[boundKey]int64{}}
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

// removal is until when a hold of proc has to be told that r has removed its lock: no
// hold goes longer than W without a word from Redis, and the word takes C, or 2 C where
// the question before is still open. While Redis does not serve the process, or the
// process does not run, the bound waits.
func (b *bounds) removal(key int, proc uint32, r Removal) int64 {
	k := boundKey{proc, key, r.From, true}
	until, ok := b.known[k]
	if !ok {
		l := b.locks[key]
		step := int64(l.Period + 2*l.Command + slack)
		until = b.extend(proc, r.From, r.To+step, int64(settle)+step, false)
		b.known[k] = until
	}
	return until
}

// expiry is until when the holder's context has to have ended after the deadline: before
// Redis can give the lock to anybody else, unless the process does not run.
func (b *bounds) expiry(h *Hold) int64 {
	step := int64(b.locks[h.Key].Margin + slack)
	return b.extend(h.Proc, h.Deadline, h.Deadline+step, step, true)
}

// extend moves until on as long as proc was away between from and until.
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
