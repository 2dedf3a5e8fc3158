package anteroom

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// A Hold that nobody can reach any more can't be released. The garbage collector tells
// of it through a sentinel, which only the Hold refers to:
//
//	 user ──► Hold ──► sentinel ┄┄ cleanup ──► record ──► holdState
//	contexts ──►┘                                           ▲
//	                                                     library
//
// To attach a cleanup costs more than to pass the lock on, and the more of them there
// are in a span of memory, the more each costs. So it is attached to the sentinel, and a
// Hold that is released gives its sentinel back for the next one.
type sentinel struct{ *record }

// record says whose sentinel it is; nil while it is nobody's.
type record struct{ hold atomic.Pointer[holdState] }

// sentinels are those without a Hold. The garbage collector takes those that wait here
// for long, and their cleanups find that they are nobody's.
var sentinels sync.Pool

// guard lets the garbage collector tell when h has become unreachable.
func (h *Hold) guard() {
	w, _ := sentinels.Get().(*sentinel)
	if w == nil {
		w = &sentinel{new(record)}
		runtime.AddCleanup(w, abandon, w.record)
	}
	w.hold.Store(h.s)
	h.sentinel = w
}

// unguard gives the sentinel back. Only the one release that counts may call it: a
// sentinel with two Holds would tell when the last of them is gone.
func (h *Hold) unguard() {
	if w := h.sentinel; w != nil {
		h.sentinel = nil
		w.hold.Store(nil)
		sentinels.Put(w)
	}
}

// abandon is the cleanup of a sentinel. It runs outside any test bubble, so it touches
// nothing but what it has to.
func abandon(r *record) {
	if s := r.hold.Load(); s != nil {
		s.abandoned.Store(true)
	}
}
