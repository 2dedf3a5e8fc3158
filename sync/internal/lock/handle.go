package lock

import (
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// This file is what an answer, a message, the time or a loss means for a key: units_send.go has what only one of units does.

// handle takes in an event, and carries out what that means. Its caller then calls sendNext or sendAsync.
func (k *Key) handle(e conversation.Event) {
	if _, n := k.apply(e, nil, nil); n != (freed{}) {
		k.l.flying.Add(1) // Close waits for the report
		k.sendAsync()
		k.reportFreed(n)
		k.l.landed()
	}
}

// apply is handle, but for the report of what was given back. cmd is what e answers, if it is an answer, and a that as it came. settled: no
// command follows from it.
func (k *Key) apply(e conversation.Event, cmd *conversation.Command, a *lettucecompat.Answer) (settled bool, n freed) {
	if k.u != nil {
		return false, k.applyUnits(e, cmd, a)
	}
	if e.Contended {
		k.noteContended(e.Record)
	}
	k.mu.Lock()
	g, had := k.cur.Load(), k.conv.Grant.Record // before enterLocked makes the next one
	if e.Kind == conversation.Failed && e.N == k.took {
		k.took = 0
	}
	before := k.conv
	var f conversation.Effect
	k.conv, f = k.conv.Handle(e, k.l.moment())
	if !k.busy && k.conv.State != conversation.Idle && !k.stirLocked() {
		k.conv = before
		k.mu.Unlock()
		return false, freed{}
	}
	got := k.conv.Grant.Record
	if at, known := k.conv.SentAt(e.N); known && e.Kind == conversation.Has && e.Record == k.took && e.Record == got {
		k.takes.until = max(k.takes.until, Moment(at.Add(e.Lease)))
	}
	called := got != had && k.unitsLocked() > 0 && got != k.took && (cmd == nil || cmd.InLine && cmd.Keep > 0 && got != cmd.N)
	if called { // another client had it; the answer that says so may be still to come
		k.pauseLinger()
	}
	if k.conv.State != conversation.Fresh {
		k.longer = false
	}
	if cmd != nil {
		k.flying--
		k.answeredLocked(cmd, a)
		if e.Kind == conversation.Waits {
			k.awaitCallLocked(cmd)
		}
	}
	n = k.freedLocked(cmd, e, f, a)
	if g != nil && k.openLocked() != g.n && got != g.n {
		g.mark = 0 // Redis has it, or there is none
	}
	settled = f == conversation.Granted && k.enterLocked()
	switch {
	case !k.conv.InLine:
		k.unwatchLocked()
	case e.Kind == conversation.Waits && a.Ahead <= nearFront && !k.l.wire.Ours(a.Holder):
		k.watchLocked()
	}
	k.mu.Unlock()
	if f == conversation.Vanished { // of g, which was granted
		k.vanished(g)
	}
	if called {
		k.l.cfg.Reporter.Called(k, cmd != nil)
	}
	return settled, n
}

// vanished: the unit of g is gone. Where g was being given back, or nobody took it, no Lost comes that would let the key go on.
func (k *Key) vanished(g *Held) {
	if !g.lease.Lose(renewal.Cause{Reason: renewal.ReasonGone}) && g.lease.State() == renewal.StateEnded {
		k.mu.Lock()
		k.conv, _ = k.conv.Handle(conversation.Event{Kind: conversation.Exited, N: g.n}, k.l.moment())
		k.mu.Unlock()
	}
}

// enterLocked makes the grant that Redis has given, and lets the first in. Where nobody may come in, or nobody wants it any
// more, it returns false, and the conversation gives it back.
func (k *Key) enterLocked() bool {
	g := k.newGrantLocked()
	if !k.l.closing.Load() {
		if taken, _ := k.q.Granted(g.n, 1, false, queue.Forever); taken {
			return true
		}
	}
	g.lease.End()
	k.l.unregister(g, nil)
	return false
}
