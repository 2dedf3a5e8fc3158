package facts

import (
	"slices"
	"sync"

	"github.com/anteroom/anteroom/sync/observe"
)

// Counter is what *anteroom.Manager implements.
type Counter interface {
	Counts() map[string]observe.Count
}

// Sources are the attached Managers. Its methods are safe for concurrent use.
type Sources struct {
	mu sync.Mutex
	// list is only appended to or replaced as a whole, so a scrape reads the slice it saw under mu without holding
	// mu.
	list []Counter
}

// Attach adds m, once.
func (s *Sources) Attach(m Counter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.list, m) {
		s.list = append(s.list, m)
	}
}

// Detach removes m, if it is there.
func (s *Sources) Detach(m Counter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.list, m); i >= 0 {
		s.list = slices.Concat(s.list[:i], s.list[i+1:])
	}
}

// Count reads all Managers, while no lock is held, and returns the sums by class (of the ages the maximum) and the number
// of Managers. A class that is new to classes becomes known and is not counted as an overflow.
func Count[T comparable](s *Sources, classes *Classes[T]) (map[T]observe.Count, int) {
	s.mu.Lock()
	list := s.list
	s.mu.Unlock()
	sums := map[T]observe.Count{}
	for _, m := range list {
		for name, n := range m.Counts() {
			cl, _ := classes.Get(name)
			sum := sums[cl]
			sum.Held += n.Held
			sum.Waiting += n.Waiting
			sum.OldestHold = max(sum.OldestHold, n.OldestHold)
			sum.OldestWait = max(sum.OldestWait, n.OldestWait)
			sums[cl] = sum
		}
	}
	return sums, len(list)
}
