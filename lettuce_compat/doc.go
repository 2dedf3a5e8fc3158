// Package lettucecompat is part of the implementation of sync, and not covered by SemVer. It is the wire: it says one
// thing at a time to Redis about one lock (or a batch of them) and
// reports exactly what is known about the effect. It owns the scripts, the layout of keys and messages, the
// subscription connection, the connections that track, and the time limits of commands.
//
// It is not a lock. It does not wait for one, renew one by itself, repeat, or remember who holds what: each answer
// has what its caller needs for those decisions. The name says what it replaces: the design document's LettuceClient
// (docs/internals/decisions.md §4.2.5).
//
// All that a process says of a lock, of whatever kind, is one verb, State: what it has, what it keeps of that, and what it
// wants, under a number that it uses once. Redis makes it so, serves the line of those who wait, and answers what the process has
// now. Renew makes what it has of many locks last, and changes nothing else.
//
//	caller ── State ─────────────────────► sender "locks" ─┐  per server: one round trip is under way,
//	caller ── Renew, Status, Ping ───────► sender "keep" ──┤  those who come meanwhile share the next, and
//	caller ── Extend with replicas ──────► sender "synced" ┤  beside a slow one another starts, up to a limit
//	                                  go-redis client ◄────┘
//	                                        │ scripts
//	                                      Redis
//	                                        │ messages
//	caller ◄── OnMessage, Watch.C ── subscriptions: one connection, and in Redisson's dialect
//	                      on a Cluster one for each shard that is listened to
//	caller ── Track ──────────────► trackers: one connection to each master, on which Redis says that a
//	caller ◄── OnMissing ────────── tracked key was changed, and that asks whether its field is still there
//
// A lone caller sends on its own goroutine, if its context cannot end and the client is known to return in time or
// the caller may be held (sender.runsInlineLocked). All others are served by a goroutine of the sender, so that they
// may leave. Requests for replicas each go alone: WAIT speaks about one connection, and holds it up.
//
// A command is held until go-redis asks for its bytes, then sent. A caller that leaves earlier withdraws it; one that
// leaves later cannot know (OutcomeUnknown). An error that comes while it is held had nothing to do with a server: it
// withdraws the command too.
//
// # Invariants
//
//	I1   go-redis executes a command at most once, alone or in a pipeline; only the caller may send another,
//	     under another number.
//	I2   OutcomeFailed means: nothing of the client's has changed or will. What may have taken effect is
//	     OutcomeUnknown, never Failed.
//	I3   Lost, gone, nothing and OutcomeGone are concluded from the answer of a master only: where a script finds
//	     nothing of ours it makes a write that changes nothing, which a replica refuses.
//	I4   A time to live is only raised. The one exception is a give-back with a mark.
//	I5   The count of a Mutex' field is 1. A field is set where the key does not exist, and by a mark.
//	I6   A field of another is never deleted, except by ForceRelease. A give-back deletes a field, never a key that another has.
//	I7   A caller is free at its time limit and when its context ends, immediately. What it leaves in the queue is
//	     never sent; what it leaves under way is bounded. A caller that sends on its own goroutine trusts the
//	     client: a hook that blocks holds it up, and so does a client that ignores deadlines, up to its ReadTimeout
//	     and at most five time limits. That meets one caller of a sender in an outage.
//	I8   Renewals and status questions have capacity of their own.
//	I9   No wake-up is lost: a confirmation of a subscription signals, a Watch on a confirmed channel is signalled
//	     when it is made, and a signal that is not taken stays.
//	I10  A derived key lies in the slot of its lock for every name, and no two names share one.
//	I11  Fencing tokens of one key grow, as long as its record is there, or ended by its time, or the server's
//	     clock does not run back.
//	I12  Nothing under way, nothing subscribed and nothing tracked yet: no goroutine. After Close: none, except those
//	     of abandoned commands until their sockets give up.
//	I13  A command whose number Redis has a record of, or a greater one, changes nothing.
//	I14  Nobody passes a living place whose client can be reached, and those that are passed keep their order.
//	I15  A renewal names what the client has, of units by their grant, and changes nothing but the end of the lease.
//	I16  While a slot of a Cluster moves, what needs no line does without, whatever the kind of lock.
//
// # Locks
//
// There are five mutexes: Client.mu (shards), sender.mu, subscriptions.mu (of all connections that listen), tracking.mu and
// warnings.mu. No two are held together. Nothing is called, sent or received under any of them but closing and
// filling channels without waiting, setting timers, and starting goroutines.
package lettucecompat
