package conversation

import "time"

// Moment is a monotonic time: how long after the zero of its process.
type Moment time.Duration

// Never is later than every other moment.
const Never Moment = 1<<63 - 1

// Add returns the moment that is d after m.
func (m Moment) Add(d time.Duration) Moment { return m + Moment(d) }

// Sub returns how long m is after o.
func (m Moment) Sub(o Moment) time.Duration { return time.Duration(m - o) }

// String returns the time since the zero.
func (m Moment) String() string {
	if m == Never {
		return "never"
	}
	return time.Duration(m).String()
}

// sentLog remembers when the last commands were sent. Units that an older one was given are renewed before anybody enters.
type sentLog [8]struct {
	n  uint64
	at Moment // before it was sent
}

func (l *sentLog) note(n uint64, at Moment) {
	copy(l[1:], l[:])
	l[0].n, l[0].at = n, at
}

// find returns the moment before n was sent, if that is remembered.
func (l *sentLog) find(n uint64) (at Moment, known bool) {
	for _, s := range l {
		if s.n == n {
			return s.at, true
		}
	}
	return 0, false
}
