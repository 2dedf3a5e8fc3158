package promise

import (
	"context"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
)

// Library is one way to hold locks: a package in one configuration.
type Library struct {
	// Name and Settings appear in the table: the package, and its configuration.
	Name, Settings string

	// Lease is how long Redis keeps a key that is not renewed.
	Lease time.Duration

	// Bound is within which a holder is promised to be notified of a removal while Redis answers; 0 if nothing is
	// promised.
	Bound time.Duration

	// Unrenewed: leases are never renewed. They expire by themselves, so only their removal can be measured.
	Unrenewed bool

	// Key returns the key in Redis for the lock with that name.
	Key func(name string) string

	// Usurp is a Lua statement that leaves KEYS[1] as if another client held it.
	Usurp string

	// Questions names what a hold can be asked without a query to Redis.
	Questions []string

	// Connect creates a client of its own. Acquire of up to Leases holds may follow.
	Connect func(addr string, dial faultnet.DialFunc) (Client, error)
}

// Client holds locks through connections of its own.
type Client interface {
	// Acquire acquires a free lock and keeps it until Release.
	Acquire(ctx context.Context, name string) (Hold, error)

	// Close ends the client. All holds have been released before.
	Close()
}

// Hold is an acquired lock.
type Hold interface {
	// Done returns the channel that is closed when the program is notified of the loss.
	Done() <-chan struct{}

	// Held asks the question with that index in Library.Questions, and returns whether the answer is that the lock is
	// held.
	Held(question int) bool

	// Release releases the lock, even a lost one.
	Release()
}
