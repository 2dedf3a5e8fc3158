package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// step is one fault of a schedule.
type step struct {
	kind   kind
	after  time.Duration // the pause since the previous fault of the same sort
	lasts  time.Duration
	worker int   // the target
	keys   []int // for faults about keys
	line   []int // for faults of whoever is first in line
}

// String formats a step for the printed schedule.
func (s step) String() string {
	text := s.kind.name
	if s.lasts > 0 {
		text += fmt.Sprintf(" for %v", s.lasts.Round(time.Millisecond))
	}
	if !s.kind.server && !s.kind.first {
		text += fmt.Sprintf(", process %d", s.worker+1)
	}
	return text
}

// rest is the time between two faults of a sort: short enough that each kind occurs more than once in a minute, and
// that faults meet the effects of earlier ones.
const rest = 700 * time.Millisecond

// plan draws a schedule that is longer than the run, for faults of the server or of processes. All kinds occur once,
// in random order, before any occurs again.
func plan(c config, server bool) []step {
	sort := uint64(0)
	if server {
		sort = 1
	}
	rng := rand.New(rand.NewPCG(c.seed, sort))
	var sorted []kind
	for _, k := range kinds {
		if k.server == server && (len(c.only) == 0 || slices.Contains(c.only, k.name)) {
			sorted = append(sorted, k)
		}
	}
	var steps []step
	for total := time.Duration(0); total < c.lasts && len(sorted) > 0; {
		rng.Shuffle(len(sorted), func(i, j int) { sorted[i], sorted[j] = sorted[j], sorted[i] })
		for _, k := range sorted {
			s := step{
				kind: k, after: rest/4 + time.Duration(rng.Int64N(int64(rest))), lasts: k.atLeast,
				worker: rng.IntN(c.processes + c.singles), keys: rng.Perm(c.keys)[:min(5, c.keys)],
				line: rng.Perm(cmp.Or(c.singleKeys, c.keys)),
			}
			if k.upTo > k.atLeast {
				s.lasts += time.Duration(rng.Int64N(int64(k.upTo - k.atLeast)))
			}
			steps = append(steps, s)
			total += s.after + s.lasts
		}
	}
	return steps
}
