package anteroom

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/lock"
)

// LockUntil is Lock, but for an end that only a test can give it. It reports whether the
// caller has the lock.
func LockUntil(ctx context.Context, mu *Mutex) bool {
	return mu.lock(ctx, "lock", queue.NoNotify) == nil
}

// ClockJumped and WasLate report what a test cannot cause in virtual time: there a machine
// does not sleep and no process is stopped.
func (m *Manager) ClockJumped(d time.Duration) { m.reports.Jumped(d) }

func (m *Manager) WasLate(d time.Duration) { m.reports.Stalled(d) }

// MeetTrouble reports that a command has failed at a server: a test cannot let one fail over.
func (m *Manager) MeetTrouble(shard string) {
	k := m.locks.Key("trouble", &m.defaults.lock)
	defer k.Done()
	m.reports.Failed(k, shard, errors.New("no answer"))
}

// HoldUpNotices stops the goroutine that notifies of losses until then.
func HoldUpNotices(m *Manager, until <-chan struct{}) {
	m.leases.Add(renewal.Spec{SentAt: time.Now().Add(-time.Hour), Owner: heldUp(until)})
}

type heldUp <-chan struct{}

func (h heldUp) Lost(renewal.Cause)         { <-h }
func (h heldUp) Names() (key, field string) { return "", "" }

// NothingLeft fails where m, in a bubble, keeps a key, a grant or a clean-up once all is done that is under way: who has
// heard the call of a lock may have its key in use for longer than the client that got the lock holds it.
func NothingLeft(t testing.TB, m *Manager) {
	t.Helper()
	synctest.Wait()
	if KeepsAny(m) {
		held, unsettled := m.locks.Open()
		t.Errorf("%d grants, %d conversations that are not settled", len(held), unsettled)
		for _, k := range m.locks.All() {
			t.Errorf("the key %q is in use", k.Name())
		}
	}
}

func (t *tenure) key() *lock.Key { return t.owner.Held().Key() }

// InMemory reports whether anything that the library makes for h is in memory.
func InMemory(h *Hold) func() bool {
	t, g, k := weak.Make(h.t), weak.Make(h.t.owner.Held()), weak.Make(h.t.key())
	return func() bool { return t.Value() != nil || g.Value() != nil || k.Value() != nil }
}

// RaceEnabled reports whether the race detector is on.
const RaceEnabled = raceEnabled

// KeepsAny reports whether m keeps a key, a grant or a clean-up.
func KeepsAny(m *Manager) bool {
	held, unsettled := m.locks.Open()
	return len(held)+unsettled+len(m.locks.All()) > 0
}

// WithoutNames returns what err says with these names taken out, as Event.ErrText does.
func WithoutNames(err error, names ...string) string { return wordsOf(err, false, names...) }
