// Package conformance is one suite of tests for every kind of deployment. Each behaviour that docs/guarantees.md
// promises is one function; each function runs on each backend:
//
//	                 miniredis      one server     Sentinel        Cluster
//	                 virtual time   real time      1 + 2 + 3       3 + 3
//	behaviour A ──►      x              x              x              x
//	behaviour B ──►      x              x              x              x
//	   …                 …              …              …              …
//
// A behaviour runs on a stage: clients, Managers and keys of its own, in virtual time if the backend supports it.
// When it ends, the stage closes them and queries the servers: no key but fencing records, no subscription and no
// connection may remain. That check is part of every behaviour.
//
// What a backend cannot do is skipped, with the reason in Backend.Lacks; a reason without a behaviour is an error, so
// that none outlives its behaviour.
//
// The tests of this package add what only one kind of deployment has: failovers, a slot that moves under load,
// stopped replicas. docs/testing.md has their results.
package conformance
