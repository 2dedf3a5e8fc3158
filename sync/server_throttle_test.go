package anteroom_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// A throttle takes fixed leases and releases none. What is kept of each ends with its lease, and nothing of it is left
// in memory, whatever else the program keeps: the Mutex, or a context that it has asked for.
func TestSync_I8_FixedLeasesThatNobodyReleasesLeaveNothing(t *testing.T) {
	for _, kept := range []string{"nothing", "the Mutex", "the Hold"} {
		t.Run(kept, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				m, _ := manager(t, s.client(), anteroom.Config{})
				n := keys(t) / 25
				var mus []*anteroom.Mutex
				var holds []*anteroom.Hold
				var inMemory []func() bool
				for i := range n {
					mu := m.Mutex(fmt.Sprint("user:", i))
					h := acquire(t, mu, anteroom.Lease(time.Second))
					if i%2 == 0 {
						_ = h.Context()
					}
					switch kept {
					case "the Mutex":
						mus = append(mus, mu)
					case "the Hold":
						holds = append(holds, h)
					}
					inMemory = append(inMemory, anteroom.InMemory(h))
				}
				time.Sleep(time.Minute)
				anteroom.NothingLeft(t, m)
				for i, h := range holds {
					if i%2 == 0 {
						<-h.Context().Done()
					}
					outcome(t, h.Release(bg), observe.OutcomeLost, anteroom.ErrLost)
				}
				holds = nil
				for range 3 { // a pool keeps things for two
					runtime.GC()
				}
				left := 0
				for _, is := range inMemory {
					if is() {
						left++
					}
				}
				if left > 0 {
					t.Errorf("of %d leases %d are in memory", n, left)
				}
				if c := m.Counts()["default"]; c.Held != 0 {
					t.Errorf("%+v", c)
				}
				runtime.KeepAlive(mus)
			})
		})
	}
}
