package anteroom

import (
	"errors"
	"math/rand/v2"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
)

// Limits of the driver's patience between two attempts.
const (
	firstPoll    = time.Second      // without any message, the first look is this late
	lastPoll     = 15 * time.Second // and later ones no later than this
	firstBackoff = 20 * time.Millisecond
	lastBackoff  = time.Second
)

// errNoAnswer is the trouble of an attempt that nobody has answered yet.
var errNoAnswer = errors.New("no answer yet")

// attempt is one field that the driver tries to put into Redis. The field stays
// the same while its fate is open: a repeat that finds it knows it for its own.
type attempt struct {
	n    uint64
	wish wish
	life field // its open acquires are the sends whose answer was lost
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
}

// drive runs a driver to its end. It owns one reference on e.
func (e *entry) drive() {
	d := &driver{e: e, poll: firstPoll, backoff: firstBackoff}
	defer e.m.cleanups.Done()
	defer e.unref()
	defer d.close()
	e.m.wire.Subscribe()
	e.answer.Store(&trouble{err: errNoAnswer})
	for !e.q.Abandon() {
		if e.m.closing.Load() {
			// Lock() callers stay parked by contract; nothing acquires for them.
			return
		}
		if !d.holdBack() {
			continue
		}
		reply := d.send()
		switch reply.Outcome {
		case lettucecompat.OutcomeOK:
			if d.granted(reply) {
				return
			}
		case lettucecompat.OutcomeRefused:
			d.refused(reply)
		default:
			d.failed(reply)
		}
	}
}

// close gives the watch back and sees to a field whose fate is open.
func (d *driver) close() {
	if d.watch != nil {
		d.watch.Close()
	}
	d.abandonField()
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
func (d *driver) send() lettucecompat.AcquireReply {
	e := d.e
	want := e.wish
	if w, ok := e.q.HeadNote().(*wish); ok {
		want = *w
	}
	if d.try.n != 0 && (d.try.wish.lease != want.lease || d.try.wish.fixed != want.fixed) {
		d.abandonField()
	}
	if d.try.n == 0 {
		n := e.m.nextGrant.Add(1)
		d.try = attempt{n: n, life: field{
			name: lettucecompat.NewField(e.m.cfg.ClientID, n), lease: want.lease, timeout: e.timeout,
		}}
	}
	d.try.wish = want
	named, giveBack := e.droppable()
	if a := e.answer.Load(); a != nil && a.err == errNoAnswer { //nolint:errorlint // identity is meant
		e.answer.Store(&trouble{err: errNoAnswer, unknown: true}) // until it is answered
	}
	r := e.m.wire.TryAcquire(e.m.ctx, lettucecompat.AcquireRequest{
		Key: e.key, Field: d.try.life.name, Lease: want.lease, Repeat: d.try.life.open > 0,
		Drop: fieldNames(named), GiveBack: giveBack, Tokens: e.tokens(),
		Replicas: e.cfg.Replicas, ReplicaTimeout: e.cfg.ReplicaTimeout, Timeout: e.timeout,
	})
	e.answered(named, r)
	return r
}

// granted installs the grant and hands it to the queue. It returns false where
// the answer came so late that the grant cannot be used.
func (d *driver) granted(r lettucecompat.AcquireReply) bool {
	e := d.e
	e.recovered()
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
	e.answer.Store(&trouble{holder: r.Holder, err: r.Err})
	e.recovered()
	e.q.Refused()
	if r.Err != nil {
		// Too few replicas confirmed the grant, and it is released again. Waiting
		// for a message would wait for our own release, so back off instead.
		d.abandonField()
		d.pause(d.nextBackoff())
		return
	}
	d.backoff = firstBackoff
	if id, _, ok := lettucecompat.ParseField(r.Holder); ok && id == e.m.cfg.ClientID && e.isBurnt(r.Holder) {
		return // our own leftover: the next attempt drops it in the same script
	}
	d.waitForRelease(r.TTL)
}

// failed deals with an error or a lost answer.
func (d *driver) failed(r lettucecompat.AcquireReply) {
	e := d.e
	unknown := r.Outcome == lettucecompat.OutcomeUnknown
	if unknown {
		d.try.life.unanswered(r.SentAt)
	}
	e.answer.Store(&trouble{err: r.Err, unknown: d.try.life.open > 0})
	if !unknown && lettucecompat.Permanent(r.Err) {
		e.do(e.q.Fail(&serverError{r.Err}))
	} else {
		e.q.FailTries(transient(r.Err, unknown))
	}
	if e.m.closing.Load() {
		return
	}
	e.unavailable(r.Err)
	if unknown && errors.Is(r.Err, lettucecompat.ErrReplicas) {
		// A release of this field has no answer and may still land: a later grant must
		// not be of the same field.
		d.abandonField()
	}
	d.pause(d.nextBackoff())
}

// holdBack waits until the turn of other processes is over. It returns false
// where the driver was recalled meanwhile.
func (d *driver) holdBack() bool {
	d.e.mu.Lock()
	wait := time.Until(d.e.notBefore)
	d.e.mu.Unlock()
	if wait <= 0 {
		return true
	}
	return d.pause(wait)
}

// waitForRelease watches the key's release channel: every confirmation of the
// subscription and every message is a reason to try again, since a release may
// have come just before it. ttl is what is left of the holder's lease.
func (d *driver) waitForRelease(ttl time.Duration) {
	if d.e.q.Len() == 0 {
		return
	}
	if d.watch == nil {
		d.watch = d.e.m.wire.Watch(d.e.key)
	}
	wait := time.Duration(float64(d.poll) * (0.75 + rand.Float64()/4))
	if ttl >= 0 && ttl < wait {
		// A millisecond more, because Redis rounds, and a little jitter, so that
		// not all processes ask at the same moment.
		wait = ttl + time.Millisecond + time.Duration(rand.Int64N(int64(2*time.Millisecond)))
	} else {
		d.poll = min(2*d.poll, lastPoll)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-d.watch.C():
		d.poll = firstPoll
	case <-timer.C:
	case <-d.e.recall:
	case <-d.e.m.ctx.Done():
	}
}

// pause waits for wait, or until the driver is recalled or the Manager closes;
// it returns true where the time has passed.
func (d *driver) pause(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-d.e.recall:
	case <-d.e.m.ctx.Done():
	}
	return false
}

func (d *driver) nextBackoff() time.Duration {
	b := jitter(d.backoff)
	d.backoff = min(2*d.backoff, lastBackoff)
	return b
}

// jitter spreads a wait over 0.75 to 1.25 times its length.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.75 + rand.Float64()/2))
}
