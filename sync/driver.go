package anteroom

import (
	"context"
	"errors"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
)

// The trouble of a driver that has not asked yet, and of its first attempt until there is
// an answer. Recognised by their addresses, and never written.
var (
	errNoAnswer = errors.New("no answer yet")
	notAsked    = &trouble{err: errNoAnswer}
	notAnswered = &trouble{err: errNoAnswer, unknown: true}
)

// driver gets the lock from Redis for whoever is head of the queue. Exactly one
// runs per key while the queue's state is Acquiring.
//
// In words: while somebody waits, wait out a hold-back; try. Granted: hand the
// grant to the queue and end. Refused: fail those who only tried, then watch the
// release channel until a message, the end of the holder's lease or a poll says
// that another try is worth it. No answer, or one that cannot be used: tell those
// who can be told if it is final, otherwise back off and try the same field
// again. Nobody waits any more: end; a field whose fate is open is cleaned up.
type driver struct {
	e       *entry
	g       *grant // wanted: nil before its first send. A repeat that finds its field knows it for ours
	watch   *lettucecompat.Watch
	poll    time.Duration
	backoff time.Duration
	rest    rest
	met     *string // the server at which it has met trouble; nil: none since it was answered
}

// drive runs a driver to its end. It is a job that has begun.
func (e *entry) drive() {
	d := newDriver(e)
	d.run()
}

// driveHere is drive for a caller that waits for the lock in any case and can't be told
// to stop: it makes the first attempt on the caller's goroutine, which spares an
// uncontended Lock a goroutine and two changes between them. Nearly always that is all.
// Whatever needs patience is left to a goroutine.
//
// The caller is not held up: the wire limits the attempt as it limits any other, and
// nothing but the attempt's answer could let the caller in before that. Close can't call
// the attempt off, as it does with others; it waits for it.
func (e *entry) driveHere() {
	d := newDriver(e)
	patience := d.heldBack() > 0
	if !patience && !d.over() {
		granted := d.try(context.Background())
		patience = !granted && !d.over()
	}
	if !patience {
		d.end()
		return
	}
	patient := d // a copy: the first attempt needs nothing but the caller's stack
	go patient.run()
}

func newDriver(e *entry) driver {
	e.m.wire.Subscribe()
	e.answer.Store(notAsked)
	return driver{e: e, poll: firstPoll, backoff: firstBackoff}
}

// heldBack is how much longer attempts hold back.
func (d *driver) heldBack() time.Duration {
	d.e.mu.Lock()
	until := d.e.notBefore
	d.e.mu.Unlock()
	if until.IsZero() {
		return 0
	}
	return max(time.Until(until), 0)
}

// run goes on until the driver's end.
func (d *driver) run() {
	defer d.end()
	ctx := d.e.m.ctx
	if d.e.m.wire.Bounded() {
		// It carries its attempts itself then, and Close waits for one as it does for a
		// caller's: a change of goroutine less between a release and what comes after it.
		ctx = context.Background()
	}
	for !d.over() {
		switch {
		case d.rest.release:
			d.waitForRelease(d.rest.ttl)
			d.rest = rest{}
		case d.rest.pause > 0:
			d.pause(d.rest.pause)
			d.rest = rest{}
		case !d.holdBack():
		case d.try(ctx):
			return
		}
	}
}

// over tells whether there is nothing to do any more: nobody waits, and the queue has been
// told that the driver ends, or the Manager closes.
func (d *driver) over() bool {
	e := d.e
	if e.q.Abandon() {
		return true
	}
	// Lock() callers stay parked by contract; nothing acquires for them.
	return e.m.closing.Load()
}

// try makes one attempt and deals with the answer. True: the grant is handed over, and the
// driver ends.
func (d *driver) try(ctx context.Context) bool {
	reply := d.send(ctx)
	switch reply.Outcome {
	case lettucecompat.OutcomeOK:
		return d.granted(reply)
	case lettucecompat.OutcomeRefused:
		d.refused(reply)
	default:
		d.failed(reply)
	}
	return false
}

// end gives back what the driver has, sees to a field whose fate is open, and says that
// the driver has ended.
func (d *driver) end() {
	if d.watch != nil {
		d.watch.Close()
	}
	if d.g != nil {
		d.giveUp()
	}
	d.e.endJob()
}

// giveUp burns the grant that is wanted, if its field may be in Redis.
func (d *driver) giveUp() {
	g := d.g
	d.g = nil
	if g.field != nil || !g.since.IsZero() {
		g.burn(false, (*field).letGo)
	}
}

// send makes one attempt for the head of the queue.
func (d *driver) send(ctx context.Context) lettucecompat.AcquireReply {
	e := d.e
	want := &e.terms
	if of, ok := e.q.HeadNote().(*terms); ok {
		want = of
	}
	if d.g != nil && (d.g.terms.lease != want.lease || d.g.terms.fixed() != want.fixed()) {
		d.giveUp()
	}
	if d.g == nil {
		d.g = &grant{e: e, n: e.m.nextGrant.Add(1)}
	}
	d.g.terms = want
	req := lettucecompat.AcquireRequest{
		Key: e.key, Field: d.g.name(), Lease: want.lease, Repeat: d.g.field != nil,
		Tokens: e.tokens, RecordTime: e.cfg.FenceRecordTime,
		Replicas: e.cfg.Replicas, ReplicaTimeout: e.cfg.ReplicaTimeout, Timeout: e.timeout,
	}
	if e.answer.Load() == notAsked {
		e.answer.Store(notAnswered)
	}
	e.mu.Lock()
	leftovers := len(e.burnt) > 0
	e.mu.Unlock()
	if !leftovers {
		return e.m.wire.TryAcquire(ctx, req)
	}
	burnt, giveBack := e.droppable()
	req.Drop, req.GiveBack = fieldNames(burnt), giveBack
	reply := e.m.wire.TryAcquire(ctx, req)
	e.answered(burnt, reply)
	return reply
}

// granted hands the grant to the queue. It returns false where the answer came so late
// that the grant cannot be used.
func (d *driver) granted(r lettucecompat.AcquireReply) bool {
	e, g := d.e, d.g
	if e.m.reports.troubles.some.Load() {
		d.answered()
	}
	e.answer.Store(nil)
	if !g.begin(r) {
		d.giveUp()
		return false
	}
	d.g = nil
	if e.m.closing.Load() {
		// The grant is listed, so Close waits for its clean-up; a caller that is parked
		// in Lock must not come in now.
		e.retire(g, none)
		return false
	}
	if e.q.Granted(g.n) == queue.SendRelease {
		e.endGrant(g, none)
	}
	return true
}

// answered tells that the server, which has met trouble, has answered an attempt as it
// should.
func (d *driver) answered() {
	d.e.m.reports.troubles.answered(d.e, d.e.shardOf(), d.met)
	d.met = nil
}

// refused deals with "held by another".
func (d *driver) refused(r lettucecompat.AcquireReply) {
	e := d.e
	answer := &trouble{holder: r.Holder, err: r.Err}
	e.answer.Store(answer)
	if e.m.reports.troubles.some.Load() {
		d.answered()
	}
	if r.Err == nil {
		e.q.Refused()
	} else {
		e.q.FailTries(answer.reason())
		// Too few replicas confirmed the grant, and it is released again. Waiting
		// for a message would wait for our own release, so back off instead.
		d.giveUp()
		d.backOff()
		return
	}
	d.backoff = firstBackoff
	if id, _, ok := lettucecompat.ParseField(r.Holder); ok && id == e.m.cfg.ClientID && e.isBurnt(r.Holder) {
		return // our own leftover: the next attempt drops it in the same script
	}
	d.rest = rest{release: true, ttl: r.TTL}
}

// failed deals with an error or a lost answer.
func (d *driver) failed(r lettucecompat.AcquireReply) {
	e := d.e
	unknown := r.Outcome == lettucecompat.OutcomeUnknown
	if unknown {
		d.g.fieldLocked().unanswered(r.SentAt)
	}
	answer := &trouble{err: r.Err, unknown: d.g.field != nil}
	e.answer.Store(answer)
	if !unknown && lettucecompat.Permanent(r.Err) {
		e.do(e.q.Fail(&serverError{r.Err}))
	} else {
		e.q.FailTries(answer.reason())
	}
	if e.m.closing.Load() {
		return
	}
	d.met = new(e.shardOf())
	e.m.reports.troubles.met(e, *d.met, r.Err, !unknown && lettucecompat.Permanent(r.Err))
	if unknown && errors.Is(r.Err, lettucecompat.ErrReplicas) {
		// A release of this field has no answer and may still land: a later grant must
		// not be of the same field.
		d.giveUp()
	}
	d.backOff()
}
