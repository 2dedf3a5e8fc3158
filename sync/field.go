package anteroom

import (
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// field is what this process knows about one field of its own in Redis, from the
// first acquire that names it until nothing can be left of it. Its methods are the
// events of that life and the questions about it. It is a plain value: it has no
// clock, starts nothing and sends nothing; entry.mu guards it once a second
// goroutine can see it.
//
//	      unanswered: one more acquire is open, it may land late
//	         ┌──┐
//	         ▼  │
//	new ──► wanted ─────────────── nobody waits any more ───────┐
//	           │ granted, or in line as a place                 │
//	           │ (found: one open acquire less)                 │
//	           ▼                                                │
//	         held ─── not wanted, release without answer, ──────┤
//	           │      lost and still to be removed (lost)       ▼
//	           │ released, gone                               burnt ◄─┐ release
//	           ▼                                                │  └──┘ unanswered
//	 nothing open ─► over                                       │
//	 acquires open ─► burnt               nothing there, nothing│open; or the
//	                                          end of every lease▼is past: over
//
// What can be in Redis under the name comes from two sources: the grant (held) and
// acquires without an answer (open); a grant that may be taken back (reacquire) can come
// again by a renewal under way, until a release closes its record. An acquire lands at most once, and
// later than lease and time limit after the last one none is waited for. Nothing is
// there without a time to live, so what is given up then ends by itself.
//
//	F1  A field is not over while the grant may be there or an acquire may land,
//	    before the moment at which the lease of either must have ended it. Close
//	    excepted, see F5: what lands after it stands for one lease at most.
//	F2  A field is not removed before from: where its owner may still be working,
//	    the end of the lease that Redis has confirmed.
//	F3  A field that MinHold keeps is not dropped before that, and its releases
//	    leave the key taken for the rest.
//	F4  A release counts as such (ours) only if the field was ours up to it: it has
//	    removed what could only be the grant, or one that was sent before the
//	    deadline, when nobody else could have the lock, may have removed it.
//	F5  Every clean-up ends: with a release that leaves nothing open, with a drop,
//	    or at the end of every lease, and then after one release at least; where the
//	    Manager closes, with the first that finds the field gone (settled).
type field struct {
	lease     time.Duration // how long it may be there after a command: the lease, or a place's life and a call's lease
	timeout   time.Duration // the longest of a command that may keep it
	reacquire bool          // a renewal may put the field there again (RecoverReacquire), until a release has closed its record

	place    bool      // held is a place in line
	held     bool      // granted or in line, and no answer has said since that it is removed or gone
	open     int       // acquires whose answer was lost, and which nothing has accounted for
	lastSent time.Time // of the last of these
	until    time.Time // what was granted has ended by then; set by an Extend and when it is burnt

	burnt  bool      // to be removed; no acquire names it any more
	from   time.Time // not to be removed before
	keep   time.Time // MinHold: the key stays taken until then
	unused lettucecompat.GiveBack

	tried bool // a release was sent since it was burnt last

	// Of the owner's release and its repeats.
	deadline  time.Time // up to it nobody but us removes the field
	maybe     bool      // one that was sent before the deadline had no answer: it may have done it
	underWay  int       // repeats, and attempts that name the field: one of them may just have done it
	gone      bool      // an answer has told that the field is gone, and by itself not why
	vanished  bool      // and what it answers was sent before the deadline: no lease has ended it
	confirmed bool      // the answers have told how it ended
	ours      bool      // and that it had been ours until it was released
}

// unanswered notes an acquire that was sent at sentAt and may still land.
func (f *field) unanswered(sentAt time.Time) { f.open, f.lastSent = f.open+1, sentAt }

// granted notes that an acquire was answered with a grant, or that Redis has called. found:
// the field was there before, so that one of the open acquires has landed, unless it was known
// to stand in line.
func (f *field) granted(found bool) {
	f.landed(found)
	f.place = false
}

// stands notes that an acquire was answered with a place in line. found is as for granted.
func (f *field) stands(found bool) {
	f.landed(found)
	f.place = true
}

func (f *field) landed(found bool) {
	if found && !f.held && f.open > 0 {
		f.open--
	}
	f.held = true
}

// neither notes that Redis has neither the place nor a grant under it.
func (f *field) neither() { f.held, f.place = false, false }

// extending notes an Extend that is about to be sent: answered or not, it may keep
// the field for d from its arrival.
func (f *field) extending(now time.Time, d time.Duration) {
	f.until = latest(f.until, now.Add(d+f.timeout))
}

// burn gives the field up: it is removed at from, or earlier if that was known
// before. Its lease has ended by now, so no further renewal is handed over (renewal's
// I5), but one that was may arrive until its time limit and give what is there one more
// lease.
func (f *field) burn(now, from time.Time) {
	f.until = latest(f.until, latest(now, from).Add(f.lease+f.timeout))
	if !f.burnt || from.Before(f.from) {
		f.from = from
	}
	f.burnt, f.tried = true, false
}

// burnNow notes that nobody works under the grant any more: the field is removed at
// once. It reports whether something may be left to remove.
func (f *field) burnNow(now time.Time) bool {
	f.burn(now, now)
	return f.remains(now)
}

// lost notes that the lease is lost, and reports whether the field is burnt by that.
// end is when the lease that Redis has confirmed ends, and with it all that the
// owner could count on. Otherwise the field is left to its lease.
func (f *field) lost(why LossReason, now, end time.Time, renewed, doomed bool) bool {
	switch {
	case doomed:
		end = now // its owner provably cannot run
	case why == LostDeadline && renewed:
		// The key may live on, by a renewal whose answer was lost. Until the confirmed
		// lease is over the margin is the holder's time to react.
	case f.open == 0 && !f.reacquire:
		return false
	case why == LostGone, why == LostForced:
		end = now // the key is free: an open acquire, or a renewal under way, may land at any moment
	}
	f.burn(now, end)
	return true
}

// sending notes that something is about to be sent that may remove the field: a repeat
// of its release, or an attempt that names it.
func (f *field) sending() { f.underWay++ }

// returned notes that one of these has come back, after what its answer said if it had one.
func (f *field) returned() {
	f.underWay--
	f.confirmGone()
}

// released notes the answer to a release that was sent at sent.
func (f *field) released(r lettucecompat.ReleaseReply, sent time.Time) {
	f.tried = true
	inTime := sent.Before(f.deadline)
	switch {
	case r.Left && f.held && !f.place:
		// The grant was gone, and what was there is an acquire that came late.
		f.held, f.gone, f.open = false, true, max(f.open-1, 0)
		f.confirmGone()
	case r.Outcome == lettucecompat.OutcomeOK:
		f.removed(inTime, r.Marked)
	case r.Outcome == lettucecompat.OutcomeGone:
		f.held, f.gone, f.vanished = false, true, f.vanished || inTime
		f.confirmGone()
	case r.Outcome == lettucecompat.OutcomeUnknown:
		f.maybe = f.maybe || inTime
	}
}

// attempted notes the answer to an attempt that named the field and was sent at sent.
// answered: its script has run to its end, so nothing is left of the field. dropped: it has removed
// it. open: nobody knows what it has done, because its
// answer was lost or its script failed after that.
func (f *field) attempted(answered, dropped, open bool, sent time.Time) {
	switch inTime := sent.Before(f.deadline); {
	case dropped:
		f.removed(inTime, false)
		f.tried = true
	case answered:
		f.held, f.gone, f.tried, f.vanished = false, true, true, f.vanished || inTime
	case open:
		f.maybe = f.maybe || inTime
	}
}

// removed notes that a command of ours has removed the field. With acquires open it may
// have been one of those that was removed, but for the first removal of a grant, also
// where the answer to a later command, which found nothing, has come before this one.
func (f *field) removed(inTime, marked bool) {
	grant := f.held || f.gone && !f.confirmed
	f.confirm(inTime || f.maybe || f.open == 0)
	if !grant && !marked && f.open > 0 { // a mark of our own is none of them
		f.open--
	}
	f.held = false
}

// confirmGone says how a field ended that was found gone, once nothing is under way
// that may say that it has just removed it: if nothing that was sent can have removed
// it, somebody else has.
func (f *field) confirmGone() {
	if f.gone && f.underWay == 0 {
		f.confirm(f.maybe)
	}
}

// confirm notes the first answer that tells how the lock has ended.
func (f *field) confirm(ours bool) {
	if !f.confirmed {
		f.confirmed, f.ours = true, ours
	}
}

// due reports whether there is something to remove still, and since when that may be
// done; or whether it is only to be waited for what an attempt has done.
func (f *field) due(now time.Time) (since time.Time, left bool) {
	if f.remains(now) {
		return f.from, true
	}
	return latest(now, f.from).Add(f.timeout), f.gone && !f.confirmed
}

// remains reports whether there may be something to remove.
func (f *field) remains(now time.Time) bool {
	return (f.held || f.open > 0) && (!f.tried || now.Before(f.end()))
}

// settled reports whether an answer has told that nothing of a burnt field is left, so that only
// an acquire whose connection broke may bring it again.
func (f *field) settled() bool { return f.tried && f.gone && f.confirmed && !f.held }

// end is when every lease that the field may have got has ended.
func (f *field) end() time.Time {
	var end time.Time
	if f.held {
		end = f.until
	}
	if f.open > 0 {
		end = latest(end, f.lastSent.Add(f.lease+f.timeout))
	}
	return end
}

// droppable reports whether an attempt of this process may remove the field in its
// own script.
func (f *field) droppable(now time.Time) bool {
	return f.burnt && f.remains(now) && !now.Before(latest(f.from, f.keep))
}

// keepFor is how long a release that is sent now leaves the key taken.
func (f *field) keepFor(now time.Time) time.Duration { return max(f.keep.Sub(now), 0) }

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
