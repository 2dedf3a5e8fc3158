package report

import (
	"context"
	"time"

	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/observe"
)

// This file reports each operation to an Observer and a Tracer.

// Attempt is one caller's way in, as far as it is reported. The zero value is one that nobody observes.
type Attempt struct {
	class string
	began time.Duration
	end   func(observe.AcquireEnd) // of a Tracer; nil where there is no span
}

// Acquiring reports that a caller begins, and returns the context that takes the place of ctx.
func (p *Reports) Acquiring(ctx context.Context, a observe.AcquireStart) (context.Context, Attempt) {
	at := Attempt{class: a.Class, began: p.leases.Glance()}
	if start := p.tracer.StartAcquire; start != nil {
		ctx, at.end = start(ctx, a)
	}
	return ctx, at
}

// Acquired reports that the caller is o now.
func (p *Reports) Acquired(a *Attempt, o *lock.Owner) {
	outcome := observe.OutcomeGranted
	if o.HandOffs() > 0 {
		outcome = observe.OutcomeHandedOff
	}
	p.in(a, outcome, o, p.leases.Glance()-a.began)
}

// AcquiredUnnamed reports that the caller has units of g, and that nobody will know it by name. Its release is not
// reported, nor are readers who find the gate open.
func (p *Reports) AcquiredUnnamed(a *Attempt, g *lock.Held) {
	p.to.Acquired(a.class, observe.OutcomeGranted, p.leases.Glance()-a.began)
	if a.end != nil {
		a.end(observe.AcquireEnd{Outcome: observe.OutcomeGranted, Holder: g.Field()})
	}
}

// Reentered reports that the caller, who is o already, has entered again.
func (p *Reports) Reentered(a *Attempt, o *lock.Owner) {
	if p.Observed() {
		p.in(a, observe.OutcomeNested, o, 0)
	}
}

func (p *Reports) in(a *Attempt, outcome observe.Outcome, o *lock.Owner, wait time.Duration) {
	p.to.Acquired(a.class, outcome, wait)
	if a.end != nil {
		a.end(observe.AcquireEnd{Outcome: outcome, HandOffs: o.HandOffs(), Holder: o.Held().Field()})
	}
}

// NotAcquired reports that the caller has not come in to key, and why.
func (p *Reports) NotAcquired(a *Attempt, key string, outcome observe.Outcome, why error) {
	if outcome == observe.OutcomeMistake {
		outcome = observe.OutcomeFailed
	}
	p.to.Acquired(a.class, outcome, p.leases.Glance()-a.began)
	if a.end != nil {
		a.end(observe.AcquireEnd{Outcome: outcome, Err: p.public(why, key)})
	}
}

// Releasing reports that a release begins of o, or of the hold with these values. ctx is nil where the caller has none.
// It returns what Released is to be given.
func (p *Reports) Releasing(op string, o *lock.Owner, ctx, values context.Context) (ended func(observe.Outcome, time.Duration, error)) {
	start := p.tracer.StartRelease
	if start == nil {
		return nil
	}
	set := o.Settings()
	r := observe.ReleaseStart{
		Key: o.Name(), Class: set.Class, Op: op, Fair: set.Fair, Lock: !o.Kind.CanNotify(), Acquired: context.WithoutCancel(values),
	}
	if ctx == nil {
		ctx = r.Acquired
	}
	end := start(ctx, r)
	if end == nil {
		return nil
	}
	return func(outcome observe.Outcome, held time.Duration, why error) {
		end(observe.ReleaseEnd{Outcome: outcome, Held: held, Err: p.public(why, r.Key)})
	}
}

// Released reports how one unit of an owner ended; outcome is "" where it was none.
func (p *Reports) Released(class string, outcome observe.Outcome, held time.Duration, why error, ended func(observe.Outcome, time.Duration, error)) {
	if outcome != "" {
		p.to.Released(class, outcome, held)
	}
	if ended != nil {
		ended(outcome, held, why)
	}
}

// public returns err with a text that names neither the key nor this client nor names.
func (p *Reports) public(err error, key string, names ...string) error {
	if err == nil {
		return nil
	}
	return publicError{err, p.cfg.Words(err, false, append(names, key, p.cfg.ClientID)...)}
}

// publicError is an error whose text has no name of a lock or a holder. What it is, errors.Is sees as before.
type publicError struct {
	error
	text string
}

func (e publicError) Error() string { return e.text }
func (e publicError) Unwrap() error { return e.error }
