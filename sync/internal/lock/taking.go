package lock

import (
	"context"
	"errors"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// This file is how the lock comes to an owner, and goes from one, out of turn.
//
// An owner that takes the lock waits in front of all others of its process. Its process gets a place in the line, as
// for any owner, and one statement then ends the present holder and gives the lock to that place (lua/force.lua). Its
// number is that of the unit, so an owner knows whether it has what it has taken. If the answer is lost, the next
// confirmation of the place settles it.

// Taking is how an owner takes the lock.
type Taking struct {
	From  string // the field that it is taken from, or nothing is; "": from any holder
	Token int64  // with From: the owner has this one

	ctx   context.Context // of its wait
	spoil context.CancelCauseFunc
	after uint64 // the last statement before it

	// Guarded by Key.mu.
	tries     int    // so many commands in a row that take the lock had no usable answer
	notBefore Moment // no further one is sent before
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

// fromLocked returns the field that g was taken from, "" if it was not. The next one is taken once g is over.
func (g *Held) fromLocked() string {
	if k := g.k; k.took == g.n {
		return k.takes.From
	}
	return ""
}

// bequestLocked returns to whom g is left when it is given back, nil where that is nobody. What was taken from a field,
// and nobody has owned, goes back to that.
func (g *Held) bequestLocked() *bequest {
	switch {
	case g.by != nil:
		return g.by.more().bequest
	case g.unownedLocked():
		return &bequest{field: g.fromLocked(), until: g.mark}
	}
	return nil
}

// leavesLocked reports whether the owner of g has left it to a field whose time is not over. MinHold prolongs that.
func (g *Held) leavesLocked() bool {
	b := g.bequestLocked()
	return g.by != nil && b != nil && g.k.l.now() < max(b.until, g.since+g.k.set.MinHold)
}

// unownedLocked reports whether nobody owns g, which was taken from a field. It is given back by name even if it is lost:
// nobody relies on it, and what the field had must go back to it.
func (g *Held) unownedLocked() bool { return g.fromLocked() != "" && g.Owner() == nil }

// taker returns how the first waiter takes the lock, nil if it waits for its turn.
func (k *Key) taker() *Taking {
	if f, waits := k.q.Front(); waits {
		if o, is := f.First.Note.(*Owner); is {
			return o.more().Takes
		}
	}
	return nil
}

// oust takes the lock from the owner that this process has for the first waiter, if that takes it. One that came by Lock
// keeps it until it unlocks: a loss would give it to another process. Who resumes is refused if Redis says that it has the
// lock of that owner: the message that such a lock was taken may be lost.
func (k *Key) oust() {
	switch t, o := k.taker(), k.Owner(); {
	case t == nil || o == nil || o.Err() != nil:
	case t.From != "":
		go func() {
			if err := k.mayResume(t.ctx); err != nil {
				t.spoil(err)
			}
		}()
	case o.Kind.CanNotify():
		o.g.Revoke(o, renewal.ReasonForced, false, true)
	}
}

// mayResume returns ErrNotThere if Redis says that it has the lock of an owner of this process, and errUnanswered if ctx ends
// before Redis has said anything.
func (k *Key) mayResume(ctx context.Context) error {
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

// takeOver sends that the lock is taken.
func (k *Key) takeOver(cmd *command) (conversation.Event, lettucecompat.Answer) {
	t := cmd.by
	r := k.l.wire.Take(context.Background(), lettucecompat.Taking{
		Key: k.name, From: t.From, Place: cmd.Since, Unit: cmd.N, Terms: &k.set.Wire,
	}, k.set.Timeout)
	e := conversation.Event{Kind: conversation.Failed, N: cmd.N, Record: cmd.N, After: pause()}
	defer func() {
		if e.Kind != conversation.Has {
			k.mu.Lock()
			k.failedLocked(t, e.Kind)
			k.mu.Unlock()
		}
	}()
	switch failed := failure(r.Outcome, r.Err); {
	case r.Outcome == lettucecompat.OutcomeOK:
		e.Kind, e.Units, e.Lease, e.Token = conversation.Has, 1, r.Lease, r.Token
		if r.Contended {
			k.noteContended(cmd.N)
		}
	case r.Outcome == lettucecompat.OutcomeUnknown:
		e.Kind = conversation.Silence
	case r.Outcome == lettucecompat.OutcomeGone:
		t.spoil(ErrNotThere)
	case failed.Permanent:
		t.spoil(failed)
	}
	return e, lettucecompat.Answer{Outcome: r.Outcome, Err: r.Err}
}

// failedLocked notes that a command that takes the lock had no usable answer. The next one comes immediately if the answer may
// be on its way, and after growing pauses if that, too, has none. That the place is confirmed in between does not end them.
func (k *Key) failedLocked(t *Taking, kind conversation.Kind) {
	if kind == conversation.Failed {
		t.tries = max(t.tries, 1)
	}
	t.notBefore = k.l.now() + pause()*time.Duration((1<<min(t.tries, 6))-1)
	t.tries++
}

// mistakenLocked says why o must not own the grant g: it is not what o has taken, or somebody else has taken it. Who resumes
// is refused if Redis has made the grant since then, which it does not beside the ticket.
func (k *Key) mistakenLocked(o *Owner, g *Held) error {
	var t Taking
	if o.resumes() {
		t = *o.more().Takes
	}
	switch {
	case g.fromLocked() == t.From:
		return nil
	case t.From != "" && g.n > t.after:
		return ErrNotThere
	}
	return errAgain
}
