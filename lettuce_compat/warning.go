package lettucecompat

import (
	"sync"
	"time"
)

// WarningKind names what works badly.
type WarningKind uint8

const (
	// WarnPublishRefused: commands take effect but their messages are refused (ACL without channels), so foreign
	// clients, and those who were called, learn of it by asking only.
	WarnPublishRefused WarningKind = iota
	// WarnChannelRefused: a subscription is refused (ACL without channels). It is tried again rarely.
	WarnChannelRefused
	// WarnMalformedMessage: a message that is no release message woke the waiters.
	WarnMalformedMessage
	// WarnHiddenCluster: an answer came that only a Redis Cluster gives, through a client that is not known to have
	// one behind it. Locks work, each key is asked about by itself, and whether anybody else waits is not known. Its
	// error names the remedy. It is raised once.
	WarnHiddenCluster
	// WarnTrackingRefused: Redis does not say when a lock vanishes, see Client.Track. It is raised once.
	WarnTrackingRefused
	warningKinds
)

// Warning is something that works badly without failing.
type Warning struct {
	Kind WarningKind
	Err  error // nil where there is none
	// Count is the number of occurrences since the last report of this kind, this one included: at most one report of
	// a kind is made in warningInterval.
	Count int
}

// warningInterval keeps a condition that comes with every command from becoming one report per command.
const warningInterval = 10 * time.Second

// warnings gathers repetitions. The zero value reports nothing.
type warnings struct {
	report func(Warning)

	mu    sync.Mutex
	last  [warningKinds]time.Time
	count [warningKinds]int
}

// raise reports w unless its kind was reported a moment ago.
func (s *warnings) raise(w Warning) {
	s.mu.Lock()
	s.count[w.Kind]++
	now := time.Now()
	due := s.last[w.Kind].IsZero() || now.Sub(s.last[w.Kind]) >= warningInterval
	if due {
		w.Count, s.count[w.Kind], s.last[w.Kind] = s.count[w.Kind], 0, now
	}
	s.mu.Unlock()
	if due && s.report != nil {
		s.report(w)
	}
}
