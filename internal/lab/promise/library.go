package promise

import (
	"context"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
)

// Library is one way to hold locks: a package in one configuration.
type Library struct {
	// Name and Settings stand in the table: which package, and how it was configured.
	Name, Settings string

	// Lease is how long Redis keeps a key that is not renewed.
	Lease time.Duration

	// Bound is by when a removal is promised to be told while Redis answers; 0 if
	// nothing is promised.
	Bound time.Duration

	// Unrenewed says that leases are never renewed. They end by themselves, so only their
	// removal can be measured.
	Unrenewed bool

	// Key returns the key in Redis that stands for the lock with that name.
	Key func(name string) string

	// Usurp is a statement of Lua that leaves KEYS[1] as if another client held it.
	Usurp string

	// Questions names what can be asked of a hold without asking Redis.
	Questions []string

	// Connect makes a client of its own. Acquire of up to Leases holds may follow.
	Connect func(addr string, dial faultnet.DialFunc) (Client, error)
}

// Client holds locks through connections of its own.
type Client interface {
	// Acquire takes a lock that nobody holds and keeps it until Release.
	Acquire(ctx context.Context, name string) (Hold, error)

	// Close ends the client. All holds have been released before.
	Close()
}

// Hold is a lock that was acquired.
type Hold interface {
	// Done returns the channel that is closed when the program is told of the loss.
	Done() <-chan struct{}

	// Held puts the question with that place in Library.Questions, and returns whether
	// the answer is that the lock is held.
	Held(question int) bool

	// Release gives the lock up, also one that was lost.
	Release()
}
