// Package lettucecompat is the wire: it says one thing at a time to Redis about one
// lock (or a batch of them) and reports exactly what is known about the effect. It owns
// the scripts, the layout of keys and messages, the subscription connection
// and the time limits of commands.
//
// It is not a lock. It does not wait for one, renew one by itself, retry, or remember
// who holds what: every such decision is its caller's, who is told in each reply what
// the decision needs. The name says what it replaces: the design document's
// LettuceClient (docs/internals/decisions.md §4.2.5), whose four calls are TryAcquire, Release, Renew
// and Status here.
//
//	caller ── TryAcquire, Release, EndTurn ──► lane "locks" ─┐  per shard: at most
//	caller ── Renew, Status, Extend, Ping ───► lane "keep" ──┤  limit round trips,
//	caller ── Confirm ───────────────────────► lane "places"─┤  the rest shares the next
//	                                  go-redis client ◄──────┘
//	                                        │ scripts
//	                                      Redis
//	                                        │ messages
//	caller ◄── OnCalled, OnLook, OnForced, Watch.C ── subscriptions: one connection, and in
//	                      Redisson's dialect on a Cluster one for each shard that is listened to
//
// A caller whose context cannot end carries its call itself while nothing else is under way,
// nor was of late more than one other, and the client is known to return in time, or the
// caller may be held (lane.carriesItselfLocked); all other calls are carried by a goroutine of the lane, so that
// their callers may leave.
//
// A command is held until go-redis asks for its bytes, then sent; a caller that leaves
// earlier withdraws it, one that leaves later cannot know (OutcomeUnknown). An error that
// comes while it is held had nothing to do with a server: it is withdrawn too.
//
// # Invariants
//
//	I1   go-redis executes a command at most once, alone or in a pipeline; only the
//	     caller repeats.
//	I2   OutcomeFailed means: no effect, now or later. What may have taken effect is
//	     OutcomeUnknown, never Failed.
//	I3   OutcomeGone is concluded from the answer of a master only: where a script finds
//	     nothing of ours it makes a write that changes nothing, which a replica refuses.
//	I4   A time to live is only raised. The one exception is a release with Keep.
//	I5   The count of a field is 1. Nothing adds to it, and only an attempt marked as
//	     Repeat may find its field there.
//	I6   A field of another is never deleted, except by ForceRelease. A release deletes
//	     a field, never a key.
//	I7   A caller is free at its time limit and when its context ends, at once. What it
//	     leaves in the queue is never sent; what it leaves under way is bounded. A caller
//	     that carries its call itself trusts the client: a hook that blocks holds it up,
//	     and a client that does not mind deadlines does, up to its ReadTimeout and at most
//	     five time limits. That meets one caller of a lane in an outage.
//	I8   Renewals and status questions have capacity of their own, and so have confirmations of places.
//	I9   No wake-up is lost: a confirmation of a subscription signals, a Watch on a
//	     confirmed channel is signalled when it is made, and a signal that is not taken
//	     stays.
//	I10  A derived key lies in the slot of its lock for every name, and no two names
//	     share one.
//	I11  Fencing tokens of one key grow, as long as its record is there, or ended by its
//	     time, or the server's clock does not run back.
//	I12  Nothing under way and nothing subscribed: no goroutine, but for one that
//	     lingers 50 ms per lane for locks until StopListening. After Close: none, except those of
//	     abandoned commands until their sockets give up.
//
// # Locks
//
// There are four mutexes: Client.mu (shards), lane.mu, subscriptions.mu (of all connections that
// listen), warnings.mu.
// Client.mu is taken before lane.mu in Close and StopListening; otherwise no two are held together.
// Nothing is called, sent or received under any of them but closing and filling
// channels without waiting.
package lettucecompat
