package lettucecompat

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Defaults and limits of Options.
const (
	DefaultCommandTimeout = time.Second
	DefaultMaxInFlight    = 16
	// DefaultRecordTime is how long a fencing record lives without being used.
	DefaultRecordTime = 7 * 24 * time.Hour
)

// Options configure a Client. Only ClientID is required.
type Options struct {
	// ClientID names this client in the fields that it writes and in its own channel: letters, digits, '.', '_' and
	// '-', at most 128 bytes. Two clients that share one, be it one after the other, break each other's locks;
	// NewClientID makes a fresh one.
	ClientID string
	// CommandTimeout limits every command whose request names no limit of its own. It is enforced by abandoning the
	// command, so it holds even if the socket's time limits are longer. Defaults to one second.
	CommandTimeout time.Duration
	// Dialect is how locks are written in Redis. Defaults to DesignDocument.
	Dialect Dialect
	// MaxInFlight limits the commands that go-redis has under way per server: those of a ClusterClient with hooks, or of a client that is
	// wrapped. The scripts of all others travel on connections of ours. Defaults to 16. Beside them go 8 for renewals and questions, and 8 (or
	// MaxInFlight, if that is less) for renewals that wait for replicas. Keep the sum below the client's PoolSize, or
	// commands wait there instead.
	MaxInFlight int

	// None of these may block, but for OnMissing.

	// OnMessage is called for each message on the client's own channel, on the goroutine that receives all messages.
	OnMessage func(Message)
	// OnSubscription is called when the subscription connection comes up or goes down, with the reason. State changes
	// only.
	OnSubscription func(up bool, err error)
	// OnCommand is called after every command with its name, outcome and duration, on the caller's goroutine.
	OnCommand func(CommandStat)
	// OnMissing is called when a connection of Track has found that these fields are not there. It asks a master, within
	// ctx, and reports whether one of them is there all the same. nil: nothing is tracked.
	OnMissing func(ctx context.Context, some []*Tracked) (there bool)
	// OnWarning reports what works badly without failing. Repetitions are gathered, see Warning.Count.
	OnWarning func(Warning)
}

// CommandStat describes one finished or abandoned command.
type CommandStat struct {
	// Name is one of acquire, confirm, release, yield, cancel, renew, take, extend, status, inspect, force, ping, probe.
	Name     string
	Outcome  Outcome
	Duration time.Duration // until the caller was free, waiting included
}

// withDefaults returns o with every zero field set, or an error that names the field.
func (o Options) withDefaults() (Options, error) {
	if err := checkClientID(o.ClientID); err != nil {
		return o, err
	}
	if !o.Dialect.Valid() {
		return o, configError("Options.Dialect", fmt.Sprintf("%d is none of the constants", o.Dialect))
	}
	if !o.Dialect.ourID(o.ClientID) { // the scripts could not split its fields
		return o, configError("Options.ClientID", fmt.Sprintf("%q is no UUID of version 8, which names a client in Redisson's dialect: use Dialect.NewClientID", o.ClientID))
	}
	if o.CommandTimeout < 0 {
		return o, configError("Options.CommandTimeout", fmt.Sprintf("%v is negative", o.CommandTimeout))
	}
	if o.MaxInFlight < 0 {
		return o, configError("Options.MaxInFlight", fmt.Sprintf("%d is negative", o.MaxInFlight))
	}
	o.CommandTimeout = cmp.Or(o.CommandTimeout, DefaultCommandTimeout)
	o.MaxInFlight = cmp.Or(o.MaxInFlight, DefaultMaxInFlight)
	return o, nil
}
