// Chaos runs worker processes with many goroutines on shared locks, with random faults of all kinds, and judges the
// answers that they got.
//
//	CHAOS_FOR=30m CHAOS_SEED=7 go -C lab run ./chaos
//
// It starts a redis-server of its own, prints its seed and each fault, then a count of each kind, then the findings,
// and as its very last line
//
//	acquisitions=<n> faults=<n> overlaps=<n> violations=<n> late_losses=<n> stuck=<n> leaks=<n>
//
// where
//   - overlaps: two concurrent holders, after a removal and inside its bound;
//   - violations: any other two, a write that the fenced register accepted although it had seen a newer token, a lost
//     update, and whatever else lab/history calls a violation; also a run that could not be carried through,
//     and a kind of fault that did not occur in a run of a minute or more;
//   - late_losses: holders that were notified later than the bound that applies;
//   - stuck: callers that did not return in time after all faults had healed;
//   - leaks: goroutines, channels, connections, live keys and keys without a time to live that remained when
//     everything was closed.
//
// The exit status is 0 exactly when the last four are 0, and 1 otherwise.
//
// The same seed plans the same faults at the same times with the same targets, and makes each goroutine draw the same
// numbers. Scheduling still varies.
package main
