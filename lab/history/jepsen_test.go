package history

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// jepsenTime is how long one of Jepsen's designs runs; ANTEROOM_JEPSEN sets it.
func jepsenTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("ANTEROOM_JEPSEN")
	if text == "" {
		return 6 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// figure is what one of Jepsen's designs shows.
type figure struct {
	confirmed, lost, refused, stops int
	*Outcome
}

func (f figure) String() string {
	return fmt.Sprintf("confirmed=%d lost=%d (%.1f %%) refused=%d stops=%d holds=%d told=%d",
		f.confirmed, f.lost, 100*float64(f.lost)/float64(max(f.confirmed, 1)), f.refused, f.stops, f.Acquisitions, f.Verdict.Lost)
}

// jepsen is the design of Jepsen's lock tests: leases of 2 s, work of 1 to 3 s under the lock, and whoever works is
// stopped for longer than a lease. The resource is a perfect set for each of six locks, to which each holder adds one
// element by reading it, working, and writing it back. The set cannot lose anything by itself.
func jepsen(t *testing.T, load Load, fenced bool) figure {
	t.Helper()
	const keys, processes, lease = 6, 4, 2 * time.Second
	var locks []anteroom.LockConfig
	for i := range keys {
		locks = append(locks, anteroom.LockConfig{
			Key: fmt.Sprint("set", i), LeaseTime: lease, WatchdogPeriod: 500 * time.Millisecond, Fencing: fenced, MaxHandoffs: -1,
		})
	}
	l := NewLab(t, Setup{Locks: locks, Processes: processes, Goroutines: keys, Load: load, Work: lease, Seed: rand.Uint64()})
	f := figure{}
	var wg sync.WaitGroup
	stopped := map[uint32]bool{}
	var mu sync.Mutex
	tick := time.NewTicker(600 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(jepsenTime(t)); time.Now().Before(end); <-tick.C {
		visitor := l.Register.Visitor(rand.IntN(keys))
		mu.Lock()
		busy := stopped[visitor] || len(stopped) > processes/2
		mu.Unlock()
		if visitor == 0 || busy {
			continue
		}
		mu.Lock()
		stopped[visitor] = true
		mu.Unlock()
		f.stops++
		wg.Go(func() {
			// Lives are numbered from 1, and none is killed here.
			if err := l.StopWorker(int(visitor)-1, lease+time.Second); err != nil {
				t.Error(err)
			}
			mu.Lock()
			delete(stopped, visitor)
			mu.Unlock()
		})
	}
	wg.Wait()
	f.Outcome = l.Finish(through)
	f.confirmed, f.lost = l.Register.Lost()
	f.refused = l.Register.Refused()
	t.Log(f)
	judged(t, f.Outcome)
	nothingRemoved(t, f.Outcome)
	return f
}

// Without a token, and without queries, elements whose writing was confirmed are lost: this can happen with any lock
// that is a lease.
func TestJepsen_Unfenced(t *testing.T) {
	t.Parallel()
	if f := jepsen(t, LoadSet, false); f.lost == 0 {
		t.Errorf("nothing was lost in %d stops, so the fenced runs prove nothing", f.stops)
	}
}

// A holder that asks right before it writes loses less, and only if it is stopped between the query and the write.
// How much is not promised, so it is only shown.
func TestJepsen_UnfencedAsking(t *testing.T) {
	t.Parallel()
	jepsen(t, LoadCheckedSet, false)
}

// With tokens nothing that was confirmed is ever lost, and old tokens are refused.
func TestJepsen_Fenced(t *testing.T) {
	t.Parallel()
	f := jepsen(t, LoadSet, true)
	if f.lost > 0 {
		t.Errorf("%d of %d confirmed elements are lost", f.lost, f.confirmed)
	}
	if f.refused == 0 || f.confirmed == 0 {
		t.Errorf("%d writes were refused and %d confirmed: nobody came too late", f.refused, f.confirmed)
	}
}
