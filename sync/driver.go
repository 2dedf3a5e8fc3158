package anteroom

import (
	"context"
	"errors"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
)

// What stands for the answer while a driver has not asked yet, because it has just begun or leaves
// the lock to others for a moment, and while its first attempt has none. Recognised by their
// addresses, and never written.
var (
	notAsked    = &lettucecompat.AcquireReply{Outcome: lettucecompat.OutcomeRefused}
	notAnswered = &lettucecompat.AcquireReply{Outcome: lettucecompat.OutcomeUnknown, Err: errors.New("no answer yet")}
)

// driver gets the lock from Redis for whoever is head of the queue. Exactly one
// runs per key while the queue's state is Acquiring.
//
// In words: while somebody waits, ask. Granted: hand the grant to the queue and end. Refused:
// fail those who only tried. If the head was one of them, ask again for who waits behind it;
// otherwise the grant stands in line now, so wait until Redis calls. Called:
// that is the grant, or where the message alone is not enough, ask once more. No answer, or one
// that cannot be used: tell those who can be told if it is final, otherwise back off and ask for
// the same field again. Nobody waits any more: end; a field whose fate is open is cleaned up, and
// its place with it.
type driver struct {
	e       *entry
	g       *grant // wanted: nil before the first send, unless the last turn's end has left one in line
	watch   *lettucecompat.Watch
	poll    time.Duration
	backoff time.Duration
	rest    time.Duration       // before the next attempt: back-off, which the bell ends, or the time that others have, which it does not
	refused bool                // the last attempt was, or a place is inherited: the next one waits until due says so
	next    time.Time           // when to ask without a call: there is no place, or a stranger holds the lock
	asked   *lettucecompat.Call // one for g that was not entered: the next answer tells whether it holds
	met     *string             // the server at which it has met trouble; nil: none since it was answered
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
	if d.rest == 0 && (d.done() || d.try(context.Background()) || d.done()) {
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
	d := driver{e: e, poll: firstPoll, backoff: firstBackoff}
	waiting, _ := e.q.Front()
	e.mu.Lock()
	defer e.mu.Unlock()
	d.rest = e.heldBackLocked()
	d.g, e.next = e.next, nil
	if d.g != nil && d.g.place != nil {
		d.refused = waiting.Tries == 0 // those wait for no call: one attempt answers them
		e.answer.Store(d.g.place.answer())
	}
	e.look = e.look && d.refused // else it asks in any case
	return d
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
		case d.rest > 0:
			e.recall.pause(e.m.ctx, d.rest)
			e.mu.Lock()
			d.rest = e.heldBackLocked() // of which the bell spares nobody anything
			e.mu.Unlock()
		case d.enter():
			return
		case d.refused && d.fits() && !d.await():
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
	d.refused = false
	reply, a := d.send(ctx)
	switch reply.Outcome {
	case lettucecompat.OutcomeOK:
		return !d.overtaken(reply) && d.answeredOK(reply)
	case lettucecompat.OutcomeRefused:
		d.heldByOther(reply, a)
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
	d.g, d.asked = nil, nil
	if g.field != nil || g.since != 0 || g.place != nil {
		g.burn(false, (*field).burnNow)
		return
	}
	d.e.m.unwant(g)
}

// newGrant returns a grant that is wanted. Where the line is left out its releases call nobody, so it
// is numbered as by a client that knows none: those who stand listen for its release.
func (e *entry) newGrant(want *terms) *grant {
	n := e.m.nextGrant.Add(1)
	if e.m.wire.Lineless() {
		n %= lettucecompat.FirstField
	}
	return &grant{e: e, n: n, terms: want}
}

// send makes one attempt for the head of the queue. It stands in line if it is refused, but
// for a head that only tries.
func (d *driver) send(ctx context.Context) (lettucecompat.AcquireReply, attempt) {
	e := d.e
	want, stand := d.head()
	if d.g != nil && !d.g.terms.sameLease(want) {
		before := *d
		d.g, d.asked = nil, nil
		defer before.burn() // after it, so that the new field finds the place of the old one
	}
	if d.g == nil {
		d.g = e.newGrant(want)
	}
	req := lettucecompat.AcquireRequest{
		Key: e.key, Field: d.g.name(), Lease: want.lease,
		Tokens: e.tokens, RecordTime: e.cfg.FenceRecordTime,
		Strings: e.cfg.StringHolders, Replicas: e.cfg.Replicas, ReplicaTimeout: e.cfg.ReplicaTimeout, Timeout: e.timeout, MayBeHeld: d.mayBeHeld,
	}
	if c := d.asked; c != nil && c.HasToken && e.cfg.Fencing { // this attempt reserves others, and the counter must not run ahead of the clock
		req.GiveBack = lettucecompat.GiveBack{Field: req.Field, LastToken: c.Token - 1, ReservedUpTo: c.Token + e.tokens - 1}
		c.HasToken = false
	}
	if e.answer.Load() == notAsked {
		e.answer.Store(notAnswered)
	}
	var a attempt
	if stand && d.g.place == nil {
		a = e.m.want(d.g)
	}
	e.mu.Lock()
	d.g.terms = want
	req.Repeat = d.g.field != nil || d.g.place != nil
	if p := d.g.place; p != nil {
		a = p.next()
	}
	req.Attempt = a.n
	e.look = false
	leftovers := len(e.burnt) > 0
	e.mu.Unlock()
	if !leftovers {
		return e.m.wire.TryAcquire(ctx, req), a
	}
	burnt := e.drop(&req)
	reply := e.m.wire.TryAcquire(ctx, req)
	e.dropped(burnt, reply)
	return reply, a
}

// granted hands the grant to the queue: see grant.begin. It returns false where the grant
// cannot be used.
func (d *driver) granted(sentAt time.Time, kept time.Duration, token int64, found bool) bool {
	e, g := d.e, d.g
	if e.m.reports.troubles.some.Load() {
		d.answered()
	}
	e.answer.Store(nil)
	if !g.begin(sentAt, kept, token, found) {
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

// heldByOther deals with "held by another", the answer to the attempt a.
func (d *driver) heldByOther(r lettucecompat.AcquireReply, a attempt) {
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
	d.backoff, d.asked = firstBackoff, nil
	e.mu.Lock()
	if r.Standing {
		if d.g.field != nil {
			d.g.field.stands(r.Found)
		}
		d.g.stands(a, r.Ahead, r.Holder, r.TTL)
	} else if d.g.place != nil {
		d.g.place.ends = time.Time{} // it could not be confirmed (no memory, a right that is gone): d.next says when to ask
	}
	e.mu.Unlock()
	if id, n, ok := lettucecompat.ParseField(r.Holder); ok && id == e.m.cfg.ClientID && e.isBurnt(n) {
		return // our own leftover: the next attempt drops it in the same script
	}
	if a.n == 0 && !e.cfg.StringHolders {
		return // the head only tried: who waits behind it asks at once, for a place
	}
	d.refused = true
	d.listen(r)
}

// failed deals with an error or a lost answer.
func (d *driver) failed(r lettucecompat.AcquireReply) {
	e := d.e
	unknown := r.Outcome == lettucecompat.OutcomeUnknown
	e.mu.Lock()
	if unknown {
		d.g.fieldLocked().unanswered(r.SentAt)
	}
	if d.g.field != nil { // one of its sends may have taken effect
		r.Outcome = lettucecompat.OutcomeUnknown
	}
	e.mu.Unlock()
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
