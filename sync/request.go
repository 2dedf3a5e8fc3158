package anteroom

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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
	note     string
	units    int64 // of an RWMutex and a Semaphore
	wait     time.Duration
	attempt  report.Attempt
}

// apply reads the options of an acquisition.
func (r *request) apply(opts []AcquireOption) error {
	if n := r.settings.capacity; n > ofMutex && (r.units < 1 || r.units > n) {
		return configError("n", "is %d; it must be from 1 to the capacity, here %d", r.units, n)
	}
	for _, o := range opts {
		if o.take == nil { // of the zero AcquireOption
			continue
		}
		var err error
		if *r, err = o.take(*r); err != nil {
			return err
		}
	}
	if r.note != "" && r.settings.capacity != ofMutex {
		return configError("Note", "is for a Mutex: the units of a process have no place for it")
	}
	return nil
}

// AcquireOption changes one acquisition; see Wait, Lease and Note.
type AcquireOption struct {
	take func(request) (request, error) // by value: a request that its options point to would be on the heap
}

// Wait bounds how long Acquire waits, in addition to its context. After d it returns what
// it would if the context had ended: ErrNotAcquired if another holds the lock,
// ErrUnavailable if Redis did not serve. The error also wraps
// context.DeadlineExceeded. d must be positive. TryAcquire, which does not wait, refuses it as ErrConfig.
func Wait(d time.Duration) AcquireOption {
	return AcquireOption{func(r request) (request, error) {
		switch {
		case d <= 0:
			return r, configError("Wait", "is %v; it must be positive (TryAcquire does not wait)", d)
		case r.kind.IsTry():
			return r, configError("Wait", "is given to TryAcquire, which does not wait; use Acquire")
		}
		r.wait = d
		return r, nil
	}}
}

// Lease gives this hold a fixed lease of d instead of a renewed one, by one command more before
// it is returned. Unless it is released or extended, the hold's Deadline is d after that, less a margin: that of the
// LockConfig if d is its LeaseTime, otherwise what would be the default for d.
// The key expires then, or, since no command shortens a lease, when that of the grant does: 2 seconds after
// it, or LeaseTime after a hand-off within the process. The process hands the hold on to nobody. d is from
// 100 ms to 24 hours. A Hold inside another one shares its lease and refuses this as ErrConfig.
func Lease(d time.Duration) AcquireOption {
	return AcquireOption{func(r request) (request, error) {
		if err := within("Lease", d, minLease, maxLease, ""); err != nil {
			return r, err
		}
		if d < r.settings.cfg.MinHold {
			return r, configError("Lease", "is %v, shorter than MinHold (%v)", d, r.settings.cfg.MinHold)
		}
		margin := defaultMargin(d)
		if d == r.settings.cfg.LeaseTime {
			margin = r.settings.cfg.Margin
		}
		r.lease = &lock.Lease{For: d, Period: -1, Margin: margin}
		return r, nil
	}}
}

// maxNote bounds a Note.
const maxNote = 256

// Note stores a short text with this hold, for people: who works on what, or where the holder can be reached. Inspect,
// the command-line tool and the ErrNotAcquired of others show it, and it goes with the hold. It costs one command before
// the hold is returned, which then has its whole lease; and the process hands the hold on to nobody without Redis. Detach leaves it
// to the ticket; the hold that is resumed has the one given to Resume. text is up to 256 bytes of printable UTF-8; it is in no metric,
// and in log records only with LogKeys. A Hold inside another one refuses this as ErrConfig.
func Note(text string) AcquireOption {
	return AcquireOption{func(r request) (request, error) {
		if len(text) > maxNote || !utf8.ValidString(text) || strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) {
			return r, configError("Note", "is %q; use at most %d bytes of printable UTF-8", text[:min(len(text), maxNote)], maxNote)
		}
		r.note = text
		return r, nil
	}}
}
