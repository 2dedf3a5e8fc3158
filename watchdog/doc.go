/*
Package watchdog is part of the implementation of sync, and not covered by SemVer. It watches
the locks that one process holds: it asks the process and Redis, a little at a time, whether each hold is still what its owner believes, reports
what it finds, and does the little that can be done about it.

It is not the renewal: that keeps leases alive and notifies losses by deadline on its own.
It is not a judge of other processes: it checks only this one's holds. It knows nothing
of Redis commands, queues or metrics; Source, Prober and Actor are all that it sees of
them. See docs/internals/decisions.md, the chapters on the watchdog.

# The five checks

Each check is a function of its arguments alone, so that it can be tested and read by
itself.

	CheckRenewal, CheckRenewalLoop   is the lease kept alive?          asks Source
	CheckLockStatus                  does Redis still agree?           asks Prober.Status
	CheckHolder                      can the owner still let go?       asks Source, the runtime
	CheckConnection                  do commands and messages arrive?  asks Prober.Ping, ProbeDelivery
	CheckRecovery                    did the last action help?         asks the other four

# One round

	         every Period/10, at least 50 ms, and at the moment of a hold
	                  │
	Source.Changes ─► update: who has come, who went
	                  │
	heap of moments ► visit ─► Source.LookupAll ► CheckRenewal, CheckHolder ┐
	(who is due?)     │                                                     ├─► judge ─► note ──► OnVerdict
	                  └──────► asks ─► Prober.Status ─► CheckLockStatus ────┤              │       OnAlert, OnClear
	                                         (own goroutine)                │              ▼
	once a Period: CheckRenewalLoop, Prober.Ping, ProbeDelivery ────────────┘           recover ─► Actor
	                                         (own goroutine)                                       OnRecovery

One goroutine does all of it. Questions to Redis run on two more, one for holds and one
for the connection, that live only as long as a question does; so a Redis that hangs
delays no local check, and never more than two questions are under way.

A hold is touched only when something about it is due: the holds are in a heap, by the
moment before which nothing is. Those that are due are visited some at a time, and the facts
of these are asked for together.

# The rhythm

A hold has a word from Redis when it is granted, with each confirmed renewal, and with each
answer to a question of the Watchdog. The next question is due a period after the last word,
counted from when that was sent, and is not put where a renewal is sent by then. Its moment
is counted back from that renewal, so with a renewal every two periods, as by default, one
question lies between two of them:

	renewal ──── a period ────► question ──── a period ────► renewal

A renewal that has brought no word a tick after it was due leads to the question that
waited for it. What only an answer can show (other fields, the count, the time to live) is
so asked for once in two periods by default; after a bad answer, in each of them.

# Invariants

I1. Nobody is accused on old facts: every accusation of a hold is judged again on what
Source.Lookup says at that moment, and a hold that has ended is not accused.

I2. The Watchdog suspects itself first. After a tick that came late by more than half a
period (at least 250 ms) it says so and accuses no renewal and no holder for as long as it
was late (at most a period). A deadline that has passed and what Redis' master says remain
facts.

I3. Silence is no verdict. No answer of Redis, and no goroutine dump or one cut short,
gives Unknown, which neither raises nor clears an alert.

I4. Every hold is checked in each of its own periods, at most a tick later. Redis is asked
about it so that no period passes without a word from Redis; a confirmed renewal is such a
word, and a question without an answer is none: it is put again. A question waits for a
renewal that is due within the period, and a tick longer if that fails.

I5. An alert is raised once, after AlertThreshold failures in a row, and cleared once:
when the check is healthy again, the owner has changed, the hold has ended, or the
Watchdog stops.

I6. Nothing is kept for a hold that is not listed any more.

I7. A hold is deleted only if its goroutine has ended and its strategy is Release. Nothing
else proves that nobody runs under the lock any more.

I8. An action on a hold is taken at most three times for one check before that check has
been healthy again, and a finding that is only reported is reported once, even if others are found in
between. Actions on the process as a whole are repeated for ever, at growing distances of up
to 16 periods.

I9. Each action that was taken (Acted) ends with one outcome: Helped, NotHelped or Unsettled.

# Lock order

Watchdog.mu is a leaf: no Source, Prober, Actor or callback is called under it. Verdicts may
be called under Source's locks, so these come before it.

# Limits

The goroutine scan relies on ids that the runtime never gives twice. A goroutine that C
code enters and leaves again keeps its id while no dump shows it: a Lock in one callback
from C and its Unlock in another seems an ended goroutine in between. The same holds
for finalizers and cleanups. Such locks should be taken with Acquire, or use Notify.
*/
package watchdog
