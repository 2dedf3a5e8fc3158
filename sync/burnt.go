package anteroom

import (
	"context"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// This file is the last part of a grant's life, where its field may still be in Redis and
// nobody of this process wants it there: it came for nobody, or stands in line for nobody, its
// release or an acquire of it had no answer, or it was lost. A goroutine removes the field.
// Until it has, every new attempt for the key removes it in its own script, so that our own
// leftovers never make us wait. When and for how long, the field says.

// maxDrop bounds the burnt fields that one attempt names.
const maxDrop = 8

// burn lets event happen to the grant's field, and has the field removed if the event says
// that something may be left, which burn returns. report: an event is raised if it cannot be
// removed. The caller has a reference on the entry.
func (g *grant) burn(report bool, event func(f *field, now time.Time) bool) bool {
	e, now := g.e, time.Now()
	keep := now.Add(g.minHoldLeft())
	e.mu.Lock()
	f := g.fieldLocked()
	g.leave()
	f.keep = keep
	left := event(f, now)
	first := left && e.burnt[g.n] == nil
	if first {
		if e.burnt == nil {
			e.burnt = map[uint64]*grant{}
		}
		e.burnt[g.n], g.cleaned, g.report = g, make(chan struct{}), report
	} else if left {
		g.report = g.report || report
	}
	e.mu.Unlock()
	if first {
		e.m.want(g) // a call that comes for it now, or late, is given up at once
		e.beginJob()
		go g.cleanUp()
	} else if left {
		g.changed.ring()
	} else {
		e.m.unwant(g)
	}
	return left
}

// burnUnused gives up a grant that nobody uses, because it is too old or has the wrong
// lease. handOffs is as release wants it.
func (g *grant) burnUnused(handOffs int) {
	e := g.e
	if !g.lease.Load().End() {
		if !e.m.closing.Load() {
			g.burnLost()
		}
		return
	}
	defer e.m.unlist(g) // after its clean-up is counted: Close waits for both
	last, reserved := g.usedTokens(handOffs)
	g.burn(false, func(f *field, now time.Time) bool {
		f.unused = lettucecompat.GiveBack{Field: g.name(), LastToken: last, ReservedUpTo: reserved}
		return f.burnNow(now)
	})
	e.unref() // the grant's own reference
}

// burnLost gives up a lost grant under which nobody works any more, where it may be in Redis
// for long: it was given up here, or it is a fixed lease, which an Extend without an answer
// may have made long.
func (g *grant) burnLost() {
	l := g.lossOr(LostGone)
	if g.terms.fixed() || l.Reason == LostClosed || l.Reason == LostWatchdog {
		g.burn(false, (*field).burnNow)
	}
}

// cleanUp repeats the release until nothing is left to remove, or Close has ended and one
// more release was sent. Close does not wait for an acquire that was cut and may never come:
// one answer that nothing is there ends the clean-up then. It is a job that has begun.
func (g *grant) cleanUp() {
	e := g.e
	defer e.endJob()
	defer close(g.cleaned)
	backoff := firstBackoff
	for last := false; ; {
		wait, left := g.remains(last)
		if !left {
			return
		}
		last = e.m.cleaning.Err() != nil
		if wait > 0 {
			g.changed.pause(e.m.cleaning, wait)
			continue
		}
		if rest := g.releaseAgain(); rest > 0 && !last {
			g.changed.pause(e.m.cleaning, min(jitter(backoff), rest))
			backoff = min(2*backoff, lastBackoff)
		}
	}
}

// remains reports whether the clean-up has something to do, and how long it is too early for
// that. Otherwise the grant is over. last: Close had ended before the last release, or the
// last look.
func (g *grant) remains(last bool) (wait time.Duration, left bool) {
	e := g.e
	e.mu.Lock()
	now := time.Now()
	since, left := g.field.due(now)
	wait = since.Sub(now)
	if left && !(last && (g.field.tried || wait > 0)) && !g.settledLocked() {
		e.mu.Unlock()
		return wait, true
	}
	delete(e.burnt, g.n)
	givenUp, lost := false, false
	if f := g.field; g.report {
		gone := f.confirmed && !f.ours && g.loss == nil && g.owner != nil
		lost = gone && f.vanished
		givenUp = gone && !f.vanished || !f.confirmed // in the former case its lease may have ended it
	}
	e.mu.Unlock()
	e.m.unwant(g)
	if givenUp {
		e.m.reports.releaseGivenUp(e, g.name())
	}
	if lost { // the first release, which had no answer, could not say so
		g.tell(g.goneBeforeRelease())
	}
	return 0, false
}

// releaseAgain sends one release and returns how long there may be something left after it.
func (g *grant) releaseAgain() time.Duration {
	e, f, sent := g.e, g.field, time.Now()
	e.mu.Lock()
	r := lettucecompat.ReleaseRequest{
		Key: e.key, Field: g.name(), Keep: f.keepFor(sent), Fenced: e.cfg.Fencing, RecordTime: e.cfg.FenceRecordTime,
		LastToken: f.unused.LastToken, ReservedUpTo: f.unused.ReservedUpTo, Timeout: e.timeout,
	}
	f.sending()
	e.mu.Unlock()
	ctx := e.m.cleaning
	if ctx.Err() != nil {
		ctx = context.Background() // a release after Close: sent once
	}
	reply := e.m.wire.Release(ctx, r)
	e.mu.Lock()
	defer e.mu.Unlock()
	f.released(reply, sent)
	f.returned()
	now := time.Now()
	if !f.remains(now) || g.settledLocked() {
		return 0
	}
	return f.end().Sub(now)
}

// settledLocked reports whether Close need not wait for the clean-up.
func (g *grant) settledLocked() bool { return g.e.m.closing.Load() && g.field.settled() }

// hurry wakes the clean-ups that pause, because the Manager closes.
func (e *entry) hurry() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, g := range e.burnt {
		g.changed.ring()
	}
}

// drop makes an attempt remove burnt fields in its script, and give back the tokens of one of
// them: only the last grantee's count. It returns their grants; the attempt is to tell
// dropped what came of it.
func (e *entry) drop(req *lettucecompat.AcquireRequest) (burnt []*grant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for _, g := range e.burnt {
		if !g.field.droppable(now) || len(burnt) == maxDrop {
			continue
		}
		g.field.sending()
		burnt, req.Drop = append(burnt, g), append(req.Drop, g.name())
		if g.field.unused.ReservedUpTo > req.GiveBack.ReservedUpTo {
			req.GiveBack = g.field.unused
		}
	}
	return burnt
}

// dropped notes what an attempt has done to the fields that it named.
func (e *entry) dropped(burnt []*grant, r lettucecompat.AcquireReply) {
	answered := r.Outcome == lettucecompat.OutcomeOK || r.Outcome == lettucecompat.OutcomeRefused
	// A missing permission, for example, may show after they were removed; other errors come
	// before anything is written.
	open := r.Outcome == lettucecompat.OutcomeUnknown || r.Outcome == lettucecompat.OutcomeFailed && lettucecompat.Permanent(r.Err)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, g := range burnt {
		g.field.attempted(answered, answered && r.Dropped == g.name(), open, r.SentAt)
		g.field.returned()
		g.changed.ring()
	}
}

// isBurnt reports whether grant n is one that an attempt may remove.
func (e *entry) isBurnt(n uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.burnt[n]
	return g != nil && g.field.droppable(time.Now())
}
