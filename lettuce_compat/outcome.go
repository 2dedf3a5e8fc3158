package lettucecompat

// Outcome says what is known about the effect of one command. It is a closed set:
// every reply carries exactly one, and the caller's next step depends on nothing else.
type Outcome uint8

const (
	// OutcomeOK: the command took effect and the answer arrived.
	OutcomeOK Outcome = iota
	// OutcomeRefused: the lock is held by another, or too few replicas confirmed it.
	OutcomeRefused
	// OutcomeGone: our field is not there, concluded by a master.
	OutcomeGone
	// OutcomeFailed: the server answered with an error, or the command was never
	// sent. It certainly had no effect, and may be repeated unless Permanent(err).
	OutcomeFailed
	// OutcomeUnknown: the command was sent and no answer arrived in time. It may have
	// taken effect, and may still do so later.
	OutcomeUnknown
)

// String returns the name used as a metric label.
func (o Outcome) String() string {
	switch o {
	case OutcomeOK:
		return "ok"
	case OutcomeRefused:
		return "refused"
	case OutcomeGone:
		return "gone"
	case OutcomeFailed:
		return "failed"
	case OutcomeUnknown:
		return "unknown"
	}
	return "invalid"
}
