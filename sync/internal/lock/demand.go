package lock

import (
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// This file is what a key sends next: what the goroutines of a Mutex want, and what that makes of the conversation.

// quietUntilLocked returns until when nothing is pending, though somebody may wait.
func (k *Key) quietUntilLocked() Moment {
	if g := k.cur.Load(); g != nil {
		return max(k.retryAt, g.mark)
	}
	return k.retryAt
}

// openLocked returns the record that was given back, or taken, while no answer says what became of it; 0: none.
func (k *Key) openLocked() uint64 {
	if k.conv.State == conversation.Holding {
		return 0
	}
	return k.conv.OpenRecord()
}

// demandLocked returns what the goroutines want.
func (k *Key) demandLocked(now Moment) conversation.Demand {
	switch d := k.q.Demand(); {
	case d.Units > 0:
		return conversation.Demand{Keep: 1, Want: 1}
	case d.Want > 0 && !k.l.closing.Load() && now >= k.quietUntilLocked(): // else who is parked in Lock stays parked
		return conversation.Demand{Want: 1}
	}
	return conversation.Demand{}
}

// nextLocked takes the command that is due now. If there is none, which has no number, it sets the timer.
func (k *Key) nextLocked() conversation.Command {
	if k.u != nil {
		return k.nextUnitsLocked()
	}
	now := k.l.now()
	pause := k.quietUntilLocked()
	k.checkTryLocked(now, pause)
	demand := k.demandLocked(now)
	pauses := [...]Moment{pause, k.patience, 0}
	var takes *Taking
	if demand.Want > demand.Keep {
		if takes = k.taker(); takes != nil {
			demand.Seize, pauses[2] = now >= takes.notBefore, takes.notBefore
		}
	}
	var cmd conversation.Command
	until := never
	if demand.Keep == 0 || k.conv.State == conversation.Holding { // otherwise its owner is notified of a loss, or still to come
		k.conv, cmd, until = k.planLocked(demand, now)
	}
	if cmd.N > 0 {
		if cmd.Seize {
			k.took, k.takes = cmd.N, takes
		}
		k.sendsLocked(&cmd, now)
	}
	if k.busyLocked(k.conv.State != conversation.Idle || k.flying > 0) {
		defer k.Done()
	}
	if cmd.N == 0 {
		for _, at := range pauses {
			if now < at {
				until = min(until, at)
			}
		}
		k.wakeLocked(until, now)
	}
	return cmd
}

// checkTryLocked refuses a try in front that would have to wait for more than the answer to the first command that was sent after
// it came. A pause after failures is not its own, so it does not wait for that.
func (k *Key) checkTryLocked(now, pause Moment) {
	if d := k.q.Demand(); d.Units > 0 || !d.Try {
		return
	}
	asked := k.conv.LastCommand().N > k.tryAfter
	switch {
	case now < Moment(k.conv.SilentUntil()), now < pause:
		k.q.Refuse(ErrRefused)
	case k.conv.Unanswered():
	case asked && k.conv.State == conversation.Fresh:
		k.q.Refuse(errLate)
	case asked && k.conv.InLine && now < k.patience:
	case asked && k.conv.InLine:
		k.q.Refuse(ErrRefused)
	default:
		k.conv, _ = k.conv.Handle(conversation.Event{Kind: conversation.Retry}, conversation.Moment(now))
	}
}

// planLocked returns the next command that demand makes of the conversation, and that as it is once the command is sent: see
// conversation.Conversation.Next.
func (k *Key) planLocked(demand conversation.Demand, now Moment) (conversation.Conversation, conversation.Command, Moment) {
	n, at := k.l.number.Load()+1, conversation.Moment(now)
	conv, cmd, until := k.conv.Next(demand, n, at)
	if cmd.N > 0 { // only now a number is taken
		if taken := k.l.number.Add(1); taken != n {
			conv, cmd, until = k.conv.Next(demand, taken, at)
		}
	}
	return conv, cmd, Moment(until)
}

// sendsLocked notes that cmd is about to be sent.
func (k *Key) sendsLocked(cmd *conversation.Command, now Moment) {
	k.flying++
	k.l.flying.Add(1)
	if b := k.freeing; b != nil && b.n == 0 && cmd.Keep == 0 {
		b.n = cmd.N
	}
	if cmd.Have > 0 {
		k.knew = now
	}
}
