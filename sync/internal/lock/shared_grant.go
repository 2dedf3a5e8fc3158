package lock

import (
	"maps"
	"slices"
	"time"

	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// SharedHeld is one grant: from the moment when Redis has given units to this process that had none, until all of them
// are given back or lost.
type SharedHeld struct {
	registration
	k     *SharedKey
	n     uint64 // under which the first units came
	since Moment
	lease *renewal.Lease

	// Guarded by SharedKey.mu.
	owners   map[*Share]struct{} // inside, and known by name
	left     []Possession        // who have exited, and are to be counted when its loss is notified
	unnamed  bool                // so have others, who are not known by name
	loss     *Loss               // set once
	token    int64               // the newest that Redis has made; 0 without Fencing
	made     Moment              // when that came
	handOffs int64               // to writers of this process since then
	handed   bool                // somebody has that token
	stated   int64               // the newest of those that an answered command has named
}

// newGrantLocked makes the conversation's grant one that the queue can let goroutines in by.
func (k *SharedKey) newGrantLocked() *SharedHeld {
	c := k.talk.Grant
	now := k.l.now()
	g := &SharedHeld{k: k, n: c.Record, since: now, token: c.Token, made: now, owners: map[*Share]struct{}{}}
	g.lease = k.l.leases.Add(renewal.Spec{
		Lease: k.set.Lease.For, First: c.Lease,
		// Units have a script of their own, so they are in batches of their own.
		Shard:  k.l.wire.Shard(k.name) + "|" + k.set.Timeout.String() + "|units",
		Period: k.set.Lease.Period, Margin: k.set.Lease.Margin, SentAt: k.at(Moment(c.Sent)), Owner: g,
	})
	k.cur.Store(g)
	k.l.Register(g)
	return g
}

// at is the time of a moment, as package renewal needs it.
func (k *SharedKey) at(m Moment) time.Time { return k.l.leases.Dated(k.l.zero.Add(m)) }

// deadline is until when the units may be relied on, if the machine is not suspended before that: see SharedKey.Join.
func (g *SharedHeld) deadline() Moment {
	_, slept := g.k.l.leases.Present()
	g.k.slept.Store(int64(slept))
	return g.lease.Until() - slept
}

// Names returns the key and the field, for renewals; nothing while nobody uses the units, which then go back.
func (g *SharedHeld) Names() (key, field string) {
	k := g.k
	k.mu.Lock()
	d := k.q.Demand()
	unused := d.Used == 0 && d.Waiting == 0 && k.talk.Grant.Record == g.n
	k.use.idle = k.use.idle || unused
	k.mu.Unlock()
	if unused {
		k.kick()
		return "", ""
	}
	return k.name, g.Field()
}

// Name returns the key's name in Redis.
func (g *SharedHeld) Name() string { return g.k.name }

// Settings returns those with which the key is in use.
func (g *SharedHeld) Settings() *Settings { return g.k.set }

// Field returns the field in Redis: that of the client.
func (g *SharedHeld) Field() string { return g.k.l.cfg.ClientID }

// Since returns the Moment of the grant.
func (g *SharedHeld) Since() Moment { return g.since }

// Terms returns what its lease is to be.
func (g *SharedHeld) Terms() *Lease { return &g.k.set.Lease }

// Someone returns who came first of those inside that are known by name.
func (g *SharedHeld) Someone() Possession {
	g.k.mu.Lock()
	defer g.k.mu.Unlock()
	var first *Share
	for s := range g.owners {
		if first == nil || s.since < first.since {
			first = s
		}
	}
	if first == nil {
		return nil
	}
	return first
}

// Lease returns the grant's lease.
func (g *SharedHeld) Lease() *renewal.Lease { return g.lease }

// Owners returns those inside that are known by name.
func (g *SharedHeld) Owners() []*Share {
	g.k.mu.Lock()
	defer g.k.mu.Unlock()
	return slices.Collect(maps.Keys(g.owners))
}

// Loss returns why the grant is lost, nil while nobody has concluded that.
func (g *SharedHeld) Loss() *Loss {
	g.k.mu.Lock()
	defer g.k.mu.Unlock()
	return g.loss
}

// LossOr returns why the grant is lost, or, where nobody has concluded that yet, that it is over for the reason.
func (g *SharedHeld) LossOr(reason renewal.Reason) *Loss {
	if l := g.Loss(); l != nil {
		return l
	}
	return &Loss{Cause: g.lease.Loss(reason)}
}

// missingLocked is why a release has found nothing.
func (g *SharedHeld) missingLocked() renewal.Cause {
	switch {
	case !time.Now().Before(g.lease.Deadline()):
		return g.lease.Loss(renewal.ReasonDeadline)
	case g.k.forcedLocked():
		return g.lease.Loss(renewal.ReasonForced)
	}
	c := g.lease.Loss(renewal.ReasonGone)
	c.By = ByRelease
	return c
}

// forcedLocked reports whether somebody has said that the units were deleted on purpose, and no answer has shown them since.
func (k *SharedKey) forcedLocked() bool { return k.deleted >= k.use.lastShown }

// Lost is called by package renewal, once, when it concludes that the lease is lost. It notifies the owners first and lets
// others in afterwards, and does no I/O.
func (g *SharedHeld) Lost(c renewal.Cause) {
	k, gone := g.k, c.Reason == renewal.ReasonGone
	k.mu.Lock()
	if gone && k.forcedLocked() {
		c.Reason, c.By = renewal.ReasonForced, ""
	}
	l := &Loss{Cause: c}
	g.loss = l
	owners := slices.DeleteFunc(slices.Collect(maps.Keys(g.owners)), func(s *Share) bool { return s.loss != nil })
	for _, s := range owners {
		l.Of = append(l.Of, s)
	}
	l.Of = append(l.Of, g.left...)
	if k.next != nil { // they are on their way out, and notified by their releases
		l.Of = append(l.Of, k.next.by...)
		g.unnamed = g.unnamed || k.next.unnamed
	}
	k.q.Lose(g.n) // lets nobody in: there are no units before others are stated
	k.lossy.Store(true)
	l.Unnamed = g.unnamed || k.q.Demand().Lost
	k.next.end(ExitResult{ReleaseResult: ReleaseResult{Lost: l}})
	k.next = nil
	k.mu.Unlock()
	for _, s := range owners {
		if s.Holder != nil {
			s.Holder.Lost(s, l)
		}
		k.l.Unregister(s)
	}
	// Until the confirmed lease is over the owners have the margin to react, unless Redis has said that the units are gone.
	var left time.Duration
	if !gone {
		left = max(time.Until(c.Deadline)+k.set.Lease.Margin, 0)
	}
	k.mu.Lock()
	k.handleLocked(conversation.Event{Kind: conversation.Ended, N: g.n, Lease: left}, 0, k.l.now())
	k.exitedLocked(g)
	k.mu.Unlock()
	k.kick()
}

// report reports a loss of g. What is lost while nobody uses it nobody has lost: Held.report says the same of a lock that lingers.
func (g *SharedHeld) report(l *Loss) {
	if len(l.Of) > 0 || l.Unnamed {
		g.k.l.cfg.Reporter.Lost(g, l)
	}
}

// exitedLocked: somebody has left. After the last one of a lost grant its units can be given back before the lease ends.
func (k *SharedKey) exitedLocked(g *SharedHeld) {
	if g.loss != nil && len(g.owners) == 0 && !k.q.Demand().Lost {
		k.lossy.Store(false)
		k.handleLocked(conversation.Event{Kind: conversation.Exited, N: g.n}, 0, k.l.now())
	}
}

// lastTokenLocked is the newest token that this process has made by hand-offs of g, until an answered command has named it; then 0.
func (g *SharedHeld) lastTokenLocked() int64 {
	if t := g.token + g.handOffs; g.handOffs > 0 && t > g.stated {
		return t
	}
	return 0
}

// tokenLocked returns the token for s, and how long it must wait for that: until the server's clock, from which tokens
// begin anew when the record is lost, is past all.
//
//	a writer     above all before it
//	a reader     that of the last writer before it, or what Redis has made for readers
func (g *SharedHeld) tokenLocked(s *Share, now Moment) (token int64, wait time.Duration) {
	if g.token == 0 {
		return 0, 0
	}
	if s.whole() {
		if g.handed {
			g.handOffs++
		}
		wait = time.Duration(2*g.handOffs)*time.Microsecond - (now - g.made)
	}
	g.handed = true
	return g.token + g.handOffs, wait
}
