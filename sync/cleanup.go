package anteroom

import (
	"context"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// maxDrop bounds the burnt fields that one attempt names.
const maxDrop = 8

// cleanup is a goroutine that removes a burnt field: a grant that nobody wanted, a
// release without an answer, an acquire whose answer was lost. Until it has, every
// new attempt for the key removes the field in its own script, so that our own
// leftovers never make us wait. When and for how long, the field says.
type cleanup struct {
	f       *field        // guarded by entry.mu
	report  bool          // raise an event where it cannot be removed; guarded by entry.mu
	givenUp bool          // it could not; written before done is closed
	changed chan struct{} // capacity 1: an event has happened to the field
	done    chan struct{} // closed when the clean-up has ended
}

// cleanUp sees to it that f, which has just been burnt, is removed. It never blocks
// on Redis. The caller has a reference on e.
func (e *entry) cleanUp(f *field, report bool) *cleanup {
	c, first := e.addCleanUp(f, report)
	if first {
		e.beginJob()
		go e.run(c)
	} else {
		c.look()
	}
	return c
}

// addCleanUp lists a clean-up of f, or returns the one that is there. It is there until
// the field has told it, under e.mu, that nothing is left.
func (e *entry) addCleanUp(f *field, report bool) (c *cleanup, first bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c = e.burnt[f.name]; c != nil {
		c.report = c.report || report
		return c, false
	}
	if e.burnt == nil {
		e.burnt = map[string]*cleanup{}
	}
	c = &cleanup{f: f, report: report, changed: make(chan struct{}, 1), done: make(chan struct{})}
	e.burnt[f.name] = c
	return c, true
}

// look makes the clean-up ask the field again.
func (c *cleanup) look() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// run repeats the release until nothing is left to remove, or Close has ended and
// one more release was sent. It is a job that has begun.
func (e *entry) run(c *cleanup) {
	defer e.endJob()
	defer close(c.done)
	backoff := firstBackoff
	for last := false; ; {
		early, left := e.left(c, last)
		if !left {
			break
		}
		last = e.m.over.Err() != nil
		if early > 0 {
			e.pause(c, early)
			continue
		}
		if rest := e.release(c); rest > 0 && !last {
			e.pause(c, min(jitter(backoff), rest))
			backoff = min(2*backoff, lastBackoff)
		}
	}
	if c.givenUp {
		e.m.reports.releaseGivenUp(e, c.f.name)
	}
}

// left tells whether c has something to do, and how long it is too early for that.
// Otherwise it forgets the field. last: Close had ended before the last release, or
// the last look.
func (e *entry) left(c *cleanup, last bool) (early time.Duration, left bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	since, left := c.f.left(now)
	early = since.Sub(now)
	if left && !(last && (c.f.tried || early > 0)) {
		return early, true
	}
	delete(e.burnt, c.f.name)
	c.givenUp = c.report && !c.f.confirmed
	return 0, false
}

// release sends one release for c and returns how long it has left after that.
func (e *entry) release(c *cleanup) time.Duration {
	sent := time.Now()
	e.mu.Lock()
	r := lettucecompat.ReleaseRequest{
		Key: e.key, Field: c.f.name, Keep: c.f.keepFor(sent), Fenced: e.cfg.Fencing, RecordTime: e.cfg.FenceRecordTime,
		LastToken: c.f.unused.LastToken, ReservedUpTo: c.f.unused.ReservedUpTo, Timeout: e.timeout,
	}
	c.f.sending()
	e.mu.Unlock()
	ctx := e.m.over
	if ctx.Err() != nil {
		ctx = context.Background() // a release after Close: sent once
	}
	reply := e.m.wire.Release(ctx, r)
	e.mu.Lock()
	defer e.mu.Unlock()
	c.f.released(reply.Outcome, reply.Marked, sent)
	c.f.returned()
	now := time.Now()
	if !c.f.remains(now) {
		return 0
	}
	return c.f.end().Sub(now)
}

// pause waits, but not beyond the end of Close or an event of the field.
func (e *entry) pause(c *cleanup, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-c.changed:
	case <-timer.C:
	case <-e.m.over.Done():
	}
}

// droppable lists the burnt fields that an attempt may remove in its script, and the
// tokens that it may give back for one of them: only the last grantee's count. The
// attempt is to tell answered what came of it.
func (e *entry) droppable() (named []*cleanup, back lettucecompat.GiveBack) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for _, c := range e.burnt {
		if !c.f.droppable(now) || len(named) == maxDrop {
			continue
		}
		c.f.sending()
		named = append(named, c)
		if c.f.unused.ReservedUpTo > back.ReservedUpTo {
			back = c.f.unused
		}
	}
	return named, back
}

// fieldNames lists the fields that named is about.
func fieldNames(named []*cleanup) []string {
	list := make([]string, len(named))
	for i, c := range named {
		list[i] = c.f.name // written once
	}
	return list
}

// answered notes what an attempt has done to the fields that it named.
func (e *entry) answered(named []*cleanup, r lettucecompat.AcquireReply) {
	granted := r.Outcome == lettucecompat.OutcomeOK
	// A missing permission, for example, may show after they were removed, and a grant that
	// too few replicas confirmed is taken back; other errors come before anything is written.
	open := r.Outcome == lettucecompat.OutcomeUnknown || r.Outcome == lettucecompat.OutcomeFailed && lettucecompat.Permanent(r.Err) ||
		r.Outcome == lettucecompat.OutcomeRefused && r.Err != nil
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range named {
		c.f.attempted(granted, granted && r.Dropped == c.f.name, open, r.SentAt)
		c.f.returned()
		c.look()
	}
}

func (e *entry) isBurnt(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.burnt[name]
	return c != nil && c.f.droppable(time.Now())
}
