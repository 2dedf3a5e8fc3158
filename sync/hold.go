package anteroom

import (
	"context"
	"runtime"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/observe"
)

// Hold is one possession of a lock, from Acquire or TryAcquire until Release. It
// is bound to no goroutine: pass it on as you like. A Hold is single-use; all
// methods are safe for concurrent use. A nil Hold, which comes with an error, is one that
// does not hold: its Err wraps ErrNotHeld.
//
// A Hold that becomes unreachable without a Release, together with every context
// from it, is reported as EventAbandoned; see Recovery for what else happens. One of a
// fixed lease is not, since it ends by itself. As long as anything is registered with its
// context, somebody has the Hold; see Context.
type Hold struct {
	t        *tenure
	values   context.Context // the acquiring context, whose end does not matter
	sentinel *sentinel       // nil once it is released; guarded by tenure.mu
	ctx      *holdContext    // on demand; guarded by tenure.mu
	writes   bool            // an RWMutex; guarded by tenure.mu
}

// Acquire waits until it holds the lock or ctx ends. ctx bounds the waiting only:
// the hold outlives it, and Hold.Context keeps its values but not its end.
//
// On failure the error is an *Error, nothing is held, and a caller whose context
// ends is free immediately, even if Redis hangs: ErrNotAcquired if another holds the
// lock, ErrUnavailable if Redis did not serve (which is retried
// until ctx ends), ErrConfig immediately for a key of another type, a missing
// permission or a different configuration of a live key, ErrClosed.
//
// With a context that carries a live Hold of this lock (Hold.Context, Do) it
// enters again without asking Redis; with a lost
// one it returns ErrLost. The inner Hold has the lease and the token of the outer one:
// Lease is ErrConfig there, and Wait has nothing to wait for.
func (mu *Mutex) Acquire(ctx context.Context, opts ...AcquireOption) (*Hold, error) {
	return mu.hold(ctx, "acquire", queue.Refusable, nil, opts)
}

// TryAcquire is Acquire that does not wait: it returns ErrNotAcquired if another
// goroutine or process holds the lock or waits for it, or if the last turn has left it for a
// moment, at most a second, to programs that listen for releases and know no line. It returns
// so without asking Redis where another goroutine of this Manager owns the lock, waits for
// it, or is acquiring it. A refusal leaves nothing of this call in Redis. Where
// it asks Redis it takes up to CommandTimeout, as much again while the release before it
// has no answer, with Lease, Note or Replicas up to twice as much and ReplicaTimeout more, or
// until ctx ends, and returns ErrUnavailable after that. Wait is ErrConfig.
func (mu *Mutex) TryAcquire(ctx context.Context, opts ...AcquireOption) (*Hold, error) {
	return mu.hold(ctx, "try acquire", queue.Try|queue.Refusable, nil, opts)
}

func (mu *Mutex) hold(ctx context.Context, op string, kind queue.Kind, takes *lock.Taking, opts []AcquireOption) (*Hold, error) {
	if err := mu.unusable(op); err != nil {
		return nil, err
	}
	return mu.acquire(ctx, op, kind, 0, takes, opts)
}

// Release ends the hold. It always acts, and after it was called nothing is renewed for
// this hold. The first call counts; further ones return ErrNotHeld.
//
// It waits for Redis for two CommandTimeouts at most: the first answer takes up to one,
// and if that does not confirm the release, repetitions get the time that is left. A ctx
// that ends meanwhile ends the wait, not the release. One that has ended before, or ends
// with this hold as Hold.Context does, is no error by itself: the release is sent, and the
// first answer to it awaited, since only that says whether the lock had lasted.
//
// It returns nil when the lock is released, handed to the next waiter of this
// process, kept for one (Linger; what nobody uses of an RWMutex or a Semaphore, for
// 10 ms), or still held by an outer Hold of the same tenure. Otherwise an
// *Error: ErrLost if the lock had been lost before (the work done under it may
// have run beside another holder's); ErrUnavailable if the release
// is not confirmed: it continues in the background until the lease has passed, and
// nobody else can be harmed by it. EventReleaseFailed and EventReleaseGivenUp report
// what becomes of it.
func (h *Hold) Release(ctx context.Context) error {
	first, err := h.exit("release", ctx)
	if !first {
		return &Error{Op: "release", Key: h.Key(), Outcome: observe.OutcomeReleased, Err: ErrNotHeld}
	}
	return err
}

// exit ends the unit that h is, where this is the first call for h. See Manager.exit.
func (h *Hold) exit(op string, wait context.Context) (first bool, err error) {
	if h == nil {
		return false, nil
	}
	s, ctx := h.t.remove(h)
	if s == nil {
		return false, nil
	}
	return true, h.ended(op, wait, s, ctx)
}

// ended ends the unit of h, which remove has taken out.
func (h *Hold) ended(op string, wait context.Context, s *sentinel, ctx *holdContext) error {
	t := h.t
	if ctx != nil {
		ctx.end(h.releasedError()) // before anybody else comes in
	}
	if t.owner.Share() != nil && h.writing() {
		t.owner.EndWriting()
	}
	err := t.m.exit(op, &t.owner, wait, h.values)
	runtime.KeepAlive(s) // so far reports may have asked for its values
	return err
}

// errReleased is why a released hold is not held, and errNilHold why a nil one is not.
var (
	errReleased = joined(ErrNotHeld, ownText("it was released"))
	errNilHold  = &Error{Op: "hold", Outcome: observe.OutcomeFailed, Err: joined(ErrNotHeld, ownText("the Hold is nil"))}
)

// releasedError is the *Error of a hold that was released.
func (h *Hold) releasedError() error {
	return &Error{Op: "hold", Key: h.Key(), Outcome: observe.OutcomeReleased, Err: errReleased}
}

// Key returns the lock's key.
func (h *Hold) Key() string {
	if h == nil {
		return ""
	}
	return h.t.owner.Name()
}

// Holder returns the field of this hold in Redis,
// "<client id>:<n>"; holds that were handed on within a process share it. Of an RWMutex and a Semaphore it is the client id alone,
// which all holds of a process share.
func (h *Hold) Holder() string {
	if h == nil {
		return ""
	}
	return h.t.owner.Held().Field()
}

// Since returns when the hold began.
func (h *Hold) Since() time.Time {
	if h == nil {
		return time.Time{}
	}
	return h.t.m.moment(h.t.owner.Since())
}

// Err returns nil while the lock is held, an *Error that wraps ErrLost once it is
// lost, and one that wraps ErrNotHeld after Release. It compares with the clock
// when asked, so it is right also after this process was stopped for a while.
func (h *Hold) Err() error {
	if h == nil {
		return errNilHold
	}
	released, loss := h.check("hold")
	if released {
		return h.releasedError()
	}
	if loss != nil {
		h.t.end(loss) // which the clock may have shown before anybody else has noticed
	}
	return loss
}

// Held reports whether Err returns nil.
func (h *Hold) Held() bool { return h.Err() == nil }

// Token returns the fencing token of this hold, which is larger than that of every
// hold before it, so that a resource which has seen a later one can refuse this one.
// Inner holds have the token of the outer one.
//
// ok is false without LockConfig.Fencing: there is no token then, and 0 must not go to
// a resource, which could not distinguish it from one. A token does not change and does not
// end with the lock: also after a loss or Release it is the one with which the work was
// begun, and whether it still counts is for the resource to decide. Err and Held say
// what this process knows of that.
func (h *Hold) Token() (token int64, ok bool) {
	if h == nil {
		return 0, false
	}
	token = h.t.owner.Token()
	return token, token != 0
}

// Deadline returns the moment up to which the lock can be relied on without a
// further renewal: the end of the lease less the margin. Renewals move it on.
func (h *Hold) Deadline() time.Time {
	if h == nil {
		return time.Time{}
	}
	return h.t.owner.Deadline()
}

// TTL returns how long it is until Deadline, 0 once the lock is not held any more.
func (h *Hold) TTL() time.Duration {
	if h.Err() != nil {
		return 0
	}
	return max(time.Until(h.Deadline()), 0)
}

// Extend makes the lease last at least d from now on, in Redis too, and returns
// nil when Redis has confirmed that; Deadline is then d less the margin after the command
// was sent, or later.
// It is for fixed leases: a renewed lease does not need it. It never shortens a lease. ctx bounds the wait; on ErrUnavailable
// the deadline stays where it was, though Redis may keep the key
// longer; on ErrLost the lock is gone. d is from 100 ms to 24 hours. A lock with more than
// its lease is not handed on within the process: the next owner has a lease of its own. The margin stays that of the
// lease with which the hold began: if d is much longer, begin with a Margin that covers what the
// clocks may drift apart within d.
func (h *Hold) Extend(ctx context.Context, d time.Duration) error {
	const op = "extend"
	if err := within("d", d, minLease, maxLease, ""); err != nil {
		return newError(op, h.Key(), err)
	}
	if err := h.Err(); err != nil {
		return err
	}
	if h.t.owner.Share() != nil {
		return newError(op, h.Key(), errUnitsLease)
	}
	r := h.t.owner.Extend(ctx, d)
	switch r.Outcome {
	case lettucecompat.OutcomeOK:
		return h.Err()
	case lettucecompat.OutcomeGone:
		if released, _ := h.check(op); released {
			return h.releasedError()
		}
		l := *h.t.owner.Held().LossOr(renewal.ReasonGone)
		if l.Reason == renewal.ReasonGone {
			l.Err = r.Err
		}
		return h.t.m.lossError(op, h.Key(), &l)
	case lettucecompat.OutcomeUnknown:
		return newError(op, h.Key(), joined(ErrUnknown, r.Err))
	}
	return newError(op, h.Key(), joined(ErrUnavailable, r.Err))
}
