package anteroom_test

import (
	"errors"
	"testing"

	anteroom "github.com/anteroom/anteroom/sync"
)

// A try for more than there are beside those of its own process is refused: nothing that Redis could answer would help,
// so nothing is stated, and nobody else refuses it.
func TestShared_S1_ATryBesideItsOwnProcess(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		one := m.Semaphore("k", 1)
		h := must[theHold](t)(one.Acquire(bg, 1))
		if _, err := one.TryAcquire(bg, 1); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("1 of 0: %v", err)
		}
		ok(t, h.Release(bg))
	})
}
