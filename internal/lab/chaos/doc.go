// Chaos runs worker processes with many goroutines on shared locks, while faults of all
// kinds come at random, and judges what they were told.
//
//	CHAOS_FOR=30m CHAOS_SEED=7 go run ./internal/lab/chaos
//
// It starts a redis-server of its own, prints its seed and each fault, then a count of
// each kind, then whatever was found, and as its very last line
//
//		acquisitions=<n> faults=<n> overlaps=<n> violations=<n> late_losses=<n> stuck=<n> leaks=<n>
//
//	  - overlaps: two holders at once, after a removal and inside its bound;
//	  - violations: any other two, a write that the fenced register accepted though it had
//	    seen a newer token, an update that was lost, and what else internal/lab/history calls a
//	    violation; also a run that could not be carried through, and a kind of fault that
//	    did not occur in a run of a minute or more;
//	  - late_losses: holders that were told later than the bound that applies;
//	  - stuck: callers that were not through in time after everything had healed;
//	  - leaks: goroutines, channels, connections, live keys and keys without an end that
//	    were left when everything was closed.
//
// The exit status is 0 exactly when the last four are 0, and 1 otherwise.
//
// The same seed plans the same faults at the same times with the same targets, and lets
// each goroutine draw the same numbers. What the operating system makes of that is its own.
package main
