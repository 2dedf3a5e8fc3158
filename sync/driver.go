package anteroom

import (
	"context"
	"errors"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
)

// What stands for the answer while a driver has not asked yet, and while its first attempt
// has none. Recognised by their addresses, and never written.
var (
	errNoAnswer = errors.New("no answer yet")
	notAsked    = &lettucecompat.AcquireReply{Err: errNoAnswer}
	notAnswered = &lettucecompat.AcquireReply{Err: errNoAnswer, Outcome: lettucecompat.OutcomeUnknown}
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
	rest    time.Duration // before the next attempt; or, where the last one was
	refused bool          // until a release may have come. The holder's lease has
	ttl     time.Duration // left then
	met     *string       // the server at which it has met trouble; nil: none since it was answered
	// mayBeHeld: the attempt is made by a caller of Lock, on its own goroutine.
	mayBeHeld bool
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
// nothing but the attempt's answer could let the caller in before that. On a client that
// does not mind deadlines a caller of Lock, which returns no error in any case, agrees to be
// held for longer while Redis hangs. Close can't call the attempt off, as it does with
// others; it waits for it.
func (e *entry) driveHere(lock bool) {
	d := newDriver(e)
	d.mayBeHeld = lock
	if e.heldBack() == 0 && (d.done() || d.try(context.Background()) || d.done()) {
		d.end()
		return
	}
	d.mayBeHeld = false
	patient := d // a copy: the first attempt needs nothing but the caller's stack
	go patient.run()
}

func newDriver(e *entry) driver {
	e.m.wire.Subscribe()
	e.answer.Store(notAsked)
	return driver{e: e, poll: firstPoll, backoff: firstBackoff}
}

// holdBack keeps this process from trying again before others have had the time to.
func (e *entry) holdBack() {
	until := time.Now().Add(max(2*e.m.wire.RTT(), time.Millisecond))
	e.mu.Lock()
	e.notBefore = until
	e.mu.Unlock()
}

// heldBack is how much longer attempts hold back.
func (e *entry) heldBack() time.Duration {
	e.mu.Lock()
	until := e.notBefore
	e.mu.Unlock()
	if until.IsZero() {
		return 0
	}
	return max(time.Until(until), 0)
}

// run goes on until the driver's end.
func (d *driver) run() {
	defer d.end()
	e, ctx := d.e, d.e.m.ctx
	if e.m.wire.Bounded() {
		// It carries its attempts itself then, and Close waits for one as it does for a
		// caller's: a change of goroutine less between a release and what comes after it.
		ctx = context.Background()
	}
	for !d.done() {
		switch {
		case d.refused:
			d.waitForRelease()
			d.refused = false
		case d.rest > 0:
			e.recall.pause(e.m.ctx, d.rest)
			d.rest = 0
		case e.heldBack() > 0:
			e.recall.pause(e.m.ctx, e.heldBack())
		case d.try(ctx):
			return
		}
	}
}

// done reports whether there is nothing to do any more: nobody waits, and the queue knows
// that the driver ends, or the Manager closes.
func (d *driver) done() bool {
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
		d.heldByOther(reply)
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
		d.burn()
	}
	d.e.endJob()
}

// burn burns the grant that is wanted, if its field may be in Redis.
func (d *driver) burn() {
	g := d.g
	d.g = nil
	if g.field != nil || g.since != 0 {
		g.burn(false, (*field).burnNow)
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
		d.burn()
	}
	if d.g == nil {
		d.g = &grant{e: e, n: e.m.nextGrant.Add(1)}
	}
	d.g.terms = want
	req := lettucecompat.AcquireRequest{
		Key: e.key, Field: d.g.name(), Lease: want.lease, Repeat: d.g.field != nil,
		Tokens: e.tokens, RecordTime: e.cfg.FenceRecordTime,
		Replicas: e.cfg.Replicas, ReplicaTimeout: e.cfg.ReplicaTimeout, Timeout: e.timeout, MayBeHeld: d.mayBeHeld,
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
	burnt := e.drop(&req)
	reply := e.m.wire.TryAcquire(ctx, req)
	e.dropped(burnt, reply)
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
		d.burn()
		return false
	}
	d.g = nil
	if e.m.closing.Load() {
		// admit would refuse a caller that is parked in Lock. But nobody waits for that one to run, and Close for this
		// attempt and for a clean-up that begins in it.
		g.burnUnused(none)
		return false
	}
	if e.q.Granted(g.n) == queue.SendRelease {
		g.release(none, false)
	}
	return true
}

// answered tells that the server, which has met trouble, has answered an attempt as it
// should.
func (d *driver) answered() {
	d.e.m.reports.troubles.answered(d.e, d.e.shardOf(), d.met)
	d.met = nil
}

// heldByOther deals with "held by another".
func (d *driver) heldByOther(r lettucecompat.AcquireReply) {
	e := d.e
	e.answer.Store(&r)
	if e.m.reports.troubles.some.Load() {
		d.answered()
	}
	if r.Err == nil {
		e.q.Refused()
	} else {
		e.q.FailTries(reasonOf(&r))
		// Too few replicas confirmed the grant, and it is released again. Waiting
		// for a message would wait for our own release, so back off instead.
		d.burn()
		d.backOff()
		return
	}
	d.backoff = firstBackoff
	if id, n, ok := lettucecompat.ParseField(r.Holder); ok && id == e.m.cfg.ClientID && e.isBurnt(n) {
		return // our own leftover: the next attempt drops it in the same script
	}
	d.refused, d.ttl = true, r.TTL
}

// failed deals with an error or a lost answer.
func (d *driver) failed(r lettucecompat.AcquireReply) {
	e := d.e
	unknown := r.Outcome == lettucecompat.OutcomeUnknown
	if unknown {
		d.g.fieldLocked().unanswered(r.SentAt)
	}
	if d.g.field != nil { // one of its sends may have taken effect
		r.Outcome = lettucecompat.OutcomeUnknown
	}
	e.answer.Store(&r)
	if !unknown && lettucecompat.Permanent(r.Err) {
		e.do(e.q.Fail(needsPerson(r.Err)))
	} else {
		e.q.FailTries(reasonOf(&r))
	}
	if e.m.closing.Load() {
		return
	}
	d.met = new(e.shardOf())
	e.m.reports.troubles.met(e, *d.met, r.Err, !unknown && lettucecompat.Permanent(r.Err))
	if unknown && errors.Is(r.Err, lettucecompat.ErrReplicas) {
		// A release of this field has no answer and may still land: a later grant must
		// not be of the same field.
		d.burn()
	}
	d.backOff()
}
