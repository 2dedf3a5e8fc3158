package anteroom

import (
	"context"
	"errors"

	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/observe"
)

// enter brings o, the caller of r, in, or returns an *Error.
func (m *Manager) enter(ctx context.Context, k *lock.Key, r *request, o *lock.Owner) error {
	err := ctx.Err()
	if err == nil {
		err = k.Acquire(ctx, o, r.lease)
	}
	if err != nil {
		err := newError(r.op, k.Name(), notGranted(ctx, err))
		if errors.Is(err, ErrNotAcquired) {
			err.Holder, err.Note = heldBy(k)
		}
		m.notAcquired(k.Name(), r, err)
		return err
	}
	if m.reports.Observed() {
		m.reports.Acquired(&r.attempt, o)
	}
	return nil
}

// heldBy returns the field that has the lock, and its note, as far as this process has heard.
func heldBy(k *lock.Key) (field, note string) {
	if o := ownerOf(k); o != nil {
		return o.Held().Field(), o.Note()
	}
	if a := k.Answer(); a != nil {
		return a.Holder, a.Note
	}
	return "", ""
}

// notEntered counts a failure and makes it an *Error.
func (m *Manager) notEntered(key string, r *request, err error) error {
	m.notAcquired(key, r, err)
	return newError(r.op, key, err)
}

// acquiring reports that the caller of r begins, and returns the context that takes the place of ctx.
func (m *Manager) acquiring(ctx context.Context, key string, r *request) context.Context {
	if !m.reports.Observed() {
		return ctx
	}
	cfg := &r.settings.cfg
	start := observe.AcquireStart{Key: key, Class: cfg.Name, Op: r.op, Fair: cfg.Fair}
	start.Lock = !r.kind.CanNotify() && (r.settings.capacity <= 0 || r.kind.IsTry()) // Weighted.Acquire has a context
	ctx, r.attempt = m.reports.Acquiring(ctx, start)
	return ctx
}

// notAcquired reports that the caller of r has not come in.
func (m *Manager) notAcquired(key string, r *request, err error) {
	if !m.reports.Observed() {
		return
	}
	outcome := outcomeOf(err)
	if own, ok := errors.AsType[*Error](err); ok {
		err = own.Err // its own text begins with the key
	}
	m.reports.NotAcquired(&r.attempt, key, outcome, err)
}

// reentered reports that the caller of r, who is o already, has entered again, or why it has not.
func (m *Manager) reentered(r *request, o *lock.Owner, err error) {
	if err != nil {
		m.notAcquired(o.Name(), r, err)
	} else {
		m.reports.Reentered(&r.attempt, o)
	}
}
