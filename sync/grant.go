package anteroom

import (
	"sync/atomic"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
)

// grant is Redis giving the key to this process: one field in Redis, one lease. The
// driver makes it with the first acquire that it sends, or the end of a turn makes it for
// the next driver. It is wanted then; with the answer or the call that grants it, it is held.
//
// It may pass through many local owners, one tenure after the other, until it is
// released or lost.
type grant struct {
	e     *entry
	n     uint64 // the number in its field in Redis, see name
	terms *terms // of whoever was head when it was asked for

	// lease is replaced when a turn is extended, because the old one was ended
	// before the command that might have released the key was sent.
	lease atomic.Pointer[renewal.Lease]

	// Guarded by entry.mu, but for what is atomic or never changes: the number, and since.
	loss      *loss                  // set once
	owner     *tenure                // the last one that was admitted, also after its last exit
	byLock    atomic.Pointer[tenure] // where owner is one by Lock; see placeOfLocks
	since     time.Duration          // when the answer or the call came that granted it, as renewal.Manager.Now counts; 0 while it is wanted
	turn      time.Duration          // when this turn began, with the grant or its last extension
	token     int64                  // first token of the turn; 0 without fencing
	ownerGone atomic.Bool            // the goroutine that would have to unlock has ended
	unrenewed atomic.Bool            // the watchdog stopped the renewal on purpose
	doomed    atomic.Bool            // to be deleted when it is lost: its owner provably cannot run
	watched   bool                   // the watchdog knows of it; guarded by Manager.mu
	unlisted  bool                   // released or lost; guarded by Manager.mu
	report    bool                   // raise an event where the clean-up cannot remove the field; guarded by entry.mu
	told      bool                   // a loss that its release has found is reported; guarded by entry.mu

	place *place // in line, of a wanted grant; nil until Redis has answered that it is there; guarded by entry.mu

	// Guarded by entry.mu once the grant is held or burnt.
	field   *field        // in Redis; nil where it was granted, and nothing unusual has happened to it
	cleaned chan struct{} // closed when the clean-up has ended
	changed bell          // something has happened to the field that the clean-up may want to know
}

// begin makes a wanted grant a held one: by a command sent at sentAt, which Redis has answered
// with yes, or after which it has called. It keeps the grant for kept from then on. found: the
// answer accounts for an attempt that had none. begin returns false where it comes after the
// deadline, so that it is worth nothing.
func (g *grant) begin(sentAt time.Time, kept time.Duration, token int64, found bool) bool {
	e := g.e
	g.since, g.token = e.m.leases.Glance(), token
	g.turn = g.since
	e.mu.Lock()
	if g.field != nil {
		g.field.granted(found)
	}
	g.leave()
	e.mu.Unlock()
	first, usable := time.Duration(0), kept-g.terms.margin
	if kept < g.terms.lease {
		first, usable = kept, renewal.Usable(kept, g.terms.margin)
	}
	if time.Since(sentAt) >= usable {
		return false
	}
	e.m.unwant(g)
	if g.field != nil && g.field.open == 0 {
		g.field = nil // the answer that was lost has been accounted for
	}
	e.ref() // the grant's own, until it is released, burnt or lost
	// The lease is there before anybody can find the grant.
	g.startLease(sentAt, first)
	e.cur.Store(g)
	e.m.list(g)
	return true
}

// name is the grant's field in Redis. It is made when it is needed: a grant lives for long
// and is named once in some seconds.
func (g *grant) name() string { return lettucecompat.NewField(g.e.m.cfg.ClientID, g.n) }

// granted returns when the answer or the call came that granted g.
func (g *grant) granted() time.Time { return g.e.m.leases.Zero().Add(g.since) }

// Names returns the key and the field, for its renewals.
func (g *grant) Names() (key, field string) { return g.e.key, g.name() }

// startLease hands the grant to the renewal.Manager. first is for how long Redis keeps it from
// sentAt on, where that is less than its lease.
func (g *grant) startLease(sentAt time.Time, first time.Duration) {
	e := g.e
	// A batch shares one time limit, so leases of different limits never share one.
	limit := e.limit
	if g.terms.lease != e.cfg.LeaseTime {
		limit = "|" + e.m.cfg.commandTimeout(g.terms.lease).String()
	}
	g.unrenewed.Store(false)
	g.lease.Store(e.m.leases.Add(renewal.Spec{
		Lease: g.terms.lease, First: first, Reacquire: e.reacquire,
		Shard:  e.m.wire.Shard(e.key) + limit,
		Period: g.terms.period, Margin: g.terms.margin, SentAt: sentAt,
		Owner: g,
	}))
}

// valid compares with the clock, never with a flag alone: a process that was
// stopped past its deadline sees that before anybody has told it.
func (g *grant) valid(now time.Duration) bool {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	return g.loss == nil && g.lease.Load().Valid(now)
}

// deadline is the moment up to which the grant may be relied on.
func (g *grant) deadline() time.Time { return g.lease.Load().Deadline() }

// fieldLocked returns what is known of the grant's field. For most of its time there is
// nothing but the grant itself. The caller has entry.mu, or is the driver that wants the
// grant.
func (g *grant) fieldLocked() *field {
	if g.field == nil {
		g.field = &field{
			lease:   max(g.terms.lease, lettucecompat.PlaceLife(g.terms.lease)+lettucecompat.CallLease(g.terms.lease)),
			timeout: g.e.longest(g.terms.lease), reacquire: g.e.reacquire,
			held: g.since != 0 || g.place != nil, place: g.since == 0 && g.place != nil,
		}
	}
	return g.field
}

// minHoldLeft is how long the key must stay taken from now on. A grant that nobody
// has owned need not stay.
func (g *grant) minHoldLeft() time.Duration {
	if g.e.cfg.MinHold == 0 {
		return 0
	}
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	if g.owner == nil {
		return 0
	}
	return max(g.since+g.e.cfg.MinHold-g.e.m.leases.Glance(), 0)
}

// Beside strangers, of whom each has the lock for one owner at a time, a turn passes it on so often.
// One that was known to hold it is believed to come again for strangerTime.
const (
	strangerHandOffs = 1
	strangerTime     = 10 * time.Second
)

// metStranger notes that a stranger holds the lock at now, as renewal.Manager.Glance counts: to the second, 0 is never.
func (e *entry) metStranger(now time.Duration) { e.stranger.Store(1 + int32(now/time.Second)) }

// besideStrangers reports whether a stranger was known to hold the lock lately.
func (e *entry) besideStrangers(now time.Duration) bool {
	last := e.stranger.Load()
	return last != 0 && now < time.Duration(last)*time.Second+strangerTime
}

// mayHandOff reports whether the grant may pass to another local owner without
// Redis: see docs/internals/architecture.md, "Turns".
func (g *grant) mayHandOff(handOffs int, now time.Duration) bool {
	cfg, lease := &g.e.cfg, g.lease.Load()
	switch {
	case g.terms.fixed(), g.unrenewed.Load(), handOffs >= cfg.MaxHandoffs, g.e.m.closing.Load():
		return false
	case cfg.MinHold > 0 && now-g.since < cfg.MinHold:
		return false
	case now-g.turn >= cfg.MaxHandoffTime:
		return false
	case handOffs >= strangerHandOffs && g.e.besideStrangers(now):
		return false
	case !lease.Healthy() || !lease.Fresh(now):
		return false // also where it is lost
	}
	// Tokens grow by the server's clock when the record is lost (FLUSHALL). They
	// stay below it as long as no more are given out than microseconds have
	// passed, so a turn that is faster than that ends early.
	return g.token == 0 || int64(handOffs) < (now-g.turn).Microseconds()
}

// lastOwner returns the last one that was admitted, or nil; its tenure may have ended.
func (g *grant) lastOwner() *tenure {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	return g.owner
}

// ownerSite is where the last one that was admitted came in, "" where that is not known. It
// is read under entry.mu: an owner by Lock is overwritten by the next.
func (g *grant) ownerSite() string {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	if g.owner == nil {
		return ""
	}
	return g.owner.callSite
}
