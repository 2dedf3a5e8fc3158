package anteroom_test

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
)

// A lock is handed off in its process, and the command that gives it back, or a part of it, is lost: whoever comes next elsewhere
// has no smaller token.
func TestToken_OutlivesALostCommand(t *testing.T) {
	fenced := anteroom.LockConfig{Key: "k", Fencing: true}
	rw := func(m *anteroom.Manager) *anteroom.RWMutex { return must[*anteroom.RWMutex](t)(m.NewRWMutex(fenced)) }
	mutex := func(m *anteroom.Manager) *anteroom.Mutex { return must[*anteroom.Mutex](t)(m.NewMutex(fenced)) }
	for name, c := range map[string]struct {
		take, next func(m *anteroom.Manager) (theHold, error)
		lost       string // the command
		gives      func(h theHold)
	}{
		"a Mutex, released": {
			take:  func(m *anteroom.Manager) (theHold, error) { return mutex(m).Acquire(bg) },
			next:  func(m *anteroom.Manager) (theHold, error) { return mutex(m).Acquire(bg) },
			lost:  " 0 0\r\n",
			gives: func(h theHold) { _ = h.Release(bg) },
		},
		"a writer, released": {
			take:  func(m *anteroom.Manager) (theHold, error) { return rw(m).Acquire(bg) },
			next:  func(m *anteroom.Manager) (theHold, error) { return rw(m).RAcquire(bg) },
			lost:  " 0 0\r\n",
			gives: func(h theHold) { _ = h.Release(bg) },
		},
		"a writer that becomes a reader": {
			take:  func(m *anteroom.Manager) (theHold, error) { return rw(m).Acquire(bg) },
			next:  func(m *anteroom.Manager) (theHold, error) { return rw(m).RAcquire(bg) },
			lost:  " 1 1\r\n",
			gives: func(h theHold) { ok(t, h.Downgrade()) },
		},
	} {
		for fate, f := range map[string]faultnet.Fate{"not executed": faultnet.Swallowed, "not answered": faultnet.Lost} {
			t.Run(name+", "+fate, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					net := s.network()
					a, _ := manager(t, s.clientOver(net), anteroom.Config{})
					b, _ := manager(t, s.client(), anteroom.Config{})
					pass(a.Mutex("warm"))
					s.settle() // it listens
					first := must[theHold](t)(c.take(a))
					time.Sleep(500 * time.Millisecond)
					got := make(chan theHold, 1)
					go func() { got <- must[theHold](t)(c.take(a)) }()
					s.settle()
					ok(t, first.Release(bg))
					second := <-got
					if tokenOf(second) != tokenOf(first)+1 {
						t.Fatalf("no hand-off: %d, then %d", tokenOf(first), tokenOf(second))
					}
					net.OnRequest(c.lost, 1, f)
					c.gives(second)
					next := must[theHold](t)(c.next(b))
					if tokenOf(next) < tokenOf(second) {
						t.Errorf("%d comes after %d", tokenOf(next), tokenOf(second))
					}
					if net.Waiting() > 0 {
						t.Error("no command was lost")
					}
					ok(t, next.Release(bg))
				})
			})
		}
	}
}
