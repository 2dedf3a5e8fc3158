package anteroom

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// LockUntil is Lock, but for an end that only a test can give it. It tells whether the
// caller has the lock.
func LockUntil(ctx context.Context, mu *Mutex) bool {
	return mu.lock(ctx, "lock", queue.Deaf) == nil
}

// ClockJumped and WasLate report what a test cannot cause in virtual time: there a machine
// does not sleep and no process is stopped.
func (m *Manager) ClockJumped(d time.Duration) { m.reports.jumped(d) }

func (m *Manager) WasLate(d time.Duration) { m.reports.stalled(d) }

// MeetTrouble reports that an attempt has failed at a server: a test cannot let one fail over.
func (m *Manager) MeetTrouble(shard string) {
	m.reports.troubles.met(nil, shard, errors.New("no answer"), false)
}

// HoldUpTelling keeps the goroutine that tells losses from going on until then.
func HoldUpTelling(m *Manager, until <-chan struct{}) {
	m.leases.Add(renewal.Spec{SentAt: time.Now().Add(-time.Hour), Owner: heldUp(until)})
}

type heldUp <-chan struct{}

func (h heldUp) Lost(renewal.Cause)         { <-h }
func (h heldUp) Names() (key, field string) { return "", "" }

// NothingWanted fails where m still expects calls, or keeps an entry.
func NothingWanted(t testing.TB, m *Manager) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for n, w := range m.wanted {
		t.Errorf("grant %d of %q is wanted still", n, w.g.e.key)
	}
	for key, e := range m.entries {
		t.Errorf("the entry of %q has %d references", key, e.refs.Load())
	}
	if n := m.line.Stats().Leases; n != 0 {
		t.Errorf("%d places are confirmed still", n)
	}
}

// RaceEnabled tells whether the race detector is on.
const RaceEnabled = raceEnabled

// WantsAny reports whether m still expects calls, or keeps an entry.
func WantsAny(m *Manager) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.wanted)+len(m.entries) > 0
}
