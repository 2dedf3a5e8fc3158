// Package interop lets programs of this library and Java programs share locks: make interop.
//
//	test ── lines ──► Java program (interop/lettuce, interop/redisson) ──┐
//	  │                                                                  ├──► locks and a counter in Redis
//	  └── Managers here, and in child processes ─────────────────────────┘
//
// The Java programs speak the line protocol of interop/lettuce/README.md. Their jars are named by the environment:
// ANTEROOM_LETTUCE, ANTEROOM_REDISSON_4 and ANTEROOM_REDISSON_3. Without one its tests are skipped.
package interop
