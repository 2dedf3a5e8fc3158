package anteroom_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// TestTurn_AnExtensionAtTheTickIsWatched: a grant has no lease while its turn is being
// extended. Where the watchdog is notified of it just then, it is notified again after.
func TestTurn_AnExtensionAtTheTickIsWatched(t *testing.T) {
	for name, wait := range map[string]time.Duration{"before the tick": 100 * time.Millisecond, "across the tick": 300 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := &late{Client: s.client(), at: make(chan struct{}), let: make(chan struct{})}
				m, _ := manager(t, l, anteroom.Config{})
				mu := mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: time.Hour, RenewalTime: 20 * time.Minute})
				a := acquire(t, mu)
				got := make(chan *anteroom.Hold)
				go func() { h, _ := mu.Acquire(bg); got <- h }()
				time.Sleep(300 * time.Millisecond) // the turn is over
				l.armed.Store(true)
				go func() { _ = a.Release(bg) }()
				<-l.at
				time.Sleep(wait)
				close(l.let)
				h := <-got
				time.Sleep(time.Second)
				s.Del("k")
				removed := time.Now()
				for h.Held() && time.Since(removed) < time.Minute {
					time.Sleep(100 * time.Millisecond)
				}
				synctest.Wait()
				if took := time.Since(removed); took > 6*time.Second {
					t.Errorf("notified %v after the removal", took)
				}
				_ = h.Release(bg)
			})
		})
	}
}

// TestTurn_ExtensionsOfManyKeysTogether: turns of several keys end and continue at the same time,
// each of which the watchdog is notified. The race detector is the judge.
func TestTurn_ExtensionsOfManyKeysTogether(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		var all sync.WaitGroup
		for k := range 8 {
			mu := mutex(t, m, anteroom.LockConfig{Key: fmt.Sprintf("k%d", k), MaxHandoffs: 2, Fair: true})
			for range 4 {
				all.Go(func() {
					for range 50 {
						pass(mu)
					}
				})
			}
		}
		all.Wait()
	})
}
