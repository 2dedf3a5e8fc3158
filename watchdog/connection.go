package watchdog

import "time"

// Probe is what one check of the connection brought.
type Probe struct {
	PingErr     error // why a PING had no answer
	DeliveryErr error // why a published message did not arrive; not asked when PingErr is set
}

// CheckConnection judges the connection. It is healthy when both questions were
// answered in time. A PING without an answer outweighs everything else; a message
// that does not arrive while Redis answers means that the subscription connection is
// open but dead, so waiters would not hear that they are called, and find out by asking. It reads nothing but its
// arguments.
func CheckConnection(now time.Time, p Probe) Verdict {
	switch {
	case p.PingErr != nil:
		return unhealthy(Connection, now, RedisUnreachable, "PING failed").because(p.PingErr)
	case p.DeliveryErr != nil:
		return unhealthy(Connection, now, DeliveryDead, "a published message did not arrive").because(p.DeliveryErr)
	}
	return healthy(Connection, now)
}
