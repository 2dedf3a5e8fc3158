package lock

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// This file is how a command is sent, and what its answer means: for the conversation (event), for those who must not wait
// (refuse), and for those who gave up (gaveUp).

// How often places retry by themselves.
const (
	nearLife         = 6 // confirmations in the life of a place at the front
	nearInterval     = time.Second
	nearFront        = 1                     // places before those that retry by themselves
	unsubscribedPoll = 25 * time.Millisecond // without a subscription
	stringPoll       = 100 * time.Millisecond
	leastPause       = 20 * time.Millisecond // after the second command without an answer
)

// sendNext sends what there is to send now, and returns after the answer.
func (k *Key) sendNext() {
	if cmd := k.next(); cmd.N > 0 {
		k.send(cmd)
	}
}

// sendAsync is sendNext for callers that must not be held up.
func (k *Key) sendAsync() {
	if cmd := k.next(); cmd.N > 0 {
		go k.send(cmd)
	}
}

// next is nextLocked.
func (k *Key) next() conversation.Command {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.nextLocked()
}

// send sends cmd, takes in the answer, and sends what comes next.
func (k *Key) send(cmd conversation.Command) lettucecompat.Answer {
	a, settled, n := k.exchange(&cmd)
	if !settled {
		k.sendAsync()
	}
	k.reportFreed(n)
	k.l.landed() // Close waits for the report
	return a
}

// exchange is send up to the answer.
func (k *Key) exchange(cmd *conversation.Command) (a lettucecompat.Answer, settled bool, n freed) {
	k.l.wire.Subscribe()
	e, a := k.ask(cmd)
	settled, n = k.apply(e, cmd, &a)
	if a.Outcome == lettucecompat.OutcomeOK || a.Err != nil { // else nothing was sent
		k.report(a.Err)
		if cmd.Want > 0 && !cmd.Seize {
			k.carryOut(k.refuse(cmd, &a))
		}
	}
	return a, settled, n
}

// report reports that a command had no usable answer, or that it had one.
func (k *Key) report(err error) {
	if err == nil {
		k.l.cfg.Reporter.Answered(k, k.failed.Swap(nil))
		return
	}
	shard := k.l.wire.Shard(k.name)
	k.failed.Store(&shard)
	k.l.cfg.Reporter.Failed(k, shard, err)
}

// command is cmd as the wire has it.
func (k *Key) command(cmd *conversation.Command) lettucecompat.Command {
	s := lettucecompat.Command{
		Key: k.name, N: cmd.N, Since: cmd.Since, Units: cmd.Have, Keep: cmd.Keep, Want: cmd.Want, Again: cmd.Again, Try: cmd.Try,
		Terms: &k.set.Wire, Timeout: k.set.Timeout,
	}
	switch {
	case cmd.Have > 0:
		s.Have = lettucecompat.HaveUnit
	case cmd.InLine && cmd.Keep > 0: // who gives up a place gives back whatever there is
		s.Have = lettucecompat.HavePlace
	}
	return s
}

// ask sends cmd, and returns what its answer means. What a call has overtaken, and whose place another command has taken, is not sent.
func (k *Key) ask(cmd *conversation.Command) (conversation.Event, lettucecompat.Answer) {
	switch {
	case k.u != nil:
		return k.askUnits(cmd)
	case cmd.Seize:
		return k.takeOver(cmd)
	case cmd.Have > 0 && cmd.Keep > 0:
		return k.renew(cmd)
	}
	wire := k.command(cmd)
	if cmd.Keep == 0 && wire.Since > 0 {
		k.mu.Lock()
		k.markLocked(&wire)
		k.mu.Unlock()
	}
	if cmd.Keep == 0 && cmd.Want > 0 {
		t := k.taker()
		wire.Try, wire.First = k.q.Demand().Try && k.set.Linger == 0, t != nil && t.From == ""
	}
	a := k.l.wire.Do(context.Background(), wire)
	e := k.event(cmd.N, &a)
	k.heardOfOthers(cmd, &e, &a)
	return e, a
}

// markLocked fills in which mark stays of the record that is given back, and its last token.
func (k *Key) markLocked(wire *lettucecompat.Command) {
	switch g := k.cur.Load(); {
	case g != nil && g.n == wire.Since:
		wire.LastToken, wire.Mark = g.lastToken(), max(g.mark-k.l.now(), 0)
		if b := g.bequestLocked(); b != nil {
			wire.MarkAs = b.field
		}
	case wire.Since == k.took && k.takes != nil && k.takes.From != "": // it may have been taken from that field
		wire.Mark, wire.MarkAs = lettucecompat.LeaseLeft, k.takes.From
	}
}

// renew makes a unit last that nobody has entered, since too little is left of it. What is new is brief, but if that is not
// enough, since answers are slow, it gets the whole lease.
func (k *Key) renew(cmd *conversation.Command) (conversation.Event, lettucecompat.Answer) {
	field := lettucecompat.NewField(k.l.cfg.ClientID, cmd.Since)
	lease := k.set.times.Call
	k.mu.Lock()
	if k.longer {
		lease = k.set.times.Lease
	}
	k.longer = true
	k.mu.Unlock()
	r := k.l.wire.Extend(context.Background(), lettucecompat.Renewal{Key: k.name, Field: field, Lease: lease}, k.set.Timeout)
	e, a := conversation.Event{N: cmd.N}, lettucecompat.Answer{Outcome: r.Outcome, Err: r.Err}
	switch r.Outcome {
	case lettucecompat.OutcomeOK:
		e.Kind, e.Record, e.Units, e.Lease, a.Word = conversation.Has, cmd.Since, 1, lease, lettucecompat.WordHas
	case lettucecompat.OutcomeGone:
		e.Kind, a.Outcome, a.Word = conversation.Lost, lettucecompat.OutcomeOK, lettucecompat.WordLost
	case lettucecompat.OutcomeFailed:
		e.Kind, e.After = conversation.Failed, pause()
	default:
		e.Kind, e.After = conversation.Silence, pause()
	}
	return e, a
}

// pause is jittered, so that processes that an outage has brought into step part.
func pause() time.Duration {
	return time.Duration(float64(leastPause) * (0.75 + rand.Float64()/2))
}

// event says what the answer a to command n means for the conversation.
func (k *Key) event(n uint64, a *lettucecompat.Answer) conversation.Event {
	e := conversation.Event{N: n, Record: a.Unit, Units: a.Units, Lease: a.TTL, Token: a.Token, Contended: a.Contended}
	switch {
	case a.Outcome == lettucecompat.OutcomeFailed, a.Outcome == lettucecompat.OutcomeOK && a.Word == lettucecompat.WordVoid:
		e.Kind, e.After = conversation.Failed, pause()
	case a.Outcome != lettucecompat.OutcomeOK:
		e.Kind, e.After = conversation.Silence, pause()
	case a.Word == lettucecompat.WordLost:
		e.Kind = conversation.Lost
	case a.Word == lettucecompat.WordWaits:
		e.Kind, e.After = conversation.Waits, k.l.rhythm(k.set.times.Life, a.Ahead, a.Next)
	case a.Units > 0: // also if a try is refused
		e.Kind = conversation.Has
	default:
		e.Kind = conversation.HasNot
	}
	return e
}

// rhythm returns after how long a place with this life is confirmed next. Those in front may be dead, and only a confirmation
// shows how far the place has come: the nearer to the front, the sooner. The first two retry when a holder's lease ends,
// after next; negative: it does not.
func (l *Locks) rhythm(life time.Duration, ahead int, next time.Duration) time.Duration {
	wait := min(min(life/nearLife, nearInterval)*time.Duration(max(ahead, 1)), life/2)
	if !l.wire.Listening() {
		wait = min(wait, unsubscribedPoll*time.Duration(1+l.unsettled.Load()/64))
	}
	if ahead <= nearFront && next >= 0 { // Redis rounds, and not all processes are to ask at one moment
		wait = min(wait, next+time.Millisecond+rand.N(2*time.Millisecond))
	}
	return wait
}

// refuse fails a try that came before cmd was sent, to which a is the answer, and, where a person has to change
// something, all that can be notified.
func (k *Key) refuse(cmd *conversation.Command, a *lettucecompat.Answer) queue.Order {
	k.mu.Lock()
	defer k.mu.Unlock()
	answered := a.Outcome == lettucecompat.OutcomeOK
	switch {
	case a.Outcome == lettucecompat.OutcomeFailed && lettucecompat.Permanent(a.Err):
		return k.q.Fail(failure(a.Outcome, a.Err))
	case cmd.N <= k.tryAfter:
	case answered && a.Word == lettucecompat.WordWaits && k.l.now() < k.patience:
	case answered && (a.Word == lettucecompat.WordRefused || a.Word == lettucecompat.WordWaits):
		return k.q.Refuse(ErrRefused)
	case answered && a.Word != lettucecompat.WordVoid:
	default:
		return k.q.Refuse(failure(a.Outcome, cmp.Or(a.Err, errVoid)))
	}
	return queue.Nothing
}

// ErrRefused is why a try was not admitted: somebody else has the lock or waits for it, or this process has to wait before it
// asks again.
var ErrRefused = queue.ErrRefused

// errLate is why a try was not admitted to the lock that it got: a further command would have to come first.
var errLate = &AnswerError{Err: errors.New("the answer came too late to rely on it")}

// Answer returns what was heard last of who has the lock, or why nothing was; nil since somebody of this process had it.
func (k *Key) Answer() *lettucecompat.Answer {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.answer
}

// answeredLocked keeps the answer a to cmd for who gives up: not an older one, nor a good one to what wants nothing, nor any
// while this process has what it wants.
func (k *Key) answeredLocked(cmd *conversation.Command, a *lettucecompat.Answer) {
	wants := k.conv.State != conversation.Holding || k.conv.InLine || cmd.Want > k.conv.Units
	switch {
	case cmd.N != k.conv.LastCommand().N:
	case !wants:
		k.answer = nil
	case a.Err != nil || cmd.Want > 0 && !cmd.Seize:
		kept := *a // or each answer would be allocated
		k.answer = &kept
		if a.Err == nil && a.Word != lettucecompat.WordVoid {
			k.knew = k.l.now()
		}
	}
}

// gaveUp says why w has not come in, which the queue says is because of err: an *AnswerError in place of the cause of its context
// where Redis is why.
func (k *Key) gaveUp(w *queue.Waiter, err error) error {
	if isAnswer(err) && err != errUnanswered { //nolint:errorlint // never wrapped
		return err
	}
	if failed := k.unanswered(w); failed != nil {
		return failed
	}
	if w.Takes && k.waitsForRedis(w.Note.(*Owner)) { // it has waited for nobody
		return errUnanswered
	}
	return err
}

// unanswered returns what Redis has not answered, or how, nil where somebody else has kept w out.
func (k *Key) unanswered(w *queue.Waiter) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := &k.conv
	switch {
	case c.State == conversation.Holding && c.LastCommand().Want <= c.Units, k.q.Demand().Lost: // those of this process are in, or have not unlocked it
	case k.answer != nil && k.answer.Err != nil:
		return failure(k.answer.Outcome, k.answer.Err)
	case k.unitsLocked() > 0 && c.State != conversation.Holding, c.Unanswered() && c.LastCommand().Keep == 0 && k.knew < w.Began:
		return errUnanswered
	}
	return nil
}

// isAnswer reports whether err is why the queue has failed a waiter, and not the cause of its context.
func isAnswer(err error) bool {
	_, is := err.(*AnswerError)                                              //nolint:errorlint // they are never wrapped
	return is || err == ErrRefused || err == ErrClosed || err == ErrNotThere //nolint:errorlint // the same
}

// errUnanswered is why somebody gave up while the answer that it needed was still to come.
var errUnanswered = &AnswerError{Err: errors.New("no answer yet"), Unknown: true}

func failure(o lettucecompat.Outcome, err error) *AnswerError {
	return &AnswerError{Err: err, Permanent: lettucecompat.Permanent(err), Unknown: o == lettucecompat.OutcomeUnknown}
}

// errVoid is why a command had no effect though it was answered.
var errVoid = errors.New("another program says what this client has of the lock")

// AnswerError is why an acquisition failed: Redis did not answer it, or not as it should.
type AnswerError struct {
	Err       error
	Permanent bool // a person has to change something
	Unknown   bool // a command may have taken effect; what it has left is removed in the background
}

// Error returns the text of what Redis brought.
func (e *AnswerError) Error() string { return e.Err.Error() }

// Unwrap returns it.
func (e *AnswerError) Unwrap() error { return e.Err }
