// Package promise measures the three parts of the promise in docs/guarantees.md §3,
// on Anteroom and, through the same interface, on other packages.
//
//	        expiry                       removal                  stopped holder
//
//	acquire ●                      acquire ●                      acquire ●
//	        │ renewals                     │ renewals                     │ renewals
//	    cut ✕                       remove ✕                      SIGSTOP ✕
//	        │                              │ figure                       ┆
//	   told ○ ┐ figure,               told ○                      granted ◆ rival
//	          │ negative: in time                                 SIGCONT │
//	granted ◆ ┘ rival                                        first answer ○ "lost"
//
// A rival on a healthy connection takes each key as early as Redis allows: a script tries all keys with SET NX and
// returns the time at which it ran. Redis returns the wall clock of the host in microseconds, so all times here are
// of that clock; a round in which it was set is discarded.
//
// What a hold says is watched without touching more of it than is measured. Half of the holds are never queried: only
// their context notifies. The others are asked one question each, in turn through all that the package offers,
// because with Anteroom a question may end the context.
//
// Two times are kept for each hold, and they err on different sides:
//
//   - firstLost is taken after the first answer "lost", so it is never too early, and a figure derived from it is
//     never too good.
//   - lastHeld is taken before the last question that was answered "held", so it is never too late. If it is after
//     the grant to the rival, two parties believed that they hold the lock, and no delay of the measurement explains
//     that.
//
// Everything is measured in real time: nothing here uses virtual time.
package promise
