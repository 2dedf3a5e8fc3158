package anteroom

import (
	"time"

	"github.com/anteroom/anteroom/queue"
)

// acquisition is one caller's way in. Those of a Manager are used again and again, so
// that passing a lock on allocates nothing.
type acquisition struct {
	op        string
	kind      queue.Kind
	goroutine int64
	wait      time.Duration
	settings  *settings // of the Mutex
	own       note      // in place of settings.note; its wish is nil where the Mutex' will do
	nested    bool      // the caller's context carries a Hold
	waiter    queue.Waiter
	ended     func(AcquireEnd) // of a Tracer, nil where nothing is to be told
}

// newAcquisition returns an unused acquisition.
func (m *Manager) newAcquisition(op string, kind queue.Kind, s *settings) *acquisition {
	a, _ := m.spare.Get().(*acquisition)
	if a == nil {
		a = new(acquisition)
	}
	a.op, a.kind, a.settings = op, kind, s
	if m.observed {
		// One clock is read where time.Now reads two: only the difference matters.
		a.waiter.Began = m.made.Add(time.Since(m.made))
	}
	return a
}

// recycle gives a back, for whom came in. One with a note of its own is not used
// again: whoever has read the waiter's note may look at it later.
func (a *acquisition) recycle(m *Manager) {
	if a.own != (note{}) {
		return
	}
	a.waiter.Reset()
	a.wait, a.nested = 0, false
	m.spare.Put(a)
}
