package anteroom_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// ofEachKind takes a lock at the key k, of each kind.
var ofEachKind = map[string]func(m *anteroom.Manager) (theHold, error){
	"a Mutex":     func(m *anteroom.Manager) (theHold, error) { return m.Mutex("k").Acquire(bg) },
	"a reader":    func(m *anteroom.Manager) (theHold, error) { return m.RWMutex("k").RAcquire(bg) },
	"a writer":    func(m *anteroom.Manager) (theHold, error) { return m.RWMutex("k").Acquire(bg) },
	"a Semaphore": func(m *anteroom.Manager) (theHold, error) { return m.Semaphore("k", 3).Acquire(bg, 2) },
}

// replaced plays what follows the removal of a lock of each kind, at whose key something else is then.
func replaced(t *testing.T, play func(t *testing.T, h theHold, rec *recorder)) {
	for name, take := range ofEachKind {
		for next, put := range map[string]func(t *testing.T, s *embedded){
			"a string": func(_ *testing.T, s *embedded) { _ = s.Set("k", "data") },
			"a Mutex": func(t *testing.T, s *embedded) {
				other, _ := manager(t, s.client(), anteroom.Config{})
				must[theHold](t)(other.Mutex("k").TryAcquire(bg))
			},
			"a Semaphore": func(t *testing.T, s *embedded) {
				other, _ := manager(t, s.client(), anteroom.Config{})
				must[theHold](t)(other.Semaphore("k", 5).TryAcquire(bg, 5))
			},
		} {
			t.Run(name+", then "+next, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					m, rec := manager(t, s.client(), anteroom.Config{})
					h := must[theHold](t)(take(m))
					time.Sleep(time.Second) // the lease is whole
					s.Del("k")
					put(t, s)
					s.net.Delay(20 * time.Millisecond) // without a pause one command follows the other in no time
					play(t, h, rec)
				})
			})
		}
	}
}

// Whatever is at the key after a removal, the holder is notified within the bound of docs/guarantees.md §3.
func TestShared_ARemovalIsALossWhateverIsThereNext(t *testing.T) {
	replaced(t, func(t *testing.T, h theHold, rec *recorder) {
		begin := time.Now()
		<-h.Context().Done()
		if d := time.Since(begin); d > 6500*time.Millisecond {
			t.Errorf("notified after %v", d)
		}
		time.Sleep(time.Second)
		if evs := rec.of(observe.EventLost); len(evs) != 1 || evs[0].Reason != observe.LostGone {
			t.Errorf("events %+v", evs)
		}
	})
}

// A release that comes first says so.
func TestShared_AReleaseFindsARemovalWhateverIsThereNext(t *testing.T) {
	replaced(t, func(t *testing.T, h theHold, _ *recorder) {
		if err := h.Release(bg); !errors.Is(err, anteroom.ErrLost) {
			t.Errorf("Release: %v", err)
		}
	})
}

// After an error a command is repeated after a pause: for a reader, too, who asks once in a second whether others wait.
func TestShared_AnErrorIsFollowedByAPause(t *testing.T) {
	sent := map[string]int{}
	for name, take := range ofEachKind {
		bubble(t, func(t *testing.T, s *embedded) {
			c := newCounter()
			m, _ := manager(t, s.client(), anteroom.Config{Observer: hooks(c)})
			must[theHold](t)(take(m))
			time.Sleep(3 * time.Second)
			s.net.Delay(20 * time.Millisecond) // without a pause one follows the other in no time
			s.SetError("OOM command not allowed when used memory > 'maxmemory'.")
			before := c.commands()
			time.Sleep(10 * time.Second)
			sent[name] = c.commands() - before
			s.SetError("")
		})
	}
	if sent["a reader"] > 2*sent["a writer"] {
		t.Errorf("in 10 s %v commands", sent)
	}
}

// commands is how many were sent.
func (c *counter) commands() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for what, times := range c.counts {
		if strings.HasPrefix(what, "command/") {
			n += times
		}
	}
	return n
}

// A release waits up to twice the command timeout for an answer, that to a repetition, too: docs/guarantees.md §2.
func TestShared_AReleaseWaitsForItsRepetition(t *testing.T) {
	const timeout = time.Second
	for name, take := range ofEachKind {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				m, _ := manager(t, s.client(), anteroom.Config{CommandTimeout: timeout})
				pass(m.Mutex("warm"))
				time.Sleep(time.Second)
				h := must[theHold](t)(take(m))
				time.Sleep(time.Second)
				s.net.HoldReplies()
				time.AfterFunc(timeout*3/2, s.net.Heal)
				begin := time.Now()
				err := h.Release(bg)
				if d := time.Since(begin); err != nil || d < timeout || d > 2*timeout {
					t.Errorf("Release: %v after %v", err, d)
				}
			})
		})
	}
}
