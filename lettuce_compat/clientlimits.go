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
	// Below 0 (-2 for who sets it) go-redis sets no deadline on the socket, whatever the context says; 0 is -1 for who sets it.
	switch mindsContext := o.ContextTimeoutEnabled; {
	case o.ReadTimeout < 0, o.ReadTimeout == 0 && !mindsContext:
		return limits, configError("redis client", "its ReadTimeout is switched off: set it, or ContextTimeoutEnabled with -1")
	case o.WriteTimeout < 0, o.WriteTimeout == 0 && !mindsContext:
		limits.holds = unlimited
	case mindsContext:
		limits.holds = 0
	}
	return limits, nil
}

// ReadTimeout returns after how long the user's client gives up an answer that it reads; 0 where it does not, or that is not
// known.
func (c *Client) ReadTimeout() time.Duration { return max(c.limits.read, 0) }

// Costs says what settings of the user's client cost, a sentence for each that costs something, which begins with what
// to set instead. replicas says whether renewals wait for replicas: without them a *redis.Client sends next to nothing itself.
// Of a client that is neither that nor a *redis.ClusterClient nothing is known, and nothing is said.
func (c *Client) Costs(replicas bool) []string {
	var costs []string
	need := underWay(c.opt.MaxInFlight, c.single.direct != nil, replicas)
	if !c.limits.known || need == 0 {
		return nil
	}
	switch {
	case c.limits.holds == unlimited:
		costs = append(costs, "set WriteTimeout on the client: without it a command that the server does not read keeps its goroutine and its connection")
	case c.limits.holds > 0:
		costs = append(costs, fmt.Sprintf("set ContextTimeoutEnabled on the client: without it a command that times out keeps its goroutine and its connection for up to %v", c.limits.read))
	}
	if c.limits.pool < need {
		costs = append(costs, fmt.Sprintf("set PoolSize on the client to %d or more, or a lower MaxInFlight: with %d connections some commands time out in the pool", need, c.limits.pool))
	}
	return costs
}
