package anteroom

import (
	"strings"

	"github.com/anteroom/anteroom/watchdog"
)

// lossText words a loss; it is ErrLost and, where there is one, its cause.
type lossText struct{ l *loss }

func (t lossText) Error() string { return plain.of(t) }

// words says why. fixed: the lease was not meant to be renewed; unrenewed: the watchdog had
// stopped its renewal.
func (l *loss) words(fixed, unrenewed bool) string {
	switch l.reason {
	case LostGone:
		return "Redis no longer has it"
	case LostForced:
		return "released by force"
	case LostClosed:
		return "the manager was closed"
	case LostWatchdog:
		return "given up by the watchdog"
	}
	switch {
	case fixed:
		return "its fixed lease ended"
	case unrenewed:
		return "its lease ended after the watchdog had stopped its renewal"
	}
	return "its lease ended without a confirmed renewal"
}

func (t lossText) Unwrap() []error {
	errs := []error{ErrLost}
	if t.l.reason == LostClosed {
		errs = append(errs, ErrClosed)
	}
	if t.l.err != nil {
		errs = append(errs, t.l.err)
	}
	return errs
}

// foundBy says who found that Redis no longer has it, where found is what the watchdog
// had found.
func (l *loss) foundBy(found string) string {
	switch {
	case l.how == byRenewal:
		return ", found by a renewal"
	case l.how == byRelease:
		return ", found when it was released"
	case l.how == bySomebody && l.reason == LostGone && strings.Contains(found, watchdog.FieldGone.String()):
		return ", found by the watchdog"
	case l.how == bySomebody && l.reason == LostGone:
		return ", found by Extend"
	}
	return ""
}
