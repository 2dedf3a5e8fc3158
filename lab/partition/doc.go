// Package partition tries the library where masters fail, slots move, and the network between several hosts fails.
//
//	host ──┐                      ┌── host
//	host ──┼── router ────────────┼── host      a network namespace each, and a veth to the router's
//	host ──┘   loses packets      └── host
//
// Sentinel (one master, two replicas, three Sentinels) and a Cluster (three masters, three replicas) run with a host
// for each process, and so do the clients: workers of lab/history, judged as there. The router loses packets
// from one host to another, in one direction or in both, or those of a single TCP connection; it tells nobody. The
// test itself asks the servers by Unix sockets, which no cut reaches, so it sees both sides at all times.
//
// # How a partition is judged
//
// Each side is judged alone as if the other did not exist: a partition must break nothing within a side. Then both
// together: an overlap is excused only from the cut until the one side was overruled, which the servers say, and then
// only for as long as a removal takes to be told (docs/guarantees.md §3). The longest overlap is a figure with a bound
// of its own.
//
// Namespaces need root and iproute2. Without them everything is skipped, and counted.
package partition
