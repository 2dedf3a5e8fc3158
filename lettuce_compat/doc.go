// Package lettucecompat is part of the implementation of sync, and not covered by SemVer. It is the wire: it says one
// thing at a time to Redis about one lock (or a batch of them) and
// reports exactly what is known about the effect. It owns the scripts, the layout of keys and messages, the
// subscription connection, the connections for scripts and those that track, and the time limits of commands.
//
// It is not a lock. It does not wait for one, renew one by itself, repeat, or remember who holds what: each answer
// has what its caller needs for those decisions. The name says what it replaces: the design document's LettuceClient
// (docs/internals/decisions.md §4.2.5).
//
// All that a process says of a lock, of whatever kind, is one verb, Do of a Command: what it has, what it keeps of that, and what it
// wants, under a number that it uses once. Redis makes it so, serves the line of those who wait, and answers what the process has
// now. Renew makes what it has of many locks last, and changes nothing else.
//
//	caller ── a script ──► hooks of the user's *redis.Client, or of that of a node ──► node: a connection of
//	                                        │        ours, on which each command travels as soon as it is there
//	caller ── anything else, or through a   │
//	   wrapper, or a Cluster's hooks ─► delegate: a goroutine for a call of go-redis, up to a limit for
//	                                        │      commands, for what keeps locks, and for WAIT
//	                                      Redis
//	                                        │ messages
//	caller ◄── OnMessage, Watch.C ── subscriptions: one connection, and in Redisson's dialect
//	                      on a Cluster one for each shard that is listened to
//	caller ── Track ──────────────► trackers: one connection to each master, on which Redis says that a
//	caller ◄── OnMissing ────────── tracked key was changed, and that asks whether its field is still there
//
// On a connection of ours callers write and read for each other, and none waits for the round trip of another. Hooks, if there are
// any, run on a goroutine of ours, since their caller leaves at its time limit. A connection that does not answer is passed by a second
// one, and closed after a time limit (node). What is asked of replicas goes by go-redis: WAIT speaks about one connection, and holds
// it up.
//
// A command is held until somebody asks for its bytes, then sent. A caller that leaves earlier withdraws it; one that
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
//	I7   A caller is free at its time limit and when its context ends, within a millisecond; while it writes to a peer that
//	     takes nothing, at its time limit, and 5 ms or an eighth of CommandTimeout later at most. What waits for a
//	     connection then is never sent; what it leaves under way is bounded.
//	I8   Renewals and status questions have capacity of their own.
//	I9   No wake-up is lost: a confirmation of a subscription signals, a Watch on a confirmed channel is signalled
//	     when it is made, and a signal that is not taken stays.
//	I10  A derived key lies in the slot of its lock for every name, and no two names share one.
//	I11  Fencing tokens of one key grow, as long as its record is there, or ended by its time, or the server's
//	     clock does not run back.
//	I12  Nothing under way, nothing subscribed and nothing tracked yet: no goroutine. After Close: none, except those
//	     of abandoned calls of go-redis until their sockets give up.
//	I13  A command whose number Redis has a record of, or a greater one, changes nothing.
//	I14  Nobody passes a living place whose client can be reached, and those that are passed keep their order.
//	I15  A renewal names what the client has, of units by their grant, and changes nothing but the end of the lease.
//	I16  While a slot of a Cluster moves, what needs no line does without, whatever the kind of lock.
//
// # Locks
//
// There are seven mutexes: Client.mu (shards), node.mu, logins.subscribing, logins.mu, subscriptions.mu (of all connections that listen),
// tracking.mu and warnings.mu. logins.subscribing is held while a provider of credentials is asked, who may announce new ones in that
// call, so it comes before logins.mu, node.mu and tracking.mu. No other two are held together. Nothing is called, sent or received under
// any of them but closing and filling channels without waiting, setting timers, and starting goroutines; under node.mu also looks at a
// socket, without waiting.
package lettucecompat
