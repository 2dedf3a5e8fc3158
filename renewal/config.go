package renewal

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Sender is the way to Redis. The Manager knows nothing of scripts, clusters
// or connections; it only says which leases are due and on which shard.
type Sender interface {
	// RenewBatch asks one shard to renew the given items and blocks until it
	// was answered or the command was abandoned. It returns one Result for
	// each item, in the same order; items without a result count as failed.
	//
	// It is called concurrently, from worker goroutines, at most
	// Config.InFlight times concurrently for the same shard. While a call blocks
	// it keeps one of these slots, so the Sender has to bound it by a time
	// limit of its own. That limit has to count from at, the moment
	// at which the batch was handed over: all its leases were active then, and
	// nobody checks again, so that it bounds how long after its end a lease may
	// still be renewed. ctx ends when the Manager stops and, at the latest,
	// when the deadline of every lease in the batch has passed: after that no
	// answer is of use. The items must not be kept: the next call may use them.
	RenewBatch(ctx context.Context, shard string, items []Item, at time.Time) []Result
}

// Item is what is sent for one lease.
type Item struct {
	// Key is the lock's key and Field the holder's field in it.
	Key, Field string
	// Lease is the time to live that a renewal asks for.
	Lease time.Duration
	// Owner has the lease.
	Owner Owner
}

// Result is the answer for one Item. Without a flag there was no usable answer (a
// time-out, a lost connection, a server that is read-only or loading): it proves
// nothing, and the renewal is repeated.
type Result struct {
	// Renewed: the master confirmed the field and raised the time to live.
	Renewed bool
	// Gone: the master says that the field, or the key as a lock, no longer exists.
	// The lease is lost immediately.
	Gone bool
	// SentAt is the moment before the command was sent, with its monotonic
	// reading; zero when it was never sent. The new deadline counts from
	// here, so a confirmation without it can't be used and counts as failed.
	SentAt time.Time
	// Err says why there was no usable answer, or what Redis said.
	Err error
}

// Errors that the Manager itself gives, to OnFailed or in a Cause.
var (
	// ErrNoResult: the Sender returned fewer results than it got items.
	ErrNoResult = errors.New("renewal: the sender gave no result for the lease")
	// ErrNoSentAt: a confirmation came without the moment of sending, from
	// which the new deadline would have to count.
	ErrNoSentAt = errors.New("renewal: a confirmation without the moment of sending")
	// ErrNoAnswer: the deadline passed while the first try was under way.
	ErrNoAnswer = errors.New("renewal: the renewal under way was not answered before the deadline")
	// ErrNoSlot: the deadline passed while the lease waited behind other
	// batches of its shard.
	ErrNoSlot = errors.New("renewal: the renewal found no free slot before the deadline")
)

// Defaults of Config.
const (
	// DefaultBatchSize is how many leases one batch holds unless Config says
	// otherwise.
	DefaultBatchSize = 256
	// DefaultInFlight is how many batches one shard has under way together
	// unless Config says otherwise.
	DefaultInFlight = 4
)

// Config is what a Manager is made of. Only Sender has no default.
//
// The On… functions are for events and metrics; nil ones are left out. They must
// not call Start or Stop. They run on goroutines of their own, one for each batch
// or round that has something to report, so that none of them can delay a renewal or a
// Lost; those that do not return pile up. They may be called concurrently and also
// after the lease they speak of was lost or ended; never after Stop has returned.
type Config struct {
	// Sender is required; New panics without it.
	Sender Sender
	// BatchSize is the most leases in one call of the Sender. A script blocks
	// its server for as long as it runs, so a larger batch saves round trips
	// at the price of everybody's latency. Defaults to 256 when ≤ 0.
	BatchSize int
	// InFlight is the most batches under way together for one shard. What is
	// due beyond it waits in a FIFO of that shard. A shard that hangs keeps
	// its own slots and nobody else's. Defaults to 4 when ≤ 0.
	InFlight int
	// OnRenewed is called after each confirmed renewal. margin is how much of
	// the lease was left (deadline − now) when the confirmation landed, and
	// negative where that was brief (Spec.First) and says nothing;
	OnRenewed func(l *Lease, margin time.Duration)
	// OnFailed is called after each renewal without a usable answer. failures
	// counts those in a row, this one included: 2 means that the renewal is
	// in trouble and not only unlucky.
	OnFailed func(l *Lease, failures int, err error)
	// OnLost is called once for each lost lease, after its Owner and those of all
	// others that were lost at that moment were notified. Lease.Lost has the cause.
	OnLost func(l *Lease)
	// OnJump is called when the wall clock and the monotonic clock moved
	// apart by d since the loop's last round: a suspended machine (d > 0) or
	// a clock that was set. Every renewed lease is sent for a check immediately.
	// A fixed lease has no renewal that could check it: that is left to the
	// owner.
	OnJump func(d time.Duration)
	// Rand returns a number in [0, 1) for jitter. It is called with the
	// Manager's mutex held: it must not block or call the Manager, and need
	// not be safe for concurrent use. Defaults to math/rand/v2.
	Rand func() float64
}

// withDefaults returns c with every zero field filled in.
func (c Config) withDefaults() Config {
	if c.Sender == nil {
		panic("renewal: Config.Sender is nil")
	}
	if c.BatchSize <= 0 {
		c.BatchSize = DefaultBatchSize
	}
	if c.InFlight <= 0 {
		c.InFlight = DefaultInFlight
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return c
}
