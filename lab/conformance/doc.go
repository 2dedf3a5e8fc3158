// Package conformance is one suite of tests for every kind of deployment. Each behaviour that docs/guarantees.md
// promises and that depends on the deployment is one function; each function runs on each backend:
//
//	                 one server     Sentinel        Cluster
//	                                1 + 2 + 3       3 + 3
//	behaviour A ──►      x              x              x
//	behaviour B ──►      x              x              x
//	   …                 …              …              …
//
// What happens within a process, or can be tried in virtual time, the tests of sync try.
//
// A behaviour runs on a stage: clients, Managers and keys of its own.
// When it ends, the stage closes them and queries the servers: no key but fencing records, no subscription and no
// connection may remain. That check is part of every behaviour.
//
// The tests of this package add what only one kind of deployment has: failovers, a slot that moves under load,
// stopped replicas. docs/testing.md has their results.
package conformance
