// Package allpaths is the library at work for those who look at it from outside: some
// Managers on a real redis-server, ordinary load, and a list of paths, each of which
// brings about something that a metric counts, from a hand-off to a lock that somebody
// deletes.
//
//	ordinary work ──┐
//	paths ──────────┤ Managers ── faultnet ── redis-server
//	                └──► Collectors ──► Handlers ◄── Prometheus, or whoever scrapes
//
// It is not a check of the library: the fault matrix, the histories and the chaos runs
// are. A path says which series it moves, and fails where they do not move, so that
// dashboards and rules are never tried against a run in which nothing happened.
//
// # Invariant
//
//	I1  After all paths every value of every label of every metric was counted, but for
//	    those that notTaken lists with a reason.
package allpaths
