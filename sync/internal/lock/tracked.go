package lock

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
)

// This file has Redis say when a grant vanishes: docs/internals/protocol.md §12.

const (
	// trackAfter is how old a grant is before Redis is asked to watch it: short turns cost nothing.
	trackAfter = 20 * time.Millisecond
	// trackGroup is for how long others are waited for that are to be watched then, too, or a timer would fire for each of many
	// short turns.
	trackGroup = trackAfter / 4

	byTracking = "by what Redis said of the key"
)

// youngLocked: g has come.
func (l *Locks) youngLocked(g *Held) {
	l.young = append(l.young, g)
	if !l.growing {
		l.growing = true
		time.AfterFunc(trackAfter+trackGroup, l.grow)
	}
}

// grow has the grants tracked that are old enough and have not ended, one after the other.
func (l *Locks) grow() {
	var old []*Held
	l.mu.Lock()
	n, now := 0, l.now()
	for ; n < len(l.young) && now-l.young[n].Since() >= trackAfter; n++ {
		if g := l.young[n]; l.heldLocked(g) {
			old = append(old, g)
		}
	}
	l.young = slices.Delete(l.young, 0, n)
	l.mu.Unlock()
	for _, g := range old {
		l.track(g)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.growing = len(l.young) > 0; l.growing {
		time.AfterFunc(trackAfter+trackGroup-(l.now()-l.young[0].Since()), l.grow)
	}
}

// heldLocked reports whether g is registered, and not as lost.
func (l *Locks) heldLocked(g *Held) bool { return l.grants[g.Number()] == g }

func (l *Locks) track(g *Held) {
	at := l.wire.Track(lettucecompat.Query{Key: g.Name(), Field: g.Field()}, g)
	if before := g.k.tracked.Swap(at); before != nil {
		before.Close()
	}
	l.mu.Lock()
	held := l.heldLocked(g)
	l.mu.Unlock()
	if !held { // it has ended meanwhile, and its untrack may have come too early
		untrack(g)
	}
}

// untrack is called before what gives g back is sent, so that no change of its own is asked about, and again when g is not
// registered any more.
func untrack(g *Held) {
	if at := g.k.tracked.Load(); at != nil && at.Owner == any(g) && g.k.tracked.CompareAndSwap(at, nil) {
		at.Close()
	}
}

// Missing asks Redis about grants that a connection of the wire has not found, and reports whether one is there all the
// same. One that is not is lost.
func (l *Locks) Missing(ctx context.Context, some []*lettucecompat.Tracked) (there bool) {
	grants := make([]*Held, len(some))
	for i, t := range some {
		grants[i] = t.Owner.(*Held)
	}
	var found atomic.Bool
	l.Status(ctx, grants, func(i int, r lettucecompat.StatusReply) {
		switch r.Outcome {
		case lettucecompat.OutcomeOK:
			found.Store(true)
		case lettucecompat.OutcomeGone:
			grants[i].gone(byTracking, r.Err)
		}
	})
	return found.Load()
}

// gone concludes that Redis does not have g any more: by says what has shown that. If this process was stopped meanwhile, Redis has ended
// the lease.
func (g *Held) gone(by string, err error) {
	g.expire(g.k.l.leases.Now())
	g.lease.Lose(renewal.Cause{Reason: renewal.ReasonGone, By: by, Err: err})
}
