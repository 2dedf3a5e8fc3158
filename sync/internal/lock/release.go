package lock

import (
	"context"
	"time"

	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// This file is how the grant of a Mutex is given back.

// endLease ends the lease, before anything is sent: a renewal under way that finds the field gone must not report a loss.
// o has exited for that; nil: nobody was the owner. It returns what is to be given back.
func (g *Held) endLease(o *Owner, now time.Duration) *giving {
	untrack(g)
	l := g.lease
	late, ended := !l.Valid(now), l.End()
	g.k.mu.Lock()
	defer g.k.mu.Unlock()
	g.by = o
	return &giving{g: g, late: late, lost: !ended}
}

// release gives b back, which endLease has returned, for an owner that has exited or that never came, and returns after the first
// answer, or after the time limit of a command without one. The queue is in the state Releasing. The command is a
// yield if somebody waits here, unless the key stays taken or the client is closing.
func (g *Held) release(b *giving) {
	k := g.k
	k.mu.Lock()
	k.q.Shrink(0)
	has := k.unitsLocked() > 0 && k.conv.Grant.Record == g.n
	if now := k.l.now(); has {
		if until := g.keptUntil(); now < until { // nothing is demanded before, so the command is a release
			g.mark = until
		}
		if t := g.bequestLocked(); t != nil && !b.late && !b.lost { // a ticket of a lost hold is nobody's
			g.mark = max(g.mark, t.until)
		}
	}
	var cmd conversation.Command
	gives := !b.lost && has
	switch {
	case gives:
		b.before, k.freeing = k.freeing, b
		cmd = k.nextLocked()
	case !b.lost: // a confirmation of a place has found it gone: nothing is there that MinHold would keep
		b.endLocked(ExitResult{ReleaseResult: ReleaseResult{Lost: g.missingLocked(b, false)}})
	}
	k.mu.Unlock()
	defer k.l.unregister(g, nil)
	switch {
	case cmd.N > 0:
		k.send(cmd)
	case gives: // after the answer to what is unanswered
		k.await(context.Background(), b, time.Now().Add(2*k.set.Timeout))
	default:
		g.exited()
		k.sendAsync()
	}
	k.resultOf(b, ReleaseResult{}) // reports a loss, also if nobody waits for it
}

// giveBack is endLease and release for whom nobody waits in Exit. The channel is closed when that returns.
func (g *Held) giveBack() <-chan struct{} {
	b := g.endLease(nil, g.k.l.leases.Glance())
	done := make(chan struct{})
	go func() { // the conversation, which is not settled, keeps the key in use
		g.release(b)
		close(done)
	}()
	return done
}

// lastToken is the newest token that an owner has.
func (g *Held) lastToken() int64 {
	if o := g.Owner(); o != nil {
		return o.token
	}
	return g.token
}

// keptUntil is until when the key must stay taken because of MinHold. A grant that nobody has owned need not stay.
func (g *Held) keptUntil() Moment {
	if g.k.set.MinHold == 0 || g.Owner() == nil {
		return 0
	}
	return g.since + g.k.set.MinHold
}

// exited: the owner of the grant, which is lost, has exited, so that it can be given back before its lease ends. One
// that must stay taken is left to its lease.
func (g *Held) exited() {
	if g.k.l.now() >= g.keptUntil() {
		g.k.handle(conversation.Event{Kind: conversation.Exited, N: g.n})
	}
}
