package lock

import (
	"context"
	"errors"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// This file is how the lock comes to an owner, and goes from one, out of turn.
//
// An owner that takes the lock waits in front of all others of its process. Its process gets a place in the line, as
// for any owner, and one command then ends the present holder and gives the lock to that place (lua/force.lua). The
// effect is that of a call: if the answer is lost, the next confirmation of the place settles it. The unit has a number
// of its own, which no other command uses: so an owner knows whether it has what it has taken.

// Taking is how an owner takes the lock.
type Taking struct {
	From  string // the field that it is taken from, or nothing is; "": from any holder
	Token int64  // with From: the owner has this one

	spoil context.CancelCauseFunc // ends its wait
}

// resumes reports whether o takes the lock from a field: what that leaves behind is its own only.
func (o *Owner) resumes() bool { t := o.more().Takes; return t != nil && t.From != "" }

// ErrNotThere is why an owner has not come in that takes the lock from a field: that does not have it.
var ErrNotThere = errors.New("the lock is not held by that field")

// bequest is to whom an owner leaves the lock.
type bequest struct {
	field string
	until Moment
}

// Bequeath makes the last exit of o leave the lock to field for d, in place of releasing it. It is called before that.
func (o *Owner) Bequeath(field string, d time.Duration) {
	more := *o.more()
	more.bequest = &bequest{field, o.g.k.l.now() + d}
	o.extra.Store(&more)
}

// bequestLocked returns to whom g is left when it is given back, nil where that is nobody. What was taken from a field,
// and nobody has owned, goes back to that.
func (g *Held) bequestLocked() *bequest {
	switch taken := g.k.taken; {
	case g.by != nil:
		return g.by.more().bequest
	case taken.unit == g.n && g.Owner() == nil:
		return &bequest{field: taken.from, until: g.mark}
	}
	return nil
}

// leavesLocked reports whether the owner of g has left it to a field whose time is not over.
func (g *Held) leavesLocked() bool {
	b := g.bequestLocked()
	return g.by != nil && b != nil && g.k.l.now() < b.until
}

// taker returns the first waiter, if it takes the lock.
func (k *Key) taker() *Owner {
	if f, waits := k.q.Front(); waits {
		if o, is := f.First.Note.(*Owner); is && o.more().Takes != nil {
			return o
		}
	}
	return nil
}

// oust takes the lock from the owner that this process has for the first waiter, if that takes it. One that came by Lock
// keeps it until it unlocks: a loss would give it to another process. Who resumes is refused: that owner came after absent.
func (k *Key) oust() {
	switch t, o := k.taker(), k.Owner(); {
	case t == nil || o == nil || o.Err() != nil:
	case t.resumes():
		t.more().Takes.spoil(ErrNotThere)
	case o.Kind.CanNotify():
		k.l.Forced(o.g.n)
	}
}

// absent returns nil once Redis has said that it has no lock of an owner of this process, or there is no owner, and
// ErrNotThere if it has. The message that such a lock was taken may be lost.
func (k *Key) absent(ctx context.Context) error {
	for tries := 0; ; tries++ {
		o := k.Owner()
		if o == nil || o.Err() != nil {
			return nil
		}
		switch o.g.verify(ctx) {
		case lettucecompat.OutcomeOK:
			return ErrNotThere
		case lettucecompat.OutcomeGone:
			return nil
		}
		select {
		case <-time.After(pause() << min(tries, 6)):
		case <-ctx.Done():
			return errUnanswered
		}
	}
}

// seizes reports whether the first waiter takes the lock from its holder, whatever that is.
func (k *Key) seizes() bool { o := k.taker(); return o != nil && !o.resumes() }

// takeOver takes the lock for the first waiter, if that takes it. n is the statement that has just confirmed its place. left
// is the time to live of what Redis has now, which a unit that is taken from a field keeps.
func (k *Key) takeOver(n uint64, left time.Duration) {
	o := k.taker()
	if o == nil {
		return
	}
	t := o.more().Takes
	k.mu.Lock()
	if k.talk.have != Place || k.talk.last != n { // a late answer: the newest counts
		k.mu.Unlock()
		return
	}
	unit := k.l.number.Add(1)
	lasts := k.times.Call
	if t.From != "" {
		k.taken, lasts = taken{unit, t.From}, max(lasts, left)
	}
	k.taking++
	k.talk = k.talk.Lasts(k.l.now() + lasts)
	k.mu.Unlock()
	r := k.l.wire.Take(context.Background(), lettucecompat.Taking{
		Key: k.name, From: t.From, Place: n, Unit: unit, Terms: &k.set.Wire,
	}, k.set.Timeout)
	k.mu.Lock()
	k.taking--
	k.unsure = r.Outcome == lettucecompat.OutcomeUnknown && t.From != ""
	k.mu.Unlock()
	k.report(r.Err)
	switch failed := failure(r.Outcome, r.Err); {
	case r.Outcome == lettucecompat.OutcomeOK:
		if r.Contended {
			k.noteContended(unit)
		}
		k.hear(News{Word: Called, N: n, Unit: unit, Lease: r.Lease, Token: r.Token})
		return
	case r.Outcome == lettucecompat.OutcomeGone:
		t.spoil(ErrNotThere)
	case r.Outcome == lettucecompat.OutcomeFailed && failed.Permanent:
		t.spoil(failed)
	}
	k.hear(News{Word: Retry, Lease: pause()}) // the place's confirmation settles it
}

// taken is a unit that was taken from a field, or may have been. Only who takes the lock from that may own it.
type taken struct {
	unit uint64
	from string
}

// mistakenLocked says why o must not own the grant g: it is not what o has taken, or somebody else has taken it.
func (k *Key) mistakenLocked(o *Owner, g *Held) error {
	var wants, has string
	if o.resumes() {
		wants = o.more().Takes.From
	}
	if k.taken.unit == g.n {
		has = k.taken.from
	}
	switch {
	case has == wants:
		return nil
	case wants != "":
		return ErrNotThere
	}
	return errAgain
}
