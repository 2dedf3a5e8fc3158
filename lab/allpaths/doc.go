// Package allpaths puts the library to work for observers from outside: some Managers on a real redis-server,
// ordinary load, and a list of paths, each of which causes something that a metric counts, from a hand-off to a lock
// deleted by a stranger.
//
//	ordinary work ──┐
//	paths ──────────┤ Managers ── faultnet ── redis-server
//	                └──► Collectors ──► Handlers ◄── Prometheus, or another scraper
//
// It does not check the library: the fault matrix, the histories and the chaos runs do. A path names the series that
// it moves, and fails if they do not move, so that dashboards and rules are never tried on a run in which nothing
// happened.
//
// # Invariant
//
//	I1  After all paths every value of every label of every metric was counted, except those that notTaken lists with a
//	    reason.
package allpaths
