package anteroom_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
)

// The message that another client waits is lost. While a process hands its lock from one goroutine to the next without Redis, it
// asks: the other client comes in within about a second.
func TestLine_ALostContendedMessageStarvesNobody(t *testing.T) {
	for name, take := range map[string]func(m *anteroom.Manager) (theHold, error){
		"a Mutex":     func(m *anteroom.Manager) (theHold, error) { return m.Mutex("k").Acquire(bg) },
		"writers":     func(m *anteroom.Manager) (theHold, error) { return m.RWMutex("k").Acquire(bg) },
		"readers":     nil,
		"a Semaphore": func(m *anteroom.Manager) (theHold, error) { return m.Semaphore("k", 2).Acquire(bg, 2) },
		"units":       func(m *anteroom.Manager) (theHold, error) { return m.Semaphore("k", 2).Acquire(bg, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				net := s.network()
				a, _ := manager(t, s.clientOver(net), anteroom.Config{})
				b, _ := manager(t, s.client(), anteroom.Config{})
				other := take
				if take == nil {
					take = func(m *anteroom.Manager) (theHold, error) { return m.RWMutex("k").RAcquire(bg) }
					other = func(m *anteroom.Manager) (theHold, error) { return m.RWMutex("k").Acquire(bg) }
				}
				pass(a.Mutex("warm"))
				s.settle()
				var all sync.WaitGroup
				var over atomic.Bool
				for range 4 {
					all.Go(func() {
						for !over.Load() {
							h, err := take(a)
							if err != nil {
								t.Error(err)
								return
							}
							time.Sleep(3 * time.Millisecond)
							_ = h.Release(bg)
						}
					})
				}
				time.Sleep(3 * time.Second)
				net.HalfOpen(faultnet.PubSub)
				begin := time.Now()
				h := must[theHold](t)(other(b))
				if took := time.Since(begin); took > 1500*time.Millisecond {
					t.Errorf("it came in after %v", took)
				}
				ok(t, h.Release(bg))
				over.Store(true)
				net.Heal()
				all.Wait()
			})
		})
	}
}
