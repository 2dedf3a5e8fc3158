// Package anteroomotel makes OpenTelemetry spans of acquiring and releasing locks. It is a
// module of its own, so that a program without OpenTelemetry does not depend on it, and it
// uses the API alone: which SDK there is, if any, is the program's affair.
//
//	m, err := anteroom.NewManager(rdb, anteroom.Config{Tracer: anteroomotel.New()})
//
//	caller's span ────────────────────────────────────────────────►
//	   │ anteroom.acquire ├──────┤                       ▲   ▲
//	   │                          work under the lock    │   │
//	   │ anteroom.release                  ├─┤ ── link ──┘   │
//	   │ anteroom.lost                           │ ── link ──┘
//
// The span of an acquire is the wait: it begins when the caller asks and ends when it has
// the lock, or has not got it. What is done under the lock belongs to the caller's own
// span, which Hold.Context still carries. Renewals have no spans, since nobody waits for
// them, nor have commands to Redis: go-redis' own instrumentation makes those.
//
// The invariants, each with a test that names it:
//
//	I1  Every span that is started ends, and each acquire and each release has one.
//	I2  No key and no holder stands in a span, but for the key with WithKeys.
//	I3  The context of a hold has the caller's span, not that of the acquire.
//	I4  What is not sampled costs no span, and a lock by Lock has none without WithLocks.
//
// docs/tracing.md lists the spans and their attributes.
package anteroomotel
