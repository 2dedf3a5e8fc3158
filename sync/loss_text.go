package anteroom

// lossText words a loss; it is ErrLost and, where there is one, its cause.
type lossText struct{ l *loss }

func (t lossText) Error() string { return plain.of(t) }

// words says why. fixed: the lease was not meant to be renewed; unrenewed: the watchdog had
// stopped its renewal.
func (l *loss) words(fixed, unrenewed bool) string {
	switch l.Reason {
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
	if t.l.Reason == LostClosed {
		errs = append(errs, ErrClosed)
	}
	if t.l.Err != nil {
		errs = append(errs, t.l.Err)
	}
	return errs
}
