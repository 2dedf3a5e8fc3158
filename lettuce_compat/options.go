package lettucecompat

import (
	"fmt"
	"time"
)

// Defaults and limits of Options.
const (
	DefaultCommandTimeout  = time.Second
	DefaultMaxInFlight     = 16
	DefaultChannelIdle     = 10 * time.Second
	DefaultMaxIdleChannels = 1024
	// DefaultRecordTime is how long a fencing record lives without being used.
	DefaultRecordTime = 7 * 24 * time.Hour
)

// Options configure a Client. Only ClientID is required.
type Options struct {
	// ClientID names this client in the fields that it writes and in its own channel:
	// letters, digits, '.', '_' and '-', at most 128 bytes. Two clients that share one, be
	// it one after the other, break each other's locks; NewClientID makes a fresh one.
	ClientID string
	// Dialect is the layout of keys, channels, messages and scripts. Defaults to
	// DesignDocument.
	Dialect Dialect
	// CommandTimeout limits every command whose request names no limit of its own. It
	// is enforced by abandoning the command, so it also holds where the socket's time
	// limits are longer. Defaults to one second.
	CommandTimeout time.Duration
	// AllowRing accepts a *redis.Ring. A Ring moves keys between shards when a shard
	// leaves or comes, within a lease, so exclusion does not hold across such a change.
	AllowRing bool
	// MaxInFlight limits the acquire and release commands (or pipelines of them) under
	// way per shard; what comes beyond waits and shares the next round trip. Where round
	// trips are short fewer are used: four, and as many as one has times 250 µs. Defaults to
	// 16. Beside them go 8 for renewals and questions, and 8 (or MaxInFlight, if that is
	// less) for acquires that wait for replicas. Keep it below the client's PoolSize, or commands wait there instead.
	MaxInFlight int
	// ChannelIdle is how long a channel stays subscribed after its last watcher has
	// gone, so that a key that is contended again needs no new subscription. Defaults
	// to 10 seconds.
	ChannelIdle time.Duration
	// MaxIdleChannels caps the channels that are subscribed and watched by nobody; the
	// oldest go first. Defaults to 1024.
	MaxIdleChannels int

	// OnForced is called when ForceRelease, called by anybody, has deleted field of
	// this client. It runs on the goroutine that receives all messages: it must not
	// block. Anyone who may publish to the client's channel can cause it.
	OnForced func(key, field string)
	// OnSubscription tells when the subscription connection comes up or goes down, and
	// why. State changes only. It must not block.
	OnSubscription func(up bool, err error)
	// OnCommand is called after every command with its name, outcome and duration, on
	// the caller's goroutine. It must not block.
	OnCommand func(CommandStat)
	// OnWarning reports what works badly without failing. Repetitions are gathered, see
	// Warning.Count. It must not block.
	OnWarning func(Warning)
}

// CommandStat describes one finished or abandoned command.
type CommandStat struct {
	// Name is one of acquire, release, turn, renew, extend, status, inspect,
	// force, ping, probe.
	Name     string
	Outcome  Outcome
	Duration time.Duration // until the caller was free, waiting included
}

// withDefaults returns o with every zero field set, or an error that names the field.
func (o Options) withDefaults() (Options, error) {
	if err := checkClientID(o.ClientID); err != nil {
		return o, err
	}
	if o.Dialect.name == "" {
		o.Dialect = DesignDocument
	}
	for _, f := range []struct {
		name  string
		value *time.Duration
		def   time.Duration
	}{
		{"CommandTimeout", &o.CommandTimeout, DefaultCommandTimeout},
		{"ChannelIdle", &o.ChannelIdle, DefaultChannelIdle},
	} {
		if *f.value < 0 {
			return o, configError("Options."+f.name, fmt.Sprintf("%v is negative", *f.value))
		}
		if *f.value == 0 {
			*f.value = f.def
		}
	}
	for _, f := range []struct {
		name  string
		value *int
		def   int
	}{
		{"MaxInFlight", &o.MaxInFlight, DefaultMaxInFlight},
		{"MaxIdleChannels", &o.MaxIdleChannels, DefaultMaxIdleChannels},
	} {
		if *f.value < 0 {
			return o, configError("Options."+f.name, fmt.Sprintf("%d is negative", *f.value))
		}
		if *f.value == 0 {
			*f.value = f.def
		}
	}
	return o, nil
}
