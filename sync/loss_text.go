package anteroom

// A loss is an error: ErrLost and, where there is one, its cause.

func (l *loss) Error() string { return plain.of(l) }

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

func (l *loss) Unwrap() []error {
	errs := []error{ErrLost}
	if l.Reason == LostClosed {
		errs = append(errs, ErrClosed)
	}
	if l.Err != nil {
		errs = append(errs, l.Err)
	}
	return errs
}
