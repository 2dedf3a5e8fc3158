package anteroom

import (
	"math/rand/v2"
	"time"
)

// This file is how long a driver waits between two attempts, and for what.

// Limits of the driver's patience between two attempts.
const (
	firstPoll    = time.Second      // without any message, the first look is this late
	lastPoll     = 15 * time.Second // and later ones no later than this
	firstBackoff = 20 * time.Millisecond
	lastBackoff  = time.Second
)

// waitForRelease watches the key's release channel: every confirmation of the
// subscription and every message is a reason to try again, since a release may
// have come just before it.
func (d *driver) waitForRelease() {
	if d.e.q.Len() == 0 {
		return
	}
	if d.watch == nil {
		d.watch = d.e.m.wire.Watch(d.e.key)
	}
	wait := time.Duration(float64(d.poll) * (0.75 + rand.Float64()/4))
	if d.ttl >= 0 && d.ttl < wait {
		// A millisecond more, because Redis rounds, and a little jitter, so that
		// not all processes ask at the same moment.
		wait = d.ttl + time.Millisecond + time.Duration(rand.Int64N(int64(2*time.Millisecond)))
	} else {
		d.poll = min(2*d.poll, lastPoll)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-d.watch.C():
		d.poll = firstPoll
	case <-timer.C:
	case <-d.e.recall.channel():
	case <-d.e.m.ctx.Done():
	}
}

// backOff lets the driver rest a while before the next attempt, twice as long each time.
func (d *driver) backOff() {
	d.rest = jitter(d.backoff)
	d.backoff = min(2*d.backoff, lastBackoff)
}

// jitter spreads a wait over 0.75 to 1.25 times its length.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.75 + rand.Float64()/2))
}
