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
//	           │ granted (found: one open acquire less)         │
//	           ▼                                                │
//	         there ── retired, release without answer, ─────────┤
//	           │      lost and still to be removed (lost)       ▼
//	           │ released, gone                               burnt ◄─┐ release
//	           ▼                                                │  └──┘ unanswered
//	 nothing open ─► over                                       │
//	 acquires open ─► burnt               nothing there, nothing│open; or the
//	                                          end of every lease▼is past: over
//
// What can be in Redis under the name comes from two sources: the grant (there) and
// acquires without an answer (open). Each of the latter lands at most once, and
// later than lease and time limit after the last one none is waited for. Nothing is
// there without a time to live, so what is forgotten then ends by itself.
//
//	F1  A field is not over while the grant may be there or an acquire may land,
//	    before the moment at which the lease of either must have ended it.
//	F2  A field is not removed before from: where its owner may still be working,
//	    the end of the lease that Redis has confirmed.
//	F3  A field that MinHold keeps is not dropped before that, and its releases
//	    leave the key taken for the rest.
//	F4  A release counts as such (ours) only if the field was ours up to it: it has
//	    removed what could only be the grant, or one that was sent before the
//	    deadline, when nobody else could have the lock, may have removed it.
//	F5  Every clean-up ends: with a release that leaves nothing open, with a drop,
//	    or at the end of every lease, and then after one release at least.
type field struct {
	name    string
	lease   time.Duration // that every acquire of it asks for
	timeout time.Duration // of one command

	there    bool      // granted, and no answer has said since that it is removed or gone
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
	inTime    bool      // one was tried before the deadline
	named     bool      // an attempt of ours named it: that may have done it as well
	maybe     bool      // one that was sent before the deadline had no answer: it may have done it
	confirmed bool      // an answer has told that the field is gone, or a drop
	ours      bool      // and that it had been ours until it was released
}

// unanswered notes an acquire that was sent at sentAt and may still land.
func (f *field) unanswered(sentAt time.Time) { f.open, f.lastSent = f.open+1, sentAt }

// granted notes that an acquire was answered with a grant. found: a repeat met the
// field, so that one of the open acquires has landed.
func (f *field) granted(found bool) {
	f.there = true
	if found {
		f.open--
	}
}

// extending notes an Extend that is about to be sent: answered or not, it may keep
// the field for d from its arrival.
func (f *field) extending(now time.Time, d time.Duration) {
	f.until = latest(f.until, now.Add(d+f.timeout))
}

// burn gives the field up: it is removed at from, or earlier if that was known
// before. A renewal under way may give what is there one more lease.
func (f *field) burn(now, from time.Time) {
	f.until = latest(f.until, latest(now, from).Add(f.lease+f.timeout))
	if !f.burnt || from.Before(f.from) {
		f.from = from
	}
	f.burnt, f.tried = true, false
}

// letGo notes that nobody works under the grant any more: the field is removed at
// once. It tells whether something may be left to remove.
func (f *field) letGo(now time.Time) bool {
	f.burn(now, now)
	_, left := f.left(now)
	return left
}

// lost notes that the lease is lost, and tells whether the field is burnt by that.
// over is when the lease that Redis has confirmed ends, and with it all that the
// owner could count on. Otherwise the field is left to its lease.
func (f *field) lost(why LossReason, now, over time.Time, renewed, doomed bool) bool {
	switch {
	case doomed:
		over = now // its owner provably cannot run
	case why == LostDeadline && renewed:
		// The key may live on, by a renewal whose answer was lost. Until the confirmed
		// lease is over the margin is the holder's time to react.
	case f.open == 0:
		return false
	case why == LostGone, why == LostForced:
		over = now // the key is free: an open acquire may land at any moment
	}
	f.burn(now, over)
	return true
}

// released notes the answer to a release that was sent at sent.
func (f *field) released(o lettucecompat.Outcome, marked bool, sent time.Time) {
	f.tried = true
	inTime := sent.Before(f.deadline)
	f.inTime = f.inTime || inTime
	switch o {
	case lettucecompat.OutcomeOK:
		// With acquires open it may have been one of those that was removed.
		f.conclude(inTime || f.maybe || f.open == 0)
		if !f.there && !marked && f.open > 0 { // a mark of our own is none of them
			f.open--
		}
		f.there = false
	case lettucecompat.OutcomeGone:
		// If all before it had no effect, somebody else has removed it.
		f.conclude(f.maybe || f.named && f.inTime)
		f.there = false
	case lettucecompat.OutcomeUnknown:
		f.maybe = f.maybe || inTime
	}
}

// dropped notes that a granted attempt has removed the field. It can't tell whether
// the field was there.
func (f *field) dropped() {
	f.conclude(f.inTime)
	f.there, f.tried = false, true
}

// conclude notes the first answer that tells how the lock has ended.
func (f *field) conclude(ours bool) {
	if !f.confirmed {
		f.confirmed, f.ours = true, ours
	}
}

// left tells whether there is something to remove still, and since when that may be
// done.
func (f *field) left(now time.Time) (since time.Time, left bool) {
	left = (f.there || f.open > 0) && (!f.tried || now.Before(f.end()))
	return f.from, left
}

// end is when every lease that the field may have got has ended.
func (f *field) end() time.Time {
	var end time.Time
	if f.there {
		end = f.until
	}
	if f.open > 0 {
		end = latest(end, f.lastSent.Add(f.lease+f.timeout))
	}
	return end
}

// droppable tells whether an attempt of this process may remove the field in its
// own script.
func (f *field) droppable(now time.Time) bool {
	since, left := f.left(now)
	return f.burnt && left && !now.Before(latest(since, f.keep))
}

// keepFor is how long a release that is sent now leaves the key taken.
func (f *field) keepFor(now time.Time) time.Duration { return max(f.keep.Sub(now), 0) }

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
