package anteroom

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/observe"
)

// Ticket represents a lock that Hold.Detach has left behind, until Mutex.Resume takes it up again, once. Anyone with the
// ticket can do that: it is a secret. Formatting and logging it show "(ticket)", unless it is in an unexported field of
// what is formatted; a conversion to string, databases and encoding/json, by which slog's JSONHandler logs structs, too, have
// the text itself, which is printable ASCII without spaces. Redis and Inspect know it by a hash.
type Ticket string

const ticketText = "(ticket)"

// Format writes "(ticket)" for every verb, and LogValue returns it.
func (Ticket) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, ticketText) }
func (Ticket) LogValue() slog.Value       { return slog.StringValue(ticketText) }

// newTicket makes a ticket: number of the grant, token, secret.
func newTicket(grant uint64, token int64) Ticket {
	var secret [16]byte
	_, _ = rand.Read(secret[:]) // never fails
	return Ticket(fmt.Sprintf("%d.%d.%s", grant, token, base64.RawURLEncoding.EncodeToString(secret[:])))
}

// parts returns the numbers in a ticket; false where it is none.
func (t Ticket) parts() (grant uint64, token int64, ok bool) {
	parts := strings.SplitN(string(t), ".", 3)
	if len(parts) != 3 || len(parts[2]) != 22 {
		return 0, 0, false
	}
	grant, err1 := strconv.ParseUint(parts[0], 10, 64)
	token, err2 := strconv.ParseInt(parts[1], 10, 64)
	return grant, token, err1 == nil && err2 == nil
}

// Detach ends the hold here and leaves the lock to the Ticket for d, in which Mutex.Resume takes it up again: in another
// process, or after a restart. The lock stays taken meanwhile, nobody renews it, and the context of the Hold ends. The
// time counts from now, and so long the lock stays taken also if the resumer dies immediately. d is from 100 ms to 24 hours;
// what is left of MinHold counts instead where that is more.
//
// It waits for Redis as Release does, and like Release it always ends the hold, but for ErrInUse, which says that there
// are other Holds in or around this one: the Release of each has to have returned before. With ErrLost the ticket is empty.
//
// With ErrUnavailable the command continues in the background, and the lock is left to the ticket or lost. Resume by this Manager
// waits until that is known. Another one may say ErrNotHeld too early, until LeaseTime + CommandTimeout have passed: a ticket
// that is dropped then may keep the lock taken for d.
func (h *Hold) Detach(ctx context.Context, d time.Duration) (Ticket, error) {
	const op = "detach"
	if err := within("d", d, minLease, maxLease, ""); err != nil {
		return "", newError(op, h.Key(), err)
	}
	if h == nil {
		return "", errNilHold
	}
	t := h.t
	if t.owner.Share() != nil {
		return "", newError(op, h.Key(), errNoTicket)
	}
	ticket := newTicket(t.owner.Held().Number(), t.owner.Token())
	t.mu.Lock()
	switch {
	case h.sentinel == nil:
		t.mu.Unlock()
		return "", h.releasedError()
	case t.holds > 1, t.owner.Entered() > 1: // the Release of an inner one may have begun only
		t.mu.Unlock()
		return "", newError(op, h.Key(), ErrInUse)
	}
	t.owner.Bequeath(t.m.cfg.Dialect.wire().TicketField(string(ticket), t.owner.Held().Number()), d)
	s, held := t.removeLocked(h)
	t.mu.Unlock()
	err := h.ended(op, ctx, s, held)
	if e, is := err.(*Error); is && e.Outcome == observe.OutcomeLost { //nolint:errorlint // as exit gives it
		ticket = ""
	}
	return ticket, err
}

// Resume takes up the hold that Detach has left to the ticket, with its token. It asks Redis for the ticket first, and does not
// wait for anybody but a goroutine of this process that has lost the lock and not unlocked it (ErrNotAcquired if ctx ends
// before that does; the ticket is as it was). It returns ErrNotHeld if the ticket is worth nothing, because its time is over,
// it was resumed before, or the lock was taken by Seize or ForceRelease. ErrClosed and ErrConfig leave the ticket as it was, and
// so does ErrUnavailable, if Redis did not serve until ctx ended. But if ctx has ended while Resume took the lock, the ticket is
// refused elsewhere (ErrNotHeld) until Redis has answered this process and it has given the ticket back, without its note. A
// Redis that answers nothing for half a minute, or a Close meanwhile, uses the ticket up, and its lock stays taken for its time
// at most.
//
// The lock is as Acquire with the same options returns it: without an answer it is relied on for one lease, and not for the time
// of the ticket. Goroutines of this process that wait for it wait on.
func (mu *Mutex) Resume(ctx context.Context, t Ticket, opts ...AcquireOption) (*Hold, error) {
	const op = "resume"
	if err := mu.unusable(op); err != nil {
		return nil, err
	}
	grant, token, ok := t.parts()
	if !ok {
		return nil, newError(op, mu.key, joined(ErrNotHeld, ownText("this is no ticket")))
	}
	field := mu.m.cfg.Dialect.wire().TicketField(string(t), grant)
	return mu.acquire(ctx, op, queue.Refusable, 0, &lock.Taking{From: field, Token: token}, opts)
}

// Seize takes the lock from any holder, ahead of all who wait, and returns as Acquire does. It is for operators and
// for work that must not wait for a holder which hangs: exclusion is broken on purpose. The holder loses the lock with
// LostForced and is notified immediately, which does not stop its work; only a fencing token keeps that from doing
// harm. A goroutine of this process that has the lock by Lock keeps it until it unlocks; a Hold of this process keeps it until
// Redis has answered, so that a Seize which fails since Redis is away takes nothing. Until the holder's process has heard of
// that, its other goroutines may still come in by a hand-off or a linger; they are notified with it.
func (mu *Mutex) Seize(ctx context.Context, opts ...AcquireOption) (*Hold, error) {
	return mu.hold(ctx, "seize", queue.Refusable, &lock.Taking{}, opts)
}
