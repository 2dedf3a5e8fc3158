package anteroom_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// margins records how much of the lease was left at each renewal, by class.
type margins struct {
	mu    sync.Mutex
	least map[string]time.Duration
	n     map[string]int
}

func (m *margins) Renewed(class string, o observe.Outcome, left time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o != observe.OutcomeRenewed {
		return
	}
	m.n[class]++
	if old, seen := m.least[class]; left >= 0 && (!seen || left < old) {
		m.least[class] = left
	}
}

// One node of a cluster hangs: the locks of the other are renewed as if nothing were.
func TestAHungNodeDelaysTheRenewalOfNoOther_Lab(t *testing.T) {
	t.Parallel()
	c := testredis.StartCluster(t, 2, 0)
	low, high := c.Nodes()[0], c.Nodes()[1]
	rdb := c.Client(t, func(o *redis.ClusterOptions) { o.ReadTimeout = pace.Scale(time.Second) })
	seen := &margins{least: map[string]time.Duration{}, n: map[string]int{}}
	m, rec := manager(t, rdb, anteroom.Config{Observer: hooks(seen), CommandTimeout: pace.Scale(time.Second)})
	lease := pace.Scale(3 * time.Second)
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
		<-h.Context().Done() // notified, each by its own deadline
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
	// Each lock is due three times a lease, with two thirds left. All hung locks in a row would delay one for much longer.
	late := 2*lease/3 - least
	if want := int(time.Since(begin)/(lease/3)-1) * len(holds) / 2; n < want || !pace.Within(late, lease/3) {
		t.Fatalf("%d renewals of %d locks in %v, least left %v", n, len(holds), time.Since(begin), least)
	}
	for _, h := range holds {
		ok(t, h.Release(bg))
	}
	for _, h := range hung {
		_ = h.Release(bg)
	}
	eventually(t, "every loss is reported", func() bool { return len(rec.of(observe.EventLost)) == len(hung) })
	eventually(t, "nothing is left", func() bool { return len(m.Snapshot()) == 0 })
}

// A Cluster that the Manager cannot see, since a plain client leads to it: the watchdog's and
// the renewals' batches are about keys of several slots there. A removal is reported in time all
// the same, and the user is notified once what to do.
func TestAClusterBehindAPlainClient_Lab(t *testing.T) {
	t.Parallel()
	node := testredis.StartCluster(t, 1, 0).Nodes()[0]
	m, rec := manager(t, node.Client(t), anteroom.Config{
		CommandTimeout: pace.Scale(time.Second), Defaults: anteroom.LockConfig{LeaseTime: time.Hour, WatchdogPeriod: 200 * time.Millisecond},
	})
	var holds []*anteroom.Hold
	for i := range 20 {
		holds = append(holds, acquire(t, m.Mutex(fmt.Sprint("key:", i))))
	}
	removed := time.Now()
	node.Client(t).Del(bg, "key:7")
	select {
	case <-holds[7].Context().Done():
		t.Log("noticed after", time.Since(removed))
	case <-time.After(pace.Hang): // renewals come after many minutes
		t.Error("the removal is not reported")
	}
	eventually(t, "a batch of several keys was refused", func() bool { return len(rec.of(observe.EventWarning)) > 0 })
	for i, h := range holds {
		if err := h.Release(bg); (err != nil) != (i == 7) {
			t.Errorf("%d: %v", i, err)
		}
	}
	var lost []observe.Event
	for _, e := range rec.of(observe.EventWarning) {
		if strings.Contains(e.Text, "Redis Cluster") && strings.Contains(e.Err.Error(), "redis.NewClusterClient") {
			lost = append(lost, e)
		}
	}
	if len(lost) != 1 {
		t.Errorf("warnings: %+v", rec.of(observe.EventWarning))
	}
}
