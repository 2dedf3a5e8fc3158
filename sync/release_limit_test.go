package anteroom_test

import (
	"context"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// Redis is silent, and what this process has asked for has no answer yet: a release ends after its own time, which is two time
// limits of a command at most.
func TestRelease_EndsAfterItsOwnLimit(t *testing.T) {
	for name, c := range map[string]struct {
		take func(m *anteroom.Manager) (theHold, error)
		asks func(m *anteroom.Manager, ctx context.Context)
	}{
		"a Mutex":                        {func(m *anteroom.Manager) (theHold, error) { return m.Mutex("k").Acquire(bg) }, func(m *anteroom.Manager, ctx context.Context) { _, _ = m.Mutex("k").Acquire(ctx) }},
		"a Mutex, beside Seize":          {func(m *anteroom.Manager) (theHold, error) { return m.Mutex("k").Acquire(bg) }, func(m *anteroom.Manager, ctx context.Context) { _, _ = m.Mutex("k").Seize(ctx) }},
		"a reader":                       {func(m *anteroom.Manager) (theHold, error) { return m.RWMutex("k").RAcquire(bg) }, func(m *anteroom.Manager, ctx context.Context) { _, _ = m.RWMutex("k").Acquire(ctx) }},
		"a writer":                       {func(m *anteroom.Manager) (theHold, error) { return m.RWMutex("k").Acquire(bg) }, func(m *anteroom.Manager, ctx context.Context) { _, _ = m.RWMutex("k").Acquire(ctx) }},
		"a Semaphore":                    {func(m *anteroom.Manager) (theHold, error) { return m.Semaphore("k", 3).Acquire(bg, 2) }, func(m *anteroom.Manager, ctx context.Context) { _, _ = m.Semaphore("k", 3).Acquire(ctx, 3) }},
		"a Semaphore that asks for more": {func(m *anteroom.Manager) (theHold, error) { return m.Semaphore("k", 3).Acquire(bg, 1) }, func(m *anteroom.Manager, ctx context.Context) { _, _ = m.Semaphore("k", 3).Acquire(ctx, 2) }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				m, _ := manager(t, s.client(), anteroom.Config{})
				h := must[theHold](t)(c.take(m))
				time.Sleep(300 * time.Millisecond)
				s.net.BlackHole()
				ctx, cancel := context.WithCancel(bg)
				asked := make(chan struct{})
				go func() { c.asks(m, ctx); close(asked) }()
				time.Sleep(900 * time.Millisecond)
				cancel()
				<-asked
				begin := time.Now()
				_ = h.Release(bg)
				if took := time.Since(begin); took > 2*time.Second {
					t.Errorf("it took %v", took)
				}
				s.net.Heal()
			})
		})
	}
}
