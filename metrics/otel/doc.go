// Package anteroomotel creates OpenTelemetry spans for acquiring and releasing locks, and reports their metrics. It is a
// module of its own, so that programs without OpenTelemetry do not depend on it, and it uses the API only: the choice of
// an SDK is the program's.
//
//	m, err := anteroom.NewManager(rdb, anteroom.Config{Tracer: anteroomotel.New()})
//
//	caller's span ────────────────────────────────────────────────►
//	   │ anteroom.acquire ├──────┤                       ▲   ▲
//	   │                          work under the lock    │   │
//	   │ anteroom.release                  ├─┤ ── link ──┘   │
//	   │ anteroom.lost                           │ ── link ──┘
//
// The span of an acquire covers the wait: it begins with the call and ends when the lock is acquired, or not. The
// work under the lock belongs to the caller's own span, which Hold.Context still carries. Renewals have no spans,
// since nobody waits for them, nor have commands to Redis: go-redis' own instrumentation creates those.
//
// Metrics fills Config.Observer as package metrics does for Prometheus, with the same facts under names of their own.
//
// The invariants, each with a test that names it:
//
//	I1  Every span that is started ends, and each acquire and each release has one.
//	I2  No key and no holder is in a span, except the key with WithKeys.
//	I3  The context of a hold carries the caller's span, not that of the acquire.
//	I4  What is not sampled creates no span, and neither does Lock without WithLocks.
//
// docs/observability.md lists the spans, docs/reference/span-attributes.md their attributes, docs/reference/metrics.md
// the metrics.
package anteroomotel
