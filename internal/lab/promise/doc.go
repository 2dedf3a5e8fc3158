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
// A rival on a healthy connection takes each key as early as Redis allows: a script
// that tries all keys with SET NX and says at which moment it ran. Redis tells the
// wall clock of the host in microseconds, so all moments here are moments of that
// clock; a round in which it was set is refused.
//
// What a hold says is watched without touching more of it than is measured. Half of
// the holds are never asked anything: their context alone tells. The others are asked
// one question each, in turn through all that the package offers, because with
// Anteroom a question may end the context.
//
// Two moments are kept for each hold, and they are on different sides of the truth:
//
//   - firstLost is noted after the first answer "lost", so it is never too early, and a
//     figure made of it is never too good.
//   - lastHeld is noted before the last question that was answered "held", so it is
//     never too late. If it comes after the grant to the rival, two parties believed
//     that they hold the lock, and no delay of the measurement explains that.
//
// Everything is measured as it happens: nothing here uses virtual time.
package promise
