package anteroom

import (
	"time"

	"github.com/anteroom/anteroom/queue"
)

// terms are what a caller asks of a grant, and from where. They are never changed: all
// callers of a Mutex share one, and the queue and a grant may refer to it for long.
type terms struct {
	lease    time.Duration
	period   time.Duration // between renewals; negative: a fixed lease
	margin   time.Duration
	callSite string // "" unless call sites are recorded
}

func (t *terms) fixed() bool { return t.period < 0 }

// sameLease reports whether a grant on these terms is as good as one on those of o.
func (t *terms) sameLease(o *terms) bool {
	return t == o || t.lease == o.lease && t.period == o.period && t.margin == o.margin
}

// from returns the same terms for a caller at callSite.
func (t *terms) from(callSite string) *terms {
	own := *t
	own.callSite = callSite
	return &own
}

// request is one caller's way in, until it is in or refused. The requests of a Manager are
// used again and again, so that passing a lock on allocates nothing.
type request struct {
	op       string
	settings *settings // of the Mutex
	terms    *terms    // those of settings, or the caller's own
	wait     time.Duration
	hold     *Hold // that the caller is to have; nil for a Lock
	waiter   queue.Waiter
	endSpan  func(AcquireEnd) // of a Tracer; nil where there is no span
}

// newRequest returns a request on the terms of s.
func (m *Manager) newRequest(op string, kind queue.Kind, s *settings) *request {
	r, _ := m.spare.Get().(*request)
	if r == nil {
		r = new(request)
	}
	r.op, r.settings, r.terms = op, s, &s.terms
	r.waiter.Kind = kind
	return r
}

// recycle gives r back, whose caller came in.
func (r *request) recycle(m *Manager) {
	r.waiter.Reset()
	r.wait, r.hold = 0, nil
	m.spare.Put(r)
}

// AcquireOption changes one acquisition; see Wait and Lease.
type AcquireOption func(*request) error

// Wait bounds how long Acquire waits, in addition to its context. After d it returns what
// it would if the context had ended: ErrNotAcquired if another holds the lock,
// ErrUnavailable or ErrUnknown if Redis did not serve. The error also wraps
// context.DeadlineExceeded. d must be positive. TryAcquire, which does not wait, refuses it as ErrConfig.
func Wait(d time.Duration) AcquireOption {
	return func(r *request) error {
		if d <= 0 {
			return configError("Wait", "is %v; it must be positive (TryAcquire does not wait)", d)
		}
		if r.waiter.Kind.IsTry() {
			return configError("Wait", "is given to TryAcquire, which does not wait; use Acquire")
		}
		r.wait = d
		return nil
	}
}

// Lease gives this hold a fixed lease of d instead of a renewed one: unless it is released
// or extended, the key expires d after the grant, and the hold's Deadline is Margin earlier.
// Release it in any case, also after that: until then the Manager keeps what it knows of the key.
// d is from 100 ms to 24 hours. A Hold inside
// another one shares its lease and refuses this as ErrConfig.
func Lease(d time.Duration) AcquireOption {
	return func(r *request) error {
		if err := inBounds("Lease", d, minLease, maxLease, ""); err != nil {
			return err
		}
		margin := defaultMargin(d)
		if of := &r.settings.terms; d == of.lease {
			margin = of.margin
		}
		r.terms = &terms{lease: d, period: -1, margin: margin}
		return nil
	}
}
