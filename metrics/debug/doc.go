// Package debug serves a page about the current state of locks, to be mounted the way net/http/pprof is: who holds
// what, since when and from where, who waits in which order, how much of each lease remains, the watchdog's last
// verdicts, and recent events.
//
//	page, err := debug.New(debug.Config{})
//	m, err := anteroom.NewManager(rdb, anteroom.Config{OnEvent: page.OnEvent, RecordCallSites: true})
//	page.Attach(m)
//	http.Handle("/debug/anteroom/", page)
//
// A program with an OnEvent of its own calls page.OnEvent from it. Goroutines have the numbers that
// /debug/pprof/goroutine?debug=2 gives them.
//
// The page is for people; ?format=json returns the same to programs, as a Report. docs/reference/debug-json.md has all parameters
// and fields.
//
// # Who may see it
//
// Anyone who can open the page sees keys, which may be personal data, call sites, and host names. Mount it where
// pprof may be mounted: on a listener that only operators can reach, never on a public one. Config.HideKeys omits the
// keys. The page asks for no password; I7 defends it against foreign pages in the operator's browser.
//
// # Picture
//
//	Manager ── Event ──► OnEvent ──► recent events ──────────┐
//	Managers ◄─ Survey ── gather ◄─ pace ◄─ guard ◄─ request ├─► Report ─► JSON
//	                        └── locks, classes, checks ──────┘         └─► HTML
//	                                                        all of it in memory, then sent
//
// # Invariants
//
//	I1  Read-only: GET and HEAD are answered, everything else gets 405. No request reaches Redis or changes a lock.
//	I2  Everything shown is text, with any bytes in keys, classes and messages: all of it is escaped, and strings
//	    with unprintable characters are quoted as in Go.
//	I3  Nothing is loaded from elsewhere, and no script runs but the page's own: the Content-Security-Policy names
//	    script and style by their hashes.
//	I4  An answer is bounded, however many locks, waiters, classes, Managers and events there are, and says how many it
//	    leaves out.
//	I5  OnEvent never waits for a request, and no lock of the Page is held while an answer is sent: a client that hangs
//	    delays nobody.
//	I6  All clients together cost at most a twentieth of a processor, however many they are and however often they ask,
//	    as long as an answer takes less than 3 s.
//	I7  Only requests for an address, localhost or a name in Config.Hosts are answered, and none that the browser marks
//	    as made by another site or by a link from one. Browsers mark requests over HTTPS and to localhost; over
//	    plain HTTP to another address such a request is answered, and its page cannot read the answer.
//
// # Lock order
//
// Page.mu and recent.mu are leaves: neither a Manager nor a client is waited for while they are held. pace's turn is
// held while the Managers are asked, but never while waiting for a client.
package debug
