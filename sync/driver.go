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

// attempt is one field that the driver tries to put into Redis. The field stays
// the same while its fate is open: a repeat that finds it knows it for its own.
type attempt struct {
	n     uint64
	terms *terms
	life  field // its open acquires are the sends whose answer was lost
}

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
	try     attempt
	watch   *lettucecompat.Watch
	poll    time.Duration
	backoff time.Duration
	rest    rest
	met     *string // the server at which it has met trouble; nil: none since it was answered
}

// answered tells that the server has answered an attempt as it should.
func (d *driver) answered() {
	e := d.e
	if e.m.outages.some.Load() {
		e.m.outages.answered(e, e.shardOf(), d.met)
	}
	d.met = nil
}

// drive runs a driver to its end. It owns one reference on e.
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
	if d.heldBack() == 0 && (d.over() || d.attempt(context.Background()) || d.over()) {
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
		case d.attempt(ctx):
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

// attempt tries once and deals with the answer. True: the grant is handed over, and the
// driver ends.
func (d *driver) attempt(ctx context.Context) bool {
	switch reply := d.send(ctx); reply.Outcome {
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
	d.abandonField()
	d.e.unref()
	d.e.m.cleanups.Done()
}

// abandonField burns the field under way if it may be in Redis.
func (d *driver) abandonField() {
	if d.try.life.open > 0 || d.try.life.there {
		f := d.try.life
		now := time.Now()
		f.burn(now, now)
		d.e.cleanUp(&f, false)
	}
	d.try = attempt{}
}

// send makes one attempt for the head of the queue.
func (d *driver) send(ctx context.Context) lettucecompat.AcquireReply {
	e := d.e
	want := &e.terms
	if of, ok := e.q.HeadNote().(*terms); ok {
		want = of
	}
	if d.try.n != 0 && (d.try.terms.lease != want.lease || d.try.terms.fixed() != want.fixed()) {
		d.abandonField()
	}
	if d.try.n == 0 {
		n := e.m.nextGrant.Add(1)
		d.try = attempt{n: n, life: field{
			name: lettucecompat.NewField(e.m.cfg.ClientID, n), lease: want.lease, timeout: e.longest(want.lease), revives: e.revives(),
		}}
	}
	d.try.terms = want
	named, giveBack := e.droppable()
	if e.answer.Load() == notAsked {
		e.answer.Store(notAnswered)
	}
	r := e.m.wire.TryAcquire(ctx, lettucecompat.AcquireRequest{
		Key: e.key, Field: d.try.life.name, Lease: want.lease, Repeat: d.try.life.open > 0,
		Drop: fieldNames(named), GiveBack: giveBack, Tokens: e.tokens(), RecordTime: e.cfg.FenceRecordTime,
		Replicas: e.cfg.Replicas, ReplicaTimeout: e.cfg.ReplicaTimeout, Timeout: e.timeout,
	})
	e.answered(named, r)
	return r
}

// granted installs the grant and hands it to the queue. It returns false where
// the answer came so late that the grant cannot be used.
func (d *driver) granted(r lettucecompat.AcquireReply) bool {
	e := d.e
	d.answered()
	e.answer.Store(nil)
	d.try.life.granted(r.Found)
	g := e.install(d.try, r)
	if g == nil {
		d.abandonField()
		return false
	}
	d.try = attempt{}
	if e.m.closing.Load() {
		// The grant is listed, so Close waits for its clean-up; a caller that is parked
		// in Lock must not come in now.
		e.retire(g, none)
		return false
	}
	if o := e.q.Granted(g.n); o == queue.SendRelease {
		e.endGrant(g, none)
	}
	return true
}

// refused deals with "held by another".
func (d *driver) refused(r lettucecompat.AcquireReply) {
	e := d.e
	answer := &trouble{holder: r.Holder, err: r.Err}
	e.answer.Store(answer)
	d.answered()
	if r.Err == nil {
		e.q.Refused()
	} else {
		e.q.FailTries(answer.reason())
		// Too few replicas confirmed the grant, and it is released again. Waiting
		// for a message would wait for our own release, so back off instead.
		d.abandonField()
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
		d.try.life.unanswered(r.SentAt)
	}
	answer := &trouble{err: r.Err, unknown: d.try.life.open > 0}
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
	e.m.outages.met(e, *d.met, r.Err, !unknown && lettucecompat.Permanent(r.Err))
	if unknown && errors.Is(r.Err, lettucecompat.ErrReplicas) {
		// A release of this field has no answer and may still land: a later grant must
		// not be of the same field.
		d.abandonField()
	}
	d.backOff()
}
