package anteroom

import (
	"context"
	"sync"
	"weak"
)

// sentinel is what the Holds of one tenure share. Nobody but them refers to it, so the
// tenure's weak pointer shows when the last of them was forgotten:
//
//	    user ──► Hold ──► sentinel
//	contexts ──► Hold ───────╫──► tenure ◄── library
//	                         ╚┄┄┄ weak ┄┄┘
//
// To make a weak pointer costs more than to pass the lock on, and the more of them there
// are in a span of memory, the more each costs. So a sentinel has its own, and serves one
// tenure after the other.
type sentinel struct {
	weak   weak.Pointer[sentinel]
	values context.Context // of the tenure, where they lead to another Hold; nil otherwise
}

// sentinels are those without a Hold.
var sentinels sync.Pool

func newSentinel() *sentinel {
	s, _ := sentinels.Get().(*sentinel)
	if s == nil {
		s = new(sentinel)
		s.weak = weak.Make(s)
	}
	return s
}

// recycle gives s back, for a tenure without Holds. One that has values is not used again,
// since a report about its tenure may still ask for them.
func (s *sentinel) recycle() {
	if s.values == nil {
		sentinels.Put(s)
	}
}
