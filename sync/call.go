package anteroom

import (
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
)

// This file is how a driver takes a grant that Redis has called this process with: without
// asking where it knows the deadline, and with one attempt more where it does not.

// called is told by the wire that Redis has granted a key to one of our places. It must not
// block.
func (m *Manager) called(c lettucecompat.Call) {
	m.mu.Lock()
	w := m.wanted[c.N]
	if w.g != nil {
		w.call = &c
		m.wanted[c.N] = w
	}
	m.mu.Unlock()
	g := w.g
	if g == nil {
		return // late, or forged: what can be in Redis is wanted or burnt
	}
	g.e.mu.Lock()
	burnt := g.e.burnt[g.n] != nil
	g.e.mu.Unlock()
	if burnt {
		g.changed.ring() // it is removed now, and the next in line is called
		return
	}
	g.e.recall.ring()
}

// takeCall returns the last call for g that nobody has looked at, or nil, and from when on its
// lease counts: from before the attempt was sent that it names, if known says that this is one
// of ours. A process that was stopped meanwhile, or one that has stood anew since, must not take
// an old call for a new one.
func (g *grant) takeCall() (c *lettucecompat.Call, sentAt time.Time, known bool) {
	m := g.e.m
	m.mu.Lock()
	w := m.wanted[g.n]
	if c, w.call = w.call, nil; c != nil {
		m.wanted[g.n] = w
	}
	m.mu.Unlock()
	if c == nil {
		return nil, sentAt, false
	}
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	if g.place != nil {
		sentAt, known = g.place.sentAt(c.Attempt)
		return c, sentAt, known && !g.place.gone // gone: what it tells of was there before
	}
	return c, w.asked.at, w.asked.n == c.Attempt
}

// enter takes the grant that Redis has called this process with, where its deadline is known
// without asking. True: it is handed over, and the driver ends.
func (d *driver) enter() bool {
	if d.g == nil {
		return false
	}
	c, sentAt, known := d.g.takeCall()
	if c == nil {
		return false
	}
	d.refused = false
	if !known || !d.enterable(c) || time.Since(sentAt) >= renewal.Usable(c.Lease, d.g.terms.margin)/2 {
		d.asked = c // a repeat of the acquire finds the field, and gives it the whole lease
		return false
	}
	in := d.granted(sentAt, c.Lease, c.Token, true)
	d.e.m.reports.called(d.e, callEntered, c.Dead)
	return in
}

// enterable reports whether a call gives all that whoever waits has asked for.
func (d *driver) enterable(c *lettucecompat.Call) bool {
	cfg := &d.e.cfg
	return !d.g.terms.fixed() && cfg.MinHold == 0 && cfg.Replicas == 0 && (c.HasToken || !cfg.Fencing)
}

// answeredOK takes the grant that Redis has answered the last attempt with. Where it stood in
// line and had it already, it was called: by a message that could not be entered, or by one that
// is lost, or late.
func (d *driver) answeredOK(r lettucecompat.AcquireReply) bool {
	c, called := d.asked, r.Found && d.g.place != nil
	if called && c == nil {
		c, _, _ = d.g.takeCall()
	}
	in := d.granted(r.SentAt, d.g.terms.lease, r.Token, r.Found)
	switch {
	case called && c != nil:
		d.e.m.reports.called(d.e, callAsked, c.Dead)
	case called:
		d.e.m.reports.called(d.e, callFound, 0)
	}
	return in
}

// overtaken reports that a confirmation was answered "gone" while the attempt was under way,
// which Redis has answered with a grant. Nobody can tell which came first: if it was the grant,
// somebody has deleted it since. Asking again tells.
func (d *driver) overtaken(r lettucecompat.AcquireReply) bool {
	e, g := d.e, d.g
	e.mu.Lock()
	defer e.mu.Unlock()
	if g.place == nil || !g.place.gone {
		return false
	}
	g.place.gone = false
	g.fieldLocked().granted(r.Found)
	d.asked = &lettucecompat.Call{Token: r.Token, HasToken: e.cfg.Fencing}
	return true
}
