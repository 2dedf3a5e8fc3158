package anteroom

import (
	"math/rand/v2"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// This file is how long a driver waits between two attempts, and for what.

// Limits of the driver's patience between two attempts.
const (
	firstPoll    = time.Second      // without a place, the first look is this late
	lastPoll     = 15 * time.Second // and later ones no later than this
	firstBackoff = 20 * time.Millisecond
	lastBackoff  = time.Second
	// A driver that hears no calls asks when the answer said that it should: near the front
	// often, since a lock may be idle for it so long. Of a Manager that has more than deafMany
	// of them each asks no more often than a multiple of deafPoll.
	deafPoll = 25 * time.Millisecond
	deafMany = 64
	// Beside a library that polls (LockConfig.StringHolders) everybody does: about as often as that one
	// does by default, redsync every 50 to 250 ms. After each turn of ours the lock is free for stringWindow: the
	// more of the time we hold it, the smaller the share of those who ask at random.
	stringPoll   = 100 * time.Millisecond
	stringWindow = 20 * time.Millisecond
)

// listen listens to the key's release channel where nobody calls: there is no place, or the
// holder is of a client that does not know the line.
func (d *driver) listen(r lettucecompat.AcquireReply) {
	e := d.e
	switch {
	case e.cfg.StringHolders: // whoever holds it, those who hear of its release would pass those who poll
		if d.poll = stringPoll; r.Holder == "" {
			e.metStranger(e.m.leases.Glance())
		}
	case !r.Standing || !e.m.wire.Calls(r.Holder):
		if d.watch == nil {
			d.watch = e.m.wire.Watch(e.key)
		}
	case d.watch != nil:
		d.watch.Close()
		e.m.wire.Forget(e.key)
		d.watch = nil
	}
	if !r.Standing || d.watch != nil {
		wait := time.Duration(float64(d.poll) * (0.75 + rand.Float64()/4))
		if r.TTL >= 0 && r.TTL < wait {
			wait = r.TTL + afterTTL()
		} else {
			d.poll = min(2*d.poll, lastPoll)
		}
		d.next = time.Now().Add(wait)
	}
}

// afterTTL is how long after the end of a holder's lease a driver asks: a millisecond, because
// Redis rounds, and a little jitter, so that not all processes ask at the same moment.
func afterTTL() time.Duration {
	return time.Millisecond + time.Duration(rand.Int64N(int64(2*time.Millisecond)))
}

// due returns how long it is until another attempt is worth it; 0: it is.
func (d *driver) due() time.Duration {
	e, rarely := d.e, time.Duration(0)
	deaf := !e.m.wire.Listening()
	if deaf {
		rarely = deafPoll * time.Duration(e.m.standing()/deafMany)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.look {
		return 0
	}
	now, p := time.Now(), d.g.place
	wait := lastPoll // where there is nothing but the confirmations
	if p == nil || d.watch != nil {
		wait = d.next.Sub(now)
	}
	if p == nil {
		return max(wait, 0)
	}
	if (p.near() || deaf) && !p.ends.IsZero() {
		wait = min(wait, max(p.ends.Sub(now), p.sent[len(p.sent)-1].at.Add(rarely).Sub(now)))
	}
	return max(wait, 0)
}

// await parks until something happens, or time passes, that may make another attempt worth
// it, and reports whether it does.
func (d *driver) await() bool {
	e := d.e
	if d.replaced() {
		return true
	}
	wait := d.due()
	if wait == 0 {
		return true
	}
	var released <-chan struct{}
	if d.watch != nil {
		released = d.watch.C()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-released:
		d.poll = firstPoll
		return true
	case <-timer.C:
	case <-e.recall.channel():
	case <-e.m.ctx.Done():
	}
	return false
}

// head returns the terms of who is head of the queue, and whether it waits if it is refused.
func (d *driver) head() (want *terms, stand bool) {
	want, stand = &d.e.terms, !d.e.cfg.StringHolders
	if f, waited := d.e.q.Front(); waited {
		stand = stand && !f.First.Kind.IsTry()
		if of, is := f.First.Note.(*terms); is {
			want = of
		}
	}
	return want, stand
}

// fits reports whether who is head now can use the grant that is wanted.
func (d *driver) fits() bool {
	want, _ := d.head()
	return d.g.terms.sameLease(want)
}

// replaced gives the grant up where Redis has forgotten its place: another one stands anew.
func (d *driver) replaced() bool {
	d.e.mu.Lock()
	p := d.g.place
	gone := p != nil && p.gone
	if gone {
		d.g.leave()
		if d.g.field != nil {
			d.g.field.neither()
		}
	}
	d.e.mu.Unlock()
	if gone {
		d.burn()
	}
	return gone
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
