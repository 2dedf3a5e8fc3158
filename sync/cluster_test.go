package anteroom_test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// twoNodes starts a cluster of two masters: slots below and from 8192.
func twoNodes(t *testing.T) (low, high *testredis.Server, rdb *redis.ClusterClient) {
	t.Helper()
	low, high = testredis.Start(t, "--cluster-enabled", "yes"), testredis.Start(t, "--cluster-enabled", "yes")
	a, b := low.Client(t), high.Client(t)
	ok(t, a.ClusterAddSlotsRange(bg, 0, 8191).Err())
	ok(t, b.ClusterAddSlotsRange(bg, 8192, 16383).Err())
	ok(t, b.Do(bg, "cluster", "set-config-epoch", 2).Err())
	host, port, err := net.SplitHostPort(high.Addr())
	ok(t, err)
	ok(t, a.ClusterMeet(bg, host, port).Err())
	eventually(t, 20*time.Second, "the cluster is up", func() bool {
		up := func(c *redis.Client) bool {
			info := c.ClusterInfo(bg).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_slots_ok:16384")
		}
		return up(a) && up(b)
	})
	rdb = redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{low.Addr(), high.Addr()}, ReadTimeout: time.Second})
	t.Cleanup(func() { _ = rdb.Close() })
	return low, high, rdb
}

// margins records how much of the lease was left at each renewal, by class.
type margins struct {
	anteroom.NopObserver
	mu    sync.Mutex
	least map[string]time.Duration
	n     map[string]int
}

func (m *margins) Renewed(class string, o anteroom.RenewOutcome, left time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o != anteroom.RenewedOK {
		return
	}
	m.n[class]++
	if old, seen := m.least[class]; !seen || left < old {
		m.least[class] = left
	}
}

// One node of a cluster hangs: the locks of the other are renewed as if nothing were.
func TestAHungNodeDelaysTheRenewalOfNoOther(t *testing.T) {
	low, high, rdb := twoNodes(t)
	seen := &margins{least: map[string]time.Duration{}, n: map[string]int{}}
	m, rec := manager(t, rdb, anteroom.Config{Observer: seen})
	const lease = 3 * time.Second
	var holds, hung []*anteroom.Hold
	for i := range 40 {
		key := fmt.Sprint("key:", i)
		slot := low.Client(t).ClusterKeySlot(bg, key).Val()
		class := "low"
		if slot >= 8192 {
			class = "high"
		}
		h := acquire(t, mutex(t, m, anteroom.LockConfig{Key: key, Name: class, LeaseTime: lease}))
		if class == "high" {
			hung = append(hung, h)
		} else {
			holds = append(holds, h)
		}
	}
	if len(holds) == 0 || len(hung) == 0 {
		t.Fatal("all keys on one node")
	}
	begin := time.Now()
	high.Pause()
	for _, h := range hung {
		<-h.Context().Done() // told, each by its own deadline
	}
	timer := time.NewTimer(lease)
	<-timer.C
	for _, h := range holds {
		if err := h.Err(); err != nil {
			t.Fatalf("a lock on the healthy node: %v", err)
		}
	}
	high.Resume()
	seen.mu.Lock()
	least, n := seen.least["low"], seen.n["low"]
	seen.mu.Unlock()
	// Each lock is due once a second; a renewal in time leaves most of the lease.
	if want := int(time.Since(begin)/time.Second-1) * len(holds); n < want || least < lease/3 {
		t.Fatalf("%d renewals of %d locks in %v, least left %v", n, len(holds), time.Since(begin), least)
	}
	for _, h := range holds {
		ok(t, h.Release(bg))
	}
	for _, h := range hung {
		_ = h.Release(bg)
	}
	eventually(t, 10*time.Second, "every loss is reported", func() bool { return len(rec.of(anteroom.EventLost)) == len(hung) })
	eventually(t, 10*time.Second, "nothing is left", func() bool { return len(m.Snapshot()) == 0 })
}
