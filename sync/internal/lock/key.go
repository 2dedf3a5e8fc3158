package lock

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	lettucecompat "github.com/anteroom/anteroom/internal/next/lettuce_compat"
	"github.com/anteroom/anteroom/internal/next/queue"
	"github.com/anteroom/anteroom/renewal"
)

// Key is what a client keeps for one key in use: the queue of its goroutines, and its conversation with Redis.
//
// Whoever changes what the goroutines want, or hears something, calls speak or kick. These state what the conversation
// says is to be stated, and set the timer for when it has something to say by itself. Nothing else sends.
type Key struct {
	l     *Locks
	name  string
	times Terms
	set   *Settings
	q     queue.Synchronizer
	refs  atomic.Int64 // at 0 the key is over, and stays so

	cur    atomic.Pointer[Held]                 // the last one
	answer atomic.Pointer[lettucecompat.Answer] // what Redis said last, for those who ask what is waited for
	told   atomic.Bool                          // somebody stands behind the grant
	asked  atomic.Int64                         // the Moment of the last answer that would have said so
	others atomic.Int64                         // the Moment at which a foreign holder was last seen; 0: never

	mu       sync.Mutex
	talk     Conversation
	timer    *time.Timer
	unwatch  chan struct{} // ends listening for a foreign holder's release; nil: nobody listens
	busy     bool          // counted in Locks.unsettled, with a reference
	failing  bool          // the last statement failed
	retryAt  Moment        // after too few replicas nothing is wanted until then
	giving   giving
	silenced bool // the client is closed
}

// giving is what a release says beside the statement, and its repetitions with it.
type giving struct {
	n     uint64 // the unit
	mark  Moment // MinHold: the key stays taken until then
	token int64  // the last that was handed out
}

// Name returns the key's name in Redis.
func (k *Key) Name() string { return k.name }

// Queue returns the queue of the key, to look at.
func (k *Key) Queue() *queue.Synchronizer { return &k.q }

// How often places look by themselves.
const (
	nearLife     = 6 // confirmations in the life of a place at the front
	nearInterval = time.Second
	nearFront    = 1                     // places before those that look after the key themselves
	deafPoll     = 25 * time.Millisecond // without a subscription
	stringPoll   = 100 * time.Millisecond
	leastPause   = 20 * time.Millisecond // after the second statement without an answer
	othersTime   = 10 * time.Second      // a foreign holder is believed to come again for so long
	toldTime     = time.Second           // a turn that has not asked for longer asks at its end
)

// wishLocked returns what the goroutines want.
func (k *Key) wishLocked(now Moment) Wish {
	switch k.q.Word().State() {
	case queue.Acquiring:
		if k.l.closing.Load() || now < k.retryAt || now < k.giving.mark { // who is parked in Lock stays parked
			return Quiet
		}
		return Wanted
	case queue.Granted, queue.Owned, queue.Releasing:
		return Owned
	}
	return Quiet
}

// nextLocked returns what to state now, nil if there is nothing; the timer is set then.
func (k *Key) nextLocked() *Statement {
	if k.silenced {
		return nil
	}
	now := k.l.now()
	talk, s, until := k.talk.Next(k.wishLocked(now), k.l.number.Add(1), now)
	k.talk = talk
	if settled := talk.Settled(); settled == k.busy {
		k.busy = !settled
		if k.busy {
			k.l.unsettled.Add(1)
			k.refs.Add(1)
		} else {
			k.l.settled()
			defer k.Done()
		}
	}
	if talk.Have() == Place || now < talk.not || now < k.retryAt { // a try would wait
		k.refuseTryLocked()
	}
	if s != nil {
		return s
	}
	if now < k.retryAt {
		until = min(until, k.retryAt)
	}
	switch {
	case until == never:
		if k.timer != nil {
			k.timer.Stop()
		}
	case k.timer == nil:
		k.timer = time.AfterFunc(until-now, k.rang)
	default:
		k.timer.Reset(until - now)
	}
	if talk.Have() != Place {
		k.unwatchLocked()
	}
	return nil
}

func (k *Key) rang() {
	if k.hear(News{Word: Clock}, nil) == GivenUp {
		k.l.cfg.Reporter.ReleaseGivenUp(k)
	}
	k.speak(false)
}

// speak states what there is to state, until there is nothing or the lock is granted. mayBeHeld is as in
// lettucecompat.Statement.
func (k *Key) speak(mayBeHeld bool) {
	for {
		k.mu.Lock()
		s := k.nextLocked()
		k.mu.Unlock()
		if s == nil {
			return
		}
		if _, e := k.say(s, &lettucecompat.Statement{MayBeHeld: mayBeHeld}); e == Granted {
			return
		}
	}
}

// kick is speak for callers that must not be held up.
func (k *Key) kick() {
	k.mu.Lock()
	s := k.nextLocked()
	k.mu.Unlock()
	if s != nil {
		go func() {
			if _, e := k.say(s, &lettucecompat.Statement{}); e != Granted {
				k.speak(false)
			}
		}()
	}
}

// mute ends all that the key does by itself.
func (k *Key) mute() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.silenced = true
	if k.timer != nil {
		k.timer.Stop()
	}
	k.unwatchLocked()
}

// say sends s, with what of more is set, and takes in the answer.
func (k *Key) say(s *Statement, more *lettucecompat.Statement) (lettucecompat.Answer, Event) {
	k.l.wire.Subscribe()
	if s.Have == Unit && s.Keep == 1 {
		return k.renew(s)
	}
	more.Key, more.N, more.Since, more.Terms = k.name, s.N, s.Since, &k.set.Wire
	more.Have, more.Keep, more.Want = lettucecompat.Have(s.Have), uint8(s.Keep), uint8(s.Want)
	more.Timeout = k.set.Timeout
	if s.Have == Unit && s.Keep == 0 {
		k.mu.Lock()
		if g := k.giving; g.n == s.Since {
			more.LastToken, more.Mark = g.token, max(g.mark-k.l.now(), 0)
		}
		k.mu.Unlock()
	}
	if s.Have == Nothing && s.Want == 1 {
		f, waits := k.q.Front()
		more.Try = waits && f.First.Kind.IsTry()
	}
	a := k.l.wire.State(context.Background(), *more)
	k.answer.Store(&a)
	e := k.hear(k.news(s, &a), &a)
	k.report(a.Err)
	if s.Want == 1 {
		k.refuse(s, &a)
	}
	return a, e
}

// renew states that too little is left of a unit that nobody has entered.
func (k *Key) renew(s *Statement) (a lettucecompat.Answer, e Event) {
	field := lettucecompat.NewField(k.l.cfg.ClientID, s.Since)
	r := k.l.wire.Extend(context.Background(), lettucecompat.Renewal{Key: k.name, Field: field, Lease: k.set.Lease.For}, k.set.Timeout)
	h := News{N: s.N, Unit: s.Since, Lease: k.set.Lease.For}
	switch r.Outcome {
	case lettucecompat.OutcomeOK:
		h.Word = Has
	case lettucecompat.OutcomeGone:
		h.Word = Lost
	case lettucecompat.OutcomeFailed:
		h.Word, h.Lease = Failed, pause()
	default:
		h.Word, h.Lease = Silence, pause()
	}
	e = k.hear(h, nil)
	k.report(r.Err)
	return lettucecompat.Answer{Outcome: r.Outcome, Err: r.Err}, e
}

// pause is jittered, so that processes that an outage has brought into step part.
func pause() time.Duration {
	return time.Duration(float64(leastPause) * (0.75 + rand.Float64()/2))
}

// news says what an answer means for the conversation.
func (k *Key) news(s *Statement, a *lettucecompat.Answer) News {
	h := News{N: s.N, Lease: a.TTL}
	switch {
	case a.Outcome == lettucecompat.OutcomeFailed:
		h.Word, h.Lease = Failed, pause()
		return h
	case a.Outcome != lettucecompat.OutcomeOK:
		h.Word, h.Lease = Silence, pause()
		return h
	}
	k.asked.Store(int64(k.l.now()))
	switch a.Word {
	case lettucecompat.WordHas:
		h.Word, h.Unit, h.Token = Has, a.Unit, a.Token
		k.told.Store(a.Told)
	case lettucecompat.WordNothing:
		h.Word = HasNot
	case lettucecompat.WordStands:
		h.Word, h.Lease = Stands, k.rhythm(a)
	case lettucecompat.WordRefused:
		h.Word, h.Lease = Refused, 0
	case lettucecompat.WordVoid:
		h.Word, h.Lease = Void, pause()
	case lettucecompat.WordLost:
		h.Word = Lost
	case lettucecompat.WordGone:
		h.Word = Gone
	}
	if (a.Word == lettucecompat.WordStands || a.Word == lettucecompat.WordRefused) && (a.Holder == "" && k.set.StringHolders || !k.l.wire.Ours(a.Holder)) {
		k.others.Store(int64(k.l.now()))
	}
	return h
}

// rhythm returns after how long a place is confirmed next. Those in front may be dead, and only who confirms learns
// how far it has come: the nearer to the front, the sooner. The first two look when the holder's lease ends.
func (k *Key) rhythm(a *lettucecompat.Answer) time.Duration {
	life := k.times.Life
	wait := min(min(life/nearLife, nearInterval)*time.Duration(max(a.Ahead, 1)), life/2)
	if !k.l.wire.Listening() {
		wait = min(wait, deafPoll*time.Duration(1+k.l.unsettled.Load()/64))
	}
	if a.Ahead > nearFront {
		return wait
	}
	if k.set.StringHolders {
		wait = min(wait, stringPoll)
	}
	if a.TTL >= 0 { // Redis rounds, and not all processes are to ask at one moment
		wait = min(wait, a.TTL+time.Millisecond+rand.N(2*time.Millisecond))
	}
	return wait
}

// refuse fails those who must not wait for a further answer than this one to the last statement.
func (k *Key) refuse(s *Statement, a *lettucecompat.Answer) {
	k.mu.Lock()
	last := k.talk.last == s.N
	k.mu.Unlock()
	switch {
	case !last:
	case a.Outcome == lettucecompat.OutcomeOK && (a.Word == lettucecompat.WordRefused || a.Word == lettucecompat.WordStands):
		k.q.Refuse(ErrRefused)
	case a.Outcome == lettucecompat.OutcomeOK:
	case a.Outcome == lettucecompat.OutcomeFailed && lettucecompat.Permanent(a.Err):
		k.carryOut(k.q.Fail(&AnswerError{Err: a.Err, Permanent: true}))
	default:
		k.q.Refuse(&AnswerError{Err: a.Err, Unknown: a.Outcome == lettucecompat.OutcomeUnknown})
	}
}

// refuseTryLocked fails a try that would have to wait for something else than the answer to its ask.
func (k *Key) refuseTryLocked() {
	if f, waits := k.q.Front(); waits && f.First.Kind.IsTry() {
		k.q.Refuse(ErrRefused)
	}
}

// ErrRefused is why a try was not admitted: somebody else has the lock or waits for it.
var ErrRefused = queue.ErrRefused

// AnswerError is why an acquisition failed: Redis did not answer it, or not as it should.
type AnswerError struct {
	Err       error
	Permanent bool // a person has to change something
	Unknown   bool // a statement may have taken effect; what it has left is removed in the background
}

// Error returns the text of what Redis brought.
func (e *AnswerError) Error() string { return e.Err.Error() }

// Unwrap returns it.
func (e *AnswerError) Unwrap() error { return e.Err }

// report reports that statements fail, and that they are answered again.
func (k *Key) report(err error) {
	k.mu.Lock()
	was := k.failing
	k.failing = err != nil
	k.mu.Unlock()
	if was || err != nil {
		k.l.cfg.Reporter.Acquiring(k, err)
	}
}

// hear takes in news, and carries out what follows. Whoever calls it goes on to speak or kick, unless it returns
// Granted.
func (k *Key) hear(h News, a *lettucecompat.Answer) Event {
	k.mu.Lock()
	talk, e := k.talk.Heard(h, k.l.now())
	lost := k.talk.Grant.Unit
	k.talk = talk
	g := k.cur.Load()
	if g != nil && g.released && !g.settled && talk.left != g.n {
		g.settled, g.missing = true, e == Missing
		if g.freed != nil {
			close(g.freed)
		}
	}
	if e == Granted {
		fresh := k.newGrantLocked()
		if !k.q.Granted(fresh.n) { // nobody wants it any more: the conversation gives it back
			fresh.lease.Load().End()
			k.l.unlist(fresh)
			e = None
		}
	}
	if a != nil && h.Word == Stands && a.Ahead <= nearFront && !k.l.wire.Ours(a.Holder) {
		k.watchLocked()
	}
	k.mu.Unlock()
	if e == Vanished && g != nil && g.n == lost {
		g.lease.Load().Lose(renewal.Cause{Reason: renewal.ReasonGone})
	}
	return e
}

// watchLocked listens for the release of a foreign holder, which calls nobody.
func (k *Key) watchLocked() {
	if k.unwatch != nil || k.silenced {
		return
	}
	w, end := k.l.wire.Watch(k.name), make(chan struct{})
	k.unwatch = end
	go func() {
		defer w.Close()
		for {
			select {
			case <-w.C():
				k.hear(News{Word: Look}, nil)
				k.speak(false)
			case <-end:
				return
			}
		}
	}()
}

func (k *Key) unwatchLocked() {
	if k.unwatch != nil {
		close(k.unwatch)
		k.unwatch = nil
	}
}

// foreign reports whether a foreign holder was seen lately.
func (k *Key) foreign(now Moment) bool {
	at := k.others.Load()
	return at != 0 && now-Moment(at) < othersTime
}

// somebody reports whether somebody may stand behind the grant.
func (k *Key) somebody(now Moment) bool {
	return k.told.Load() || k.foreign(now) || now-Moment(k.asked.Load()) > toldTime
}
