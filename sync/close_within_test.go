package anteroom_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// CloseWithin's time is the time, whatever Close would wait for. A holder has it to the end.
func TestCloseWithin_IsTheTime(t *testing.T) {
	const d = 2 * time.Second
	for name, prepare := range map[string]func(t *testing.T, s *embedded, m *anteroom.Manager){
		"a hold that nobody releases": func(t *testing.T, _ *embedded, m *anteroom.Manager) { acquire(t, m.Mutex("k")) },
		"a hold, and Redis is silent": func(t *testing.T, s *embedded, m *anteroom.Manager) {
			acquire(t, m.Mutex("k"))
			s.net.BlackHole()
		},
		"a release without an answer": func(t *testing.T, s *embedded, m *anteroom.Manager) {
			h := acquire(t, m.Mutex("k"))
			s.net.BlackHole()
			go func() { _ = h.Release(bg) }()
			synctest.Wait()
		},
		"an acquire without an answer": func(t *testing.T, s *embedded, m *anteroom.Manager) {
			s.net.BlackHole()
			go func() { _, _ = m.Mutex("k").Acquire(bg) }()
			synctest.Wait()
		},
		"a waiter in Lock": func(t *testing.T, s *embedded, m *anteroom.Manager) {
			s.HSet("k", "other:1700000000000000", "1")
			go func() { // it parks like Lock, but for its limit, so that the test can end
				ctx, cancel := context.WithTimeout(bg, time.Hour)
				defer cancel()
				anteroom.LockUntil(ctx, m.Mutex("k"))
			}()
			synctest.Wait()
		},
		"a callback that does not return": func(t *testing.T, s *embedded, m *anteroom.Manager) {
			h := acquire(t, m.Mutex("lost"), anteroom.Lease(time.Second))
			<-h.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				until := make(chan struct{})
				m, _ := manager(t, s.client(), anteroom.Config{OnEvent: func(observe.Event) { <-until }})
				prepare(t, s, m)
				began := time.Now()
				err := m.CloseWithin(d)
				took := time.Since(began)
				if took > d || name == "a hold that nobody releases" && (took < d-100*time.Millisecond || !errors.Is(err, context.DeadlineExceeded)) {
					t.Errorf("it took %v: %v", took, err)
				}
				close(until)
				s.net.Heal()
				s.Del("k")
				time.Sleep(2 * time.Hour) // what it has left ends, and the wait in Lock
			})
		})
	}
}
