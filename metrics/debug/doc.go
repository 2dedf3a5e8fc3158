// Package debug shows what locks do at this moment on a page that a program mounts as it
// mounts net/http/pprof: who holds what, since when and from where, who waits in which
// order, what is left of each lease, what the watchdog said last, and what happened
// recently.
//
//	page, err := debug.New(debug.Config{})
//	m, err := anteroom.NewManager(rdb, anteroom.Config{OnEvent: page.OnEvent, RecordCallSites: true})
//	page.Attach(m)
//	http.Handle("/debug/anteroom/", page)
//
// A program with an OnEvent of its own calls page.OnEvent from it. Goroutines have the
// numbers that /debug/pprof/goroutine?debug=2 gives them.
//
// The page is for a person; with ?format=json the same stands there for a program, as a
// Report. docs/debug.md has all parameters and fields.
//
// # Who may see it
//
// Whoever can open the page sees keys, which may be personal data, call sites, and names of
// machines. Mount it where pprof may be mounted: on a listener that only operators reach,
// never on a public one. Config.HideKeys leaves the keys out. The page itself asks nobody
// for a password; I7 keeps out what foreign pages do in the operator's browser.
//
// # Picture
//
//	Manager ── Event ──► OnEvent ──► ring of recent events ──┐
//	Managers ◄─ Survey ── gather ◄─ pace ◄─ guard ◄─ request ├─► Report ─► JSON
//	                        └── locks, classes, checks ──────┘         └─► HTML
//	                                                        all of it in memory, then sent
//
// # Invariants
//
//	I1  Read-only: GET and HEAD are answered, everything else is 405. Nothing that is
//	    asked here reaches Redis or changes a lock.
//	I2  What is shown is text, whatever bytes keys, classes and messages consist of: all
//	    of it is escaped, and what does not print stands there as Go quotes it.
//	I3  Nothing comes from elsewhere, and no script runs but the page's own: the
//	    Content-Security-Policy names script and style by their hashes.
//	I4  An answer is bounded, however many locks, waiters, classes, Managers and events
//	    there are, and says how many it leaves out.
//	I5  OnEvent never waits for a request, and no lock of the Page is held while an answer
//	    is sent: a client that hangs delays nobody.
//	I6  All clients together cost at most a twentieth of a processor, however many they
//	    are and how often they ask, as long as an answer takes less than 3 s.
//	I7  Only a request for an address, localhost or a name in Config.Hosts is answered,
//	    and none of which the browser says that another site makes it or leads to it. It says
//	    so for HTTPS and localhost; over plain HTTP to another address such a request is
//	    answered, and its page cannot read the answer.
//
// # Lock order
//
// Page.mu and ring.mu are leaves: neither a Manager nor a client is waited for under them.
// pace's turn is held while the Managers are asked, and while no client is.
package debug
