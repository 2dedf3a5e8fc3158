package lock

import (
	"cmp"
	"context"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// This file is how a statement about units is sent, and what its answer means: say.go has that of a Mutex.

// say sends s, takes in the answer, and states what comes next. mayBeHeld is as in lettucecompat.UnitsStatement.
func (k *SharedKey) say(s *unitsCommand, mayBeHeld bool) {
	k.l.wire.Subscribe()
	wire := lettucecompat.UnitsStatement{
		Key: k.name, N: s.N, Since: s.Names(), Units: s.Have, Keep: s.Keep, Want: s.Want, Again: s.Again, Try: s.Try,
		KeepOf: s.keepOf, WantOf: s.wantOf, Terms: &k.set.Wire, Timeout: k.set.Timeout, MayBeHeld: mayBeHeld,
	}
	switch {
	case s.Have > 0:
		wire.Have = lettucecompat.HaveUnit
	case s.InLine:
		wire.Have = lettucecompat.HavePlace
	}
	k.mu.Lock()
	g := k.cur.Load()
	if g != nil {
		wire.LastToken = g.lastTokenLocked()
	}
	k.mu.Unlock()
	a := k.l.wire.StateUnits(context.Background(), wire)
	if g != nil && a.Outcome == lettucecompat.OutcomeOK && a.Word != lettucecompat.WordVoid {
		k.mu.Lock()
		g.stated = max(g.stated, wire.LastToken)
		k.mu.Unlock()
	}
	k.take(k.event(&a, s.N), a.Contended, s, &a)
	k.refuse(s, &a)
	k.report(a.Err)
	k.kick()
	k.l.landed()
}

// event says what an answer to command n means for the conversation.
func (k *SharedKey) event(a *lettucecompat.UnitsAnswer, n uint64) conversation.Event {
	e := conversation.Event{N: n, Record: n, Units: a.Units, Lease: a.TTL, Token: a.Token}
	switch {
	case a.Outcome == lettucecompat.OutcomeFailed, a.Outcome == lettucecompat.OutcomeOK && a.Word == lettucecompat.WordVoid:
		e.Kind, e.After = conversation.Failed, pause()
	case a.Outcome != lettucecompat.OutcomeOK:
		e.Kind, e.After = conversation.Silence, pause()
	case a.Word == lettucecompat.WordLost:
		e.Kind = conversation.Lost
	case a.Word == lettucecompat.WordWaits:
		e.Kind, e.After = conversation.Waits, k.l.rhythm(k.set.times.Life, a.Ahead, cmp.Or(a.Next, -1))
	case a.Units > 0: // also if a try is refused
		e.Kind = conversation.Has
	default:
		e.Kind = conversation.HasNot
	}
	return e
}

// refuse is as that of a Key.
func (k *SharedKey) refuse(s *unitsCommand, a *lettucecompat.UnitsAnswer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.talk.LastCommand().N != s.N: // a call has overtaken it
	case a.Outcome == lettucecompat.OutcomeFailed && lettucecompat.Permanent(a.Err):
		k.gate.Fail(failure(a.Outcome, a.Err))
	case s.N <= k.tryAfter:
	case a.Outcome == lettucecompat.OutcomeOK && (a.Word == lettucecompat.WordRefused || a.Word == lettucecompat.WordWaits):
		k.gate.Refuse(ErrRefused)
	case a.Outcome == lettucecompat.OutcomeOK && a.Word != lettucecompat.WordVoid:
	default:
		k.gate.Refuse(failure(a.Outcome, cmp.Or(a.Err, errVoid)))
	}
}

// hear takes in an event, and carries out what that means; contended: another client waits, a call says. Its caller then calls
// speak or kick.
func (k *SharedKey) hear(e conversation.Event, contended bool) { k.take(e, contended, nil, nil) }

// take is hear. s is what e answers, if it is an answer, and a that as it came.
func (k *SharedKey) take(e conversation.Event, contended bool, s *unitsCommand, a *lettucecompat.UnitsAnswer) {
	k.mu.Lock()
	before := k.talk
	var f conversation.Effect
	of := int64(0)
	if s != nil {
		if of = s.keepOf; a.Word == lettucecompat.WordHas {
			of = s.wantOf
		}
	}
	k.talk, f = k.talk.handle(e, contended, of, k.l.now())
	if !k.busy && k.talk.State != conversation.Idle && !k.stirLocked() {
		k.talk = before
		k.mu.Unlock()
		return
	}
	now, g := k.talk.Grant, k.cur.Load()
	more := k.talk.units() > before.units() || k.talk.units() > 0 && k.talk.of < before.of
	if k.talk.usable() {
		k.gate.CountsWith(k.talk.of)
	}
	called := more && (e.Kind == conversation.Called || before.InLine && s != nil)
	failed, givenUp, missing := k.freedLocked(s, e, f, a)
	switch {
	case s != nil && s.N > k.tryAfter && k.talk.units() > 0 && !k.talk.usable(): // and its next answer has no end
		k.gate.Refuse(errLate)
	case f == conversation.Granted:
		g = k.newGrantLocked()
		k.gate.Granted(g.n, k.talk.Units, k.talk.contended(), g.deadline())
	case f == conversation.Vanished:
		k.l.gone(g.lease, byStatement, nil)
	case k.talk.usable():
		if now.Sent != before.Grant.Sent || now.Lease != before.Grant.Lease {
			g.lease.Extend(k.at(Moment(now.Sent)), now.Lease)
		}
		if now.Token != before.Grant.Token {
			g.token, g.made, g.handOffs, g.handed = now.Token, k.l.now(), 0, false
		}
		switch {
		case more, before.InLine && !k.talk.InLine, e.Kind == conversation.Called && k.talk.lastServed > before.lastServed: // of what it had, too: it was another one's turn
			k.gate.Granted(g.n, k.talk.Units, k.talk.contended(), g.deadline())
		case s != nil || e.Kind == conversation.Called:
			k.gate.Renewed(k.talk.contended(), g.deadline())
		}
	}
	here, there := int64(0), int64(0)
	if s != nil {
		k.flying--
		if s.N == k.talk.LastCommand().N { // who gives up is not notified of an older one
			k.answer = a
		}
		if a.Capacity > 0 && s.Want > 0 {
			here, there = of, a.Capacity
			if a.Units == 0 {
				here = s.wantOf
			}
			k.least = there
		}
	}
	k.mu.Unlock()
	r := k.l.cfg.Reporter
	if here > 0 && there != here { // 0: an RWMutex
		r.Capacity(k, here, there)
	}
	if called {
		r.Called(k, s != nil)
	}
	switch {
	case failed != nil:
		r.ReleaseFailed(failed.g, cmp.Or(a.Err, errVoid))
	case givenUp != nil:
		r.ReleaseGivenUp(givenUp.g)
	case missing != nil:
		missing.g.report(missing.r.Lost)
	}
}

// freedLocked concludes how what is given back has ended, and returns of which grant that has failed for the first time, was
// given up, or was not there. The others are as in take, and f is what e means. The answer to a command of before, which a call
// has overtaken, says nothing of that.
func (k *SharedKey) freedLocked(s *unitsCommand, e conversation.Event, f conversation.Effect, a *lettucecompat.UnitsAnswer) (failed, givenUp, missing *giving) {
	b, r := k.freeing, ExitResult{}
	switch {
	case b == nil || s == nil && f != conversation.GivenUp || s != nil && s.N < b.n:
		return nil, nil, nil
	case f == conversation.GivenUp:
		givenUp = b
	case e.Kind == conversation.Silence || e.Kind == conversation.Failed:
		if b.r.Err == nil {
			b.r.ReleaseResult = ReleaseResult{Err: cmp.Or(a.Err, errVoid), Unknown: a.Outcome == lettucecompat.OutcomeUnknown}
			if b.before == nil {
				failed = b
			}
		}
		return failed, nil, nil
	case f == conversation.Vanished && b.g == k.cur.Load() && b.r.Err == nil: // those who have not left are notified of the same loss
		r.Lost = &Loss{Cause: b.g.missingLocked(), Shares: b.by, Unnamed: b.unnamed}
		b.g.left, b.g.unnamed = append(b.g.left, b.by...), b.g.unnamed || b.unnamed
	case f == conversation.Missing:
		r.Lost = &Loss{Cause: b.g.missingLocked(), Shares: b.by, Unnamed: b.unnamed}
		missing = b
	}
	b.end(r)
	k.freeing = nil
	return nil, givenUp, missing
}

// forced notes that somebody says, and anybody can, that record n was deleted on purpose. A renewal asks Redis.
func (k *SharedKey) forced(n uint64) {
	k.mu.Lock()
	if n > k.talk.LastCommand().N {
		n = 0
	}
	k.deleted = max(k.deleted, n)
	g, present := k.cur.Load(), n > 0 && n >= k.talk.lastShown
	k.mu.Unlock()
	if g != nil && present {
		g.lease.Hurry()
	}
}

// contended notes that another client waits for the units of record n.
func (k *SharedKey) contended(n uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.talk = k.talk.notified(n)
	if k.talk.contended() && k.talk.usable() {
		k.gate.Contended()
	}
}
