package anteroom_test

import (
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// That another client was seen is remembered without the key: it is not in use when nobody uses it. Used again, it does not
// linger before the pause is over.
func TestLinger_APauseKeepsNoKeyInUse(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Linger: 10 * time.Second})
		pass(mu) // the subscription begins
		s.settle()
		h := acquire(t, mu)
		there := s.waiting(t, bg, other.Mutex("k"))
		ok(t, h.Release(bg))
		ok(t, (<-there).Release(bg))
		s.settle()
		if st := stateOfK(m); st.Key != "" {
			t.Errorf("in use: %+v", st)
		}
		pass(mu)
		s.settle()
		if st := stateOfK(m); st.Key != "" {
			t.Errorf("it lingers beside another client: %+v", st)
		}
		time.Sleep(time.Second)
		pass(mu)
		s.settle()
		if st := stateOfK(m); st.Status != "lingers" {
			t.Errorf("after the pause: %+v", st)
		}
	})
}
