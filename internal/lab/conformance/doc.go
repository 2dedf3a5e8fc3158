// Package conformance is one suite of tests for every place where locks may lie. Each
// behaviour that docs/guarantees.md promises is one function; each function runs on each
// backend:
//
//	                 miniredis      one server     Sentinel        Cluster
//	                 virtual time   real time      1 + 2 + 3       3 + 3
//	behaviour A ──►      x              x              x              x
//	behaviour B ──►      x              x              x              x
//	   …                 …              …              …              …
//
// A behaviour is given a stage: clients, Managers and keys of its own, in virtual time
// where the backend can do that. When it ends, the stage closes them and asks the
// servers: no key but fencing records, no subscription and no connection may be left.
// That check is part of every behaviour.
//
// What a backend cannot do is skipped, with the reason in Backend.Lacks; a reason that
// belongs to no behaviour is an error, so that none outlives what it was about.
//
// The tests of this package add what only one kind of deployment has: failovers, a slot
// that moves under load, replicas that stand still. docs/faults.md has their results.
package conformance
