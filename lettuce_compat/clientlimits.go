package lettucecompat

import (
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"
)

// clientLimits are what the options of the user's client say about its time limits and its connections.
type clientLimits struct {
	known bool // the others say something: rdb is of a type that has options
	// holds is how long a command that hangs holds the goroutine that sends it, beyond the deadline of its context: 0
	// if go-redis minds that on the socket, which is not its default, and unlimited if that is not known.
	holds time.Duration
	read  time.Duration
	pool  int
}

const unlimited time.Duration = math.MaxInt64

// limitsOf reads the options of rdb. It refuses a client that would wait for a reply for ever: each command that is
// abandoned while a server hangs would keep its connection, and in the end no command could be sent although the
// server answers again.
func limitsOf(rdb Redis) (clientLimits, error) {
	var o redis.Options
	switch r := rdb.(type) {
	case *redis.Client:
		o = *r.Options()
	case *redis.ClusterClient:
		c := r.Options()
		o.ReadTimeout, o.WriteTimeout, o.ContextTimeoutEnabled = c.ReadTimeout, c.WriteTimeout, c.ContextTimeoutEnabled
		o.PoolSize, o.MaxActiveConns = c.PoolSize, c.MaxActiveConns
	default:
		return clientLimits{holds: unlimited}, nil
	}
	limits := clientLimits{known: true, holds: max(o.ReadTimeout, o.WriteTimeout), read: o.ReadTimeout, pool: o.PoolSize}
	if o.MaxActiveConns > 0 {
		limits.pool = min(o.PoolSize, o.MaxActiveConns)
	}
	switch {
	case o.ContextTimeoutEnabled:
		limits.holds = 0
	case o.ReadTimeout <= 0:
		return limits, configError("redis client", "its ReadTimeout is switched off: set ReadTimeout, or ContextTimeoutEnabled")
	case o.WriteTimeout <= 0:
		limits.holds = unlimited
	}
	return limits, nil
}

// Bounded reports whether the user's client is known to keep to the deadline of a context, so that a caller that
// sends on its own goroutine is back at its time limit.
func (c *Client) Bounded() bool { return c.limits.holds == 0 }

// ReadTimeout returns after how long the user's client gives up an answer that it reads; 0 where it does not, or that is not
// known.
func (c *Client) ReadTimeout() time.Duration { return max(c.limits.read, 0) }

// Costs says what settings of the user's client cost, a sentence for each that costs something, with what to set
// instead. replicas tells whether renewals wait for replicas. Of a client that is neither a *redis.Client nor a
// *redis.ClusterClient nothing is known, and nothing is said.
func (c *Client) Costs(replicas bool) []string {
	var costs []string
	if c.limits.holds > 0 && c.limits.known {
		costs = append(costs, c.costOfHolding())
	}
	if need := underWay(c.opt.MaxInFlight, replicas); c.limits.known && c.limits.pool < need {
		costs = append(costs, fmt.Sprintf("PoolSize allows %d connections, and up to %d commands are under way at once (MaxInFlight is %d): those beyond it spend their time limit waiting in the pool; set PoolSize to %d or more, or a lower MaxInFlight", c.limits.pool, need, c.opt.MaxInFlight, need))
	}
	return costs
}

// costOfHolding says what a client costs that ignores deadlines.
func (c *Client) costOfHolding() string {
	given := fmt.Sprintf("a command that is given up keeps its goroutine and its connection until ReadTimeout (%v); set ContextTimeoutEnabled", c.limits.read)
	if c.limits.holds > mostHeld*c.opt.CommandTimeout {
		return "ContextTimeoutEnabled is off: an uncontended Lock or Unlock needs a second goroutine, and " + given
	}
	return fmt.Sprintf("ContextTimeoutEnabled is off: when Redis falls silent one Lock or Unlock may wait for ReadTimeout (%v) instead of CommandTimeout (%v), and ", c.limits.read, c.opt.CommandTimeout) + given
}
