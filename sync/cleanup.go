package anteroom

import (
	"context"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// maxDrop bounds the burnt fields that one attempt names.
const maxDrop = 8

// burnt is a field of ours that may be in Redis and must not stay there: a grant
// that nobody wanted, a release without an answer, an acquire whose answer was
// lost. It is never used again. A goroutine removes it, and until then every new
// attempt for the key removes it in its own script, so that our own leftovers
// never make us wait.
type burnt struct {
	field   string
	present bool      // it was granted; guarded by entry.mu
	mayLand int       // acquires that may still reach Redis, beside that one; guarded by entry.mu
	from    time.Time // not to be removed before; zero: at once
	until   time.Time // by then its lease has ended by itself
	keep    time.Time // MinHold: the key must stay taken until then; such a field is not dropped
	fenced  bool      // the grant touched the fencing record
	// lastToken and reservedUpTo give unused fencing tokens back; 0: not known.
	lastToken, reservedUpTo int64

	report bool // raise an event where it cannot be removed

	// Of a release: up to valid nobody else removes the field, and maybe says that a
	// release sent by then had no answer, so that it may have been the one that did.
	// dropped says that an attempt of ours that named it may have removed it. Written by
	// the clean-up, but for named.
	valid          time.Time
	maybe, dropped bool
	named          bool // an attempt names it; guarded by entry.mu

	gone chan struct{} // closed by an attempt that dropped it, once
	done chan struct{} // closed when the clean-up has ended
	end  lettucecompat.Outcome
}

// burn records b and starts its clean-up. It never blocks on Redis.
func (e *entry) burn(b *burnt) *burnt {
	b.gone, b.done = make(chan struct{}), make(chan struct{})
	e.mu.Lock()
	if e.burnt == nil {
		e.burnt = map[string]*burnt{}
	}
	e.burnt[b.field] = b
	e.mu.Unlock()
	e.ref()
	e.m.cleanups.Add(1)
	go e.cleanUp(b)
	return b
}

// droppable lists the burnt fields that an attempt may remove in its script, and the
// tokens that it may give back for one of them: only the last grantee's count.
func (e *entry) droppable() (fields []string, back lettucecompat.GiveBack) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for f, b := range e.burnt {
		if !b.droppable(now) || len(fields) == maxDrop {
			continue
		}
		fields, b.named = append(fields, f), true
		if b.reservedUpTo > back.ReservedUpTo {
			back = lettucecompat.GiveBack{Field: f, LastToken: b.lastToken, ReservedUpTo: b.reservedUpTo}
		}
	}
	return fields, back
}

func (e *entry) isBurnt(field string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := e.burnt[field]
	return b != nil && b.droppable(time.Now())
}

func (b *burnt) droppable(now time.Time) bool { return b.keep.IsZero() && !now.Before(b.from) }

// dropped notes that a granted attempt has removed fields. Those whose acquire
// may still arrive are looked after further.
func (e *entry) dropped(fields []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range fields {
		b := e.burnt[f]
		if b == nil {
			continue
		}
		b.present = false
		if b.mayLand == 0 {
			delete(e.burnt, f)
			close(b.gone)
		}
	}
}

// cleanUp repeats the release of b until it has taken effect or b's lease has
// passed. It owns one reference on e.
func (e *entry) cleanUp(b *burnt) {
	defer e.m.cleanups.Done()
	defer e.unref()
	defer close(b.done)
	b.end = lettucecompat.OutcomeUnknown
	dropped := e.pause(b, time.Until(b.from))
	backoff := firstBackoff
	for !dropped && !time.Now().Before(b.from) && !e.release(b) {
		left := time.Until(b.until)
		if left <= 0 || e.m.over.Err() != nil {
			break
		}
		dropped = e.pause(b, min(jitter(backoff), left))
		backoff = min(2*backoff, lastBackoff)
	}
	if dropped {
		// It is gone for certain; whether it was there to the last nobody knows.
		b.end, b.dropped = lettucecompat.OutcomeGone, true
		return
	}
	e.mu.Lock()
	delete(e.burnt, b.field)
	b.dropped = b.named // its answer may be on its way, or lost
	e.mu.Unlock()
	if b.report && b.end != lettucecompat.OutcomeOK && b.end != lettucecompat.OutcomeGone {
		e.m.events.raise(Event{
			Kind: EventReleaseGivenUp, Key: e.key, Class: e.cfg.Name, Holder: b.field,
			Text: "no release was confirmed; the lease ends the lock",
		})
	}
}

// pause waits, but not beyond the end of Close, and returns true where an attempt
// has dropped the field meanwhile.
func (e *entry) pause(b *burnt, wait time.Duration) bool {
	timer := time.NewTimer(max(wait, 0))
	defer timer.Stop()
	select {
	case <-b.gone:
		return true
	case <-timer.C:
	case <-e.m.over.Done():
	}
	return false
}

// release sends one release for b and returns true where nothing is left to do.
func (e *entry) release(b *burnt) bool {
	r := lettucecompat.ReleaseRequest{Key: e.key, Field: b.field, Fenced: b.fenced, LastToken: b.lastToken, ReservedUpTo: b.reservedUpTo, Timeout: e.timeout}
	if !b.keep.IsZero() {
		r.Keep = max(time.Until(b.keep), 0)
	}
	ctx := e.m.over
	if ctx.Err() != nil {
		ctx = context.Background() // a release after Close: sent once
	}
	inTime := time.Now().Before(b.valid)
	reply := e.m.wire.Release(ctx, r)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch reply.Outcome {
	case lettucecompat.OutcomeUnknown:
		b.maybe = b.maybe || inTime
	case lettucecompat.OutcomeOK:
		b.end = reply.Outcome
		if !b.present && !reply.Marked { // a mark of our own is none of them
			b.mayLand-- // that was one of those that were still under way
		}
		b.present = false
	case lettucecompat.OutcomeGone:
		if b.end != lettucecompat.OutcomeOK {
			b.end = reply.Outcome
		}
		b.present = false
	}
	return !b.present && b.mayLand <= 0
}
