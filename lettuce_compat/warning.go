package lettucecompat

import (
	"sync"
	"time"
)

// WarningKind names what works badly.
type WarningKind uint8

const (
	// WarnPublishRefused: releases take effect but their message is refused (ACL
	// without channels), so strangers elsewhere, and those who were called, learn of them by asking only.
	WarnPublishRefused WarningKind = iota
	// WarnPublishRestored: messages are accepted again.
	WarnPublishRestored
	// WarnChannelRefused: a subscription is refused (ACL without channels); who waits
	// asks instead. It is tried again rarely.
	WarnChannelRefused
	// WarnMalformedMessage: a message that is no release message woke the waiters.
	WarnMalformedMessage
	// WarnHiddenCluster: an answer came that only a Redis Cluster gives, through a client
	// that is not known to have one behind it. Locks work, each key is asked about by itself,
	// and whether anybody else waits is not known. Its error names the remedy. It is raised
	// once.
	WarnHiddenCluster
	warningKinds
)

// String returns the name used in logs.
func (k WarningKind) String() string {
	return [...]string{"publish_refused", "publish_restored", "channel_refused", "malformed_message", "hidden_cluster", "invalid"}[min(k, warningKinds)]
}

// Warning is something that works badly without failing.
type Warning struct {
	Kind    WarningKind
	Channel string // of the newest occurrence
	Err     error  // nil where there is none
	// Count is the number of occurrences since the last report of this kind, this one
	// included: at most one report of a kind is made in warningInterval.
	Count int
}

// warningInterval keeps a condition that comes with every command from becoming one
// report per command.
const warningInterval = 10 * time.Second

// warnings gathers repetitions. The zero value reports nothing.
type warnings struct {
	report func(Warning)

	mu      sync.Mutex
	refused bool // publications are being refused
	last    [warningKinds]time.Time
	count   [warningKinds]int
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

// changes reports whether published has something to say.
func (s *warnings) changes(refused bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return refused != s.refused || refused && s.count[WarnPublishRefused] > 0
}

// published notes whether a publication was accepted, and reports a change.
func (s *warnings) published(channel string, receivers int) {
	refused := receivers < 0
	s.mu.Lock()
	// A refusal that was not reported because it came too soon after the last one is
	// reported by a later one, or the last report would say that all is well.
	due := refused != s.refused || refused && s.count[WarnPublishRefused] > 0
	s.refused = refused
	s.mu.Unlock()
	if !due {
		return
	}
	kind := WarnPublishRestored
	if refused {
		kind = WarnPublishRefused
	}
	s.raise(Warning{Kind: kind, Channel: channel})
}
