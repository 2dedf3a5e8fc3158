package anteroom

import (
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/internal/report"
)

// request is one caller's way in, until it is in or refused.
type request struct {
	op       string
	kind     queue.Kind
	settings *settings
	lease    *lock.Lease // a fixed one; nil for that of settings
	wait     time.Duration
	attempt  report.Attempt
}

// AcquireOption changes one acquisition; see Wait and Lease.
type AcquireOption struct {
	fixed bool // Lease, else Wait
	d     time.Duration
}

// Wait bounds how long Acquire waits, in addition to its context. After d it returns what
// it would if the context had ended: ErrNotAcquired if another holds the lock,
// ErrUnavailable if Redis did not serve. The error also wraps
// context.DeadlineExceeded. d must be positive. TryAcquire, which does not wait, refuses it as ErrConfig.
func Wait(d time.Duration) AcquireOption { return AcquireOption{d: d} }

// Lease gives this hold a fixed lease of d instead of a renewed one, by one command more before
// it is returned: unless it is released or extended, the hold's Deadline is Margin before d after that.
// The key expires then, or, since no command shortens a lease, when that of the grant does: 2 seconds after
// it, or LeaseTime after a hand-off within the process. The process hands the hold on to nobody. d is from
// 100 ms to 24 hours. A Hold inside another one shares its lease and refuses this as ErrConfig.
func Lease(d time.Duration) AcquireOption { return AcquireOption{fixed: true, d: d} }

// take takes in an option.
func (r *request) take(o AcquireOption) error {
	switch {
	case o.fixed:
		if err := within("Lease", o.d, minLease, maxLease, ""); err != nil {
			return err
		}
		if o.d < r.settings.cfg.MinHold {
			return configError("Lease", "is %v, shorter than MinHold (%v)", o.d, r.settings.cfg.MinHold)
		}
		margin := defaultMargin(o.d)
		if o.d == r.settings.cfg.LeaseTime {
			margin = r.settings.cfg.Margin
		}
		r.lease = &lock.Lease{For: o.d, Period: -1, Margin: margin}
	case o.d <= 0:
		return configError("Wait", "is %v; it must be positive (TryAcquire does not wait)", o.d)
	case r.kind.IsTry():
		return configError("Wait", "is given to TryAcquire, which does not wait; use Acquire")
	default:
		r.wait = o.d
	}
	return nil
}
