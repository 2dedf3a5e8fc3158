package lock

import (
	"maps"
	"slices"
	"time"

	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// heldUnits is what only a grant of units has. All of it is guarded by Key.mu.
type heldUnits struct {
	owners   map[*Owner]struct{} // inside, and known by name
	left     []*Owner            // who have exited, and are to be counted when its loss is notified
	unnamed  bool                // so have others, who are not known by name
	made     Moment              // when the newest token came
	handOffs int64               // to writers of this process since then
	handed   bool                // somebody has that token
	named    int64               // the newest of those that an answered command has named
}

// until is until when the units may be relied on, if the machine, which was suspended for slept, is not before that.
func (g *Held) until() (at, slept Moment) {
	_, slept = g.k.l.leases.Present()
	return g.lease.Until() - slept, slept
}

// deadline is until when the queue may let goroutines in, which it is told next: see Key.Join.
func (g *Held) deadline() Moment {
	at, slept := g.until()
	g.k.u.slept.Store(int64(slept))
	return at
}

// unused reports whether nobody uses or waits for the units. Then they go back.
func (g *Held) unused() bool {
	k := g.k
	k.mu.Lock()
	d := k.q.Demand()
	unused := d.Used == 0 && d.Waiting == 0 && k.conv.Grant.Record == g.n
	k.u.idle = k.u.idle || unused
	k.mu.Unlock()
	if unused {
		k.sendAsync()
	}
	return unused
}

// forcedLocked reports whether somebody has said that g was deleted on purpose, and nothing has shown it since.
func (g *Held) forcedLocked() bool {
	if g.u == nil {
		return g.said()
	}
	return g.k.u.deleted >= g.k.u.lastShown
}

// lostUnits is Lost.
func (g *Held) lostUnits(c renewal.Cause) {
	k, gone := g.k, c.Reason == renewal.ReasonGone
	k.mu.Lock()
	if gone && g.forcedLocked() {
		c.Reason, c.By = renewal.ReasonForced, ""
	}
	l := &Loss{Cause: c}
	g.loss = l
	owners := slices.DeleteFunc(slices.Collect(maps.Keys(g.u.owners)), func(o *Owner) bool { return o.Share().loss != nil })
	l.Of = slices.Concat(owners, g.u.left)
	if k.u.next != nil { // they are on their way out, and notified by their releases
		l.Of = append(l.Of, k.u.next.by...)
		g.u.unnamed = g.u.unnamed || k.u.next.unnamed
	}
	k.q.Lose(g.n) // lets nobody in: there are no units before others come
	k.u.lossy.Store(true)
	l.Unnamed = g.u.unnamed || k.q.Demand().Lost
	if k.u.next != nil {
		k.u.next.reported = true
	}
	k.u.next.endLocked(ExitResult{ReleaseResult: ReleaseResult{Lost: l}})
	k.u.next = nil
	k.mu.Unlock()
	for _, o := range owners {
		if o.Holder != nil {
			o.Holder.Lost(o, l)
		}
		k.l.unregisterOwner(o)
	}
	// Until the confirmed lease is over the owners have the margin to react, unless Redis has said that the units are gone.
	var left time.Duration
	if !gone {
		left = g.leaseLeft(c.Deadline)
	}
	k.mu.Lock()
	k.handleLocked(conversation.Event{Kind: conversation.Ended, N: g.n, Lease: left}, 0, k.l.now())
	k.exitedLocked(g)
	k.mu.Unlock()
	k.sendAsync()
}

// exitedLocked: somebody has left. After the last one of a lost grant its units can be given back before the lease ends. If
// others came before he left, nothing of it is left to be given back.
func (k *Key) exitedLocked(g *Held) {
	if g.loss == nil && !k.u.lossy.Load() || k.q.Demand().Lost || g.loss != nil && len(g.u.owners) > 0 {
		return
	}
	k.u.lossy.Store(false)
	if g.loss != nil {
		k.handleLocked(conversation.Event{Kind: conversation.Exited, N: g.n}, 0, k.l.now())
	}
}

// lastTokenLocked is the newest token that this process has made by hand-offs of g, until an answered command has named it; then 0.
func (g *Held) lastTokenLocked() int64 {
	if t := g.token + g.u.handOffs; g.u.handOffs > 0 && t > g.u.named {
		return t
	}
	return 0
}

// tokenLocked returns the token for o, and how long it must wait for that: until the server's clock, from which tokens
// begin anew when the record is lost, is past all.
//
//	a writer     above all before it
//	a reader     that of the last writer before it, or what Redis has made for readers
func (g *Held) tokenLocked(o *Owner, now Moment) (token int64, wait time.Duration) {
	if g.token == 0 {
		return 0, 0
	}
	if o.whole() {
		if g.u.handed {
			g.u.handOffs++
		}
		wait = time.Duration(2*g.u.handOffs)*time.Microsecond - (now - g.u.made)
	}
	g.u.handed = true
	return g.token + g.u.handOffs, wait
}
