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
// for any owner, and one command then ends the present holder and gives the lock to that place (lua/force.lua). Its
// number is that of the unit, so an owner knows whether it has what it has taken. If the answer is lost, the next
// confirmation of the place settles it. Nobody waits in front before Redis was asked whether the ticket is there, and nothing
// is taken from an owner of this process before Redis has answered: see mayTake.

// Taking is how an owner takes the lock.
type Taking struct {
	From  string // the field that it is taken from, or nothing is; "": from any holder
	Token int64  // with From: the owner has this one

	ctx   context.Context // of its wait
	spoil context.CancelCauseFunc
	after uint64 // the last command before it

	// Guarded by Key.mu.
	tries     int    // so many commands in a row that take the lock had no usable answer
	notBefore Moment // no further one is sent before
	until     Moment // Redis keeps what was taken until then, and longer if somebody owns it
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
	switch {
	case g.by != nil:
		return g.by.more().bequest
	case g.unownedLocked():
		return &bequest{field: g.from.From, until: g.from.until}
	}
	return nil
}

// leavesLocked reports whether the owner of g has left it to a field whose time is not over. MinHold prolongs that.
func (g *Held) leavesLocked() bool {
	b := g.bequestLocked()
	return g.by != nil && b != nil && g.k.l.now() < max(b.until, g.keptUntil())
}

// unownedLocked reports whether nobody owns g, which was taken from a field. It is given back by name even if it is lost:
// nobody relies on it, and what the field had must go back to it.
func (g *Held) unownedLocked() bool { return g.from != nil && g.Owner() == nil }

// taker returns how the first waiter takes the lock, nil if it waits for its turn.
func (k *Key) taker() *Taking {
	if o, is := k.q.FirstNote().(*Owner); is {
		return o.more().Takes
	}
	return nil
}

// oust takes the lock from the owner that this process has for the first waiter, if that takes it, once Redis has answered. One
// that came by Lock keeps it until it unlocks: a loss would give it to another process. Who resumes is refused if Redis says
// that the ticket is not there.
func (k *Key) oust() {
	t, o := k.taker(), k.Owner()
	if t == nil || o == nil || o.Err() != nil || t.From == "" && !o.Kind.CanNotify() {
		return
	}
	go k.takeFrom(o, t)
}

// takeFrom ends o for t, which Seizes, once Redis has answered, or refuses t.
func (k *Key) takeFrom(o *Owner, t *Taking) {
	switch err := k.mayTake(t.ctx, t); {
	case err != nil:
		t.spoil(err)
	case t.From == "":
		o.g.Revoke(o, renewal.ReasonForced, false, true)
	}
}

// mayTake returns after an answer of Redis that lets t take what it wants, or says why it must not: ErrNotThere if its ticket is
// not there, ErrClosed, or errUnanswered if ctx ends before Redis has said anything.
func (k *Key) mayTake(ctx context.Context, t *Taking) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(k.l.open, func() { end(ErrClosed) })()
	if k.l.closing.Load() {
		return ErrClosed
	}
	for tries := 0; ; tries++ {
		o := k.Owner()
		if o != nil && o.Err() != nil {
			o = nil
		}
		there, err := k.ticket(ctx, t)
		switch {
		case there == lettucecompat.OutcomeGone:
			return ErrNotThere
		case there == lettucecompat.OutcomeFailed && lettucecompat.Permanent(err):
			return failure(there, err)
		case there != lettucecompat.OutcomeOK:
		case o == nil:
			return nil
		default: // beside the ticket Redis does not have the lock of an owner here, who may not have heard of that
			if found := o.g.verify(ctx); found == lettucecompat.OutcomeGone || found == lettucecompat.OutcomeOK && t.From == "" {
				return nil
			}
		}
		select {
		case <-time.After(pause() << min(tries, 6)):
		case <-ctx.Done():
			if k.l.closing.Load() {
				return ErrClosed
			}
			return errUnanswered
		}
	}
}

// ticket asks Redis whether the field is there that t takes the lock from. OutcomeOK without a question if it takes it from
// anybody, or if this process may have taken it already for one who has not come in. OutcomeUnknown if it is not there, and this
// process was leaving the lock to it, or has taken it meanwhile for one who may give it back.
func (k *Key) ticket(ctx context.Context, t *Taking) (lettucecompat.Outcome, error) {
	if t.From == "" || k.brings(t.From) {
		return lettucecompat.OutcomeOK, nil
	}
	leaves := k.leavesTo(t.From)
	r := k.l.wire.Status(ctx, []lettucecompat.Query{{Key: k.name, Field: t.From}}, k.set.Timeout)[0]
	if ctx.Err() == nil {
		k.report(r.Err)
	}
	if r.Outcome == lettucecompat.OutcomeGone && (leaves || k.brings(t.From)) {
		return lettucecompat.OutcomeUnknown, nil
	}
	return r.Outcome, r.Err
}

// leavesTo reports whether an owner of this process has left the lock to the field, and no answer shows yet what became of that.
func (k *Key) leavesTo(field string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	g := k.cur.Load()
	if g == nil || g.by == nil {
		return false
	}
	b := g.by.more().bequest
	return b != nil && b.field == field && (k.conv.Grant.Record == g.n || k.openLocked() == g.n)
}

// brings reports whether this process may have taken the lock from the field, and nobody owns it yet.
func (k *Key) brings(field string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.takes == nil || k.takes.From != field || k.took == 0 {
		return false
	}
	if g := k.cur.Load(); g != nil && g.n == k.took && !g.unownedLocked() {
		return false
	}
	return k.conv.Grant.Record == k.took || k.conv.OpenRecord() == k.took
}

// waitsForRedis reports whether o, which takes the lock, has waited for nothing but Redis: not for a goroutine of this process
// that came by Lock. Such a one keeps the lock from a Seize, and from anybody one that it has lost.
func (k *Key) waitsForRedis(o *Owner) bool {
	here := k.Owner()
	return here == nil || here.Err() == nil && (o.resumes() || here.Kind.CanNotify())
}

// takeOver sends that the lock is taken.
func (k *Key) takeOver(cmd *conversation.Command) (conversation.Event, lettucecompat.Answer) {
	k.mu.Lock()
	t, ours := k.takes, k.took == cmd.N
	k.mu.Unlock()
	if !ours { // a call has overtaken it, and somebody else takes the lock: it is not sent
		return conversation.Event{Kind: conversation.Failed, N: cmd.N}, lettucecompat.Answer{Outcome: lettucecompat.OutcomeFailed}
	}
	a := k.l.wire.Take(context.Background(), lettucecompat.Taking{
		Key: k.name, From: t.From, Place: cmd.Place, Unit: cmd.N, Terms: &k.set.Wire,
	}, k.set.Timeout)
	e := conversation.Event{Kind: conversation.Failed, N: cmd.N, Record: a.Unit, Units: a.Units, Lease: a.TTL, Token: a.Token, Contended: a.Contended, After: pause()}
	defer func() {
		if e.Kind != conversation.Has {
			k.mu.Lock()
			k.failedLocked(t, e.Kind)
			k.mu.Unlock()
		}
	}()
	switch failed := failure(a.Outcome, a.Err); {
	case a.Units > 0:
		e.Kind = conversation.Has
	case failed.Unknown:
		e.Kind = conversation.Silence
	case a.Word == lettucecompat.WordGone:
		t.spoil(ErrNotThere)
	case failed.Permanent:
		t.spoil(failed)
	}
	return e, a
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
	case g.from == nil && t.From == "", g.from != nil && g.from.From == t.From:
		return nil
	case t.From != "" && g.n > t.after:
		return ErrNotThere
	}
	return errAgain
}
