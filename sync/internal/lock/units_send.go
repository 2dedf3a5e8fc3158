package lock

import (
	"context"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// This file is how a command about units is sent, and what an answer or a message means for them: send.go and handle.go have that of a
// Mutex.

// askUnits is ask for units.
func (k *Key) askUnits(cmd *conversation.Command) (conversation.Event, lettucecompat.Answer) {
	wire := k.command(cmd)
	k.mu.Lock()
	if k.u.sentN != cmd.N { // a call has overtaken it, and a later one was sent: Redis would not mind it
		k.mu.Unlock()
		return conversation.Event{Kind: conversation.Failed, N: cmd.N}, lettucecompat.Answer{Outcome: lettucecompat.OutcomeFailed}
	}
	wire.KeepOf, wire.WantOf = k.u.sent.keep, k.u.sent.want
	g := k.cur.Load()
	if g != nil {
		wire.LastToken = g.lastTokenLocked()
	}
	k.mu.Unlock()
	a := k.l.wire.Do(context.Background(), wire)
	if g != nil && a.Outcome == lettucecompat.OutcomeOK && a.Word != lettucecompat.WordVoid {
		k.mu.Lock()
		g.u.named = max(g.u.named, wire.LastToken)
		k.mu.Unlock()
	}
	return k.event(cmd.N, &a), a
}

// applyUnits is apply for units. s is what e answers, if it is an answer, and a that as it came.
func (k *Key) applyUnits(e conversation.Event, s *conversation.Command, a *lettucecompat.Answer) (n freed) {
	k.mu.Lock()
	before, used, had := k.conv, k.u.use, k.unitsLocked()
	of := int64(0)
	if s != nil && s.N == used.sentN {
		if of = used.sent.keep; a.Word == lettucecompat.WordHas {
			of = used.sent.want
		}
	}
	f := k.handleLocked(e, of, k.l.now())
	if !k.busy && k.conv.State != conversation.Idle && !k.stirLocked() {
		k.conv, k.u.use = before, used
		k.mu.Unlock()
		return freed{}
	}
	now, g := k.conv.Grant, k.cur.Load()
	more := k.unitsLocked() > had || k.unitsLocked() > 0 && k.u.of < used.of
	if k.usableLocked() {
		k.q.CountsWith(k.u.of)
	}
	if more || before.InLine && !k.conv.InLine {
		k.answer = nil // what was heard before is not why anybody waits now
	}
	called := more && (e.Kind == conversation.Called || before.InLine && s != nil)
	n = k.freedLocked(s, e, f, a)
	switch {
	case s != nil && s.N > k.tryAfter && k.unitsLocked() > 0 && !k.usableLocked(): // and its next answer has no end
		k.q.Refuse(errLate)
	case f == conversation.Granted:
		g = k.newGrantLocked()
		k.q.Granted(g.n, k.conv.Units, k.contendedLocked(), g.deadline())
	case f == conversation.Vanished:
		g.gone(byCommand, nil)
	case k.usableLocked() && g.loss == nil: // else Ended is on its way
		if now.Sent != before.Grant.Sent || now.Lease != before.Grant.Lease {
			g.lease.Extend(k.at(Moment(now.Sent)), now.Lease)
		}
		if e.Kind == conversation.Called && had > 0 {
			g.lease.Hurry() // what it had may be gone: then Redis keeps all for a call lease only
		}
		if now.Token != before.Grant.Token {
			g.token, g.u.made, g.u.handOffs, g.u.handed = now.Token, k.l.now(), 0, false
		}
		switch {
		case more, before.InLine && !k.conv.InLine, e.Kind == conversation.Called && k.u.lastServed > used.lastServed: // of what it had, too: it was another one's turn
			k.q.Granted(g.n, k.conv.Units, k.contendedLocked(), g.deadline())
		case s != nil || e.Kind == conversation.Called:
			k.q.Renewed(k.contendedLocked(), g.deadline())
		}
	}
	here, there := int64(0), int64(0)
	if s != nil {
		k.flying--
		k.answeredLocked(s, a)
		if a.Capacity > 0 && s.Want > 0 && of > 0 { // 0: an RWMutex
			if here, there = of, a.Capacity; a.Units == 0 {
				here = used.sent.want
			}
			k.u.least = there
		}
	}
	k.mu.Unlock()
	r := k.l.cfg.Reporter
	if there != here {
		r.Capacity(k, here, there)
	}
	if called {
		r.Called(k, s != nil)
	}
	return n
}

// unitsForced notes that somebody says, and anybody can, that record n was deleted on purpose. A renewal asks Redis.
func (k *Key) unitsForced(n uint64) {
	k.mu.Lock()
	if n > k.conv.LastCommand().N {
		n = 0
	}
	k.u.deleted = max(k.u.deleted, n)
	g, present := k.cur.Load(), n > 0 && n >= k.u.lastShown
	k.mu.Unlock()
	if g != nil && present {
		g.lease.Hurry()
	}
}

// unitsWanted notes that another client waits for the units of record n.
func (k *Key) unitsWanted(n uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.notifiedLocked(n)
	if k.contendedLocked() && k.usableLocked() {
		k.q.Contended()
	}
}
