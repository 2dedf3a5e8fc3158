package metrics_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/metrics"
	"github.com/anteroom/anteroom/sync/observe"
)

// calls are all observer methods, with their frequent arguments.
func calls(c *metrics.Collector, class string) map[string]func() {
	const d = 3 * time.Millisecond
	return map[string]func(){
		"Acquired":         func() { c.Observer().Acquired(class, observe.OutcomeHandedOff, d) },
		"Acquired refused": func() { c.Observer().Acquired(class, observe.OutcomeRefused, d) },
		"Called":           func() { c.Observer().Called(class, "entered") },
		"Released":         func() { c.Observer().Released(class, observe.OutcomeHandedOff, d) },
		"Renewed":          func() { c.Observer().Renewed(class, observe.OutcomeRenewed, d) },
		"Lost":             func() { c.Observer().Lost(class, observe.LostGone) },
		"Command":          func() { c.Observer().Command("acquire", "ok", d) },
		"Checked":          func() { c.Observer().Checked("lock_status", "healthy") },
		"Checked finding":  func() { c.Observer().Checked("lock_status", "field_gone") },
		"Recovered":        func() { c.Observer().Recovered("connection", "reconnect", "helped") },
		"Alert":            func() { c.Observer().Alert(class, "renewal", true) },
		"Subscription":     func() { c.Observer().Subscription(true) },
		"EventRaised":      func() { c.Observer().EventRaised(observe.EventLost, true) },
		"unrecognized":     func() { c.Observer().Lost(class, "perhaps") },
	}
}

func TestMetrics_I3_NoAllocationOnceTheClassIsKnown(t *testing.T) {
	for _, detail := range []bool{false, true} {
		c, err := metrics.New(metrics.Config{MaxClasses: 1, Detail: detail})
		if err != nil {
			t.Fatal(err)
		}
		c.Observer().Lost("orders", observe.LostGone)
		c.Observer().Lost("beyond", observe.LostGone)
		for _, class := range []string{"orders", "one of many beyond the cap"} {
			for name, call := range calls(c, class) {
				call() // a native histogram creates a bucket at its first value
				if n := testing.AllocsPerRun(100, call); n != 0 {
					t.Errorf("detail %v, class %q: %s allocates %v times", detail, class, name, n)
				}
			}
		}
	}
}

// A registry that stops receiving in the middle of a scrape blocks no report, not even one of a new class.
func TestMetrics_I3_ASlowScrapeDelaysNoReport(t *testing.T) {
	c, err := metrics.New(metrics.Config{MaxClasses: 1000})
	if err != nil {
		t.Fatal(err)
	}
	c.Observer().Lost("orders", observe.LostGone)
	ch, ended := make(chan prometheus.Metric), make(chan struct{})
	go func() {
		defer close(ended)
		c.Collect(ch)
		close(ch)
	}()
	// However far the scrape has got, reports go through.
	for i := 0; ; i++ {
		if _, more := <-ch; !more {
			break
		}
		reported := make(chan struct{})
		go func() {
			defer close(reported)
			for _, call := range calls(c, fmt.Sprintf("class %d", i)) {
				call()
			}
			m := &counts{}
			c.Attach(m)
			c.Detach(m)
		}()
		select {
		case <-reported:
		case <-time.After(pace.Hang):
			t.Fatalf("a report waits for the scrape that has handed out %d metrics", i+1)
		}
	}
	<-ended
}

func BenchmarkObserver(b *testing.B) {
	c, err := metrics.New(metrics.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("acquire+release", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Observer().Acquired("orders", observe.OutcomeHandedOff, time.Millisecond)
			c.Observer().Released("orders", observe.OutcomeHandedOff, time.Millisecond)
		}
	})
	b.Run("acquire+release/parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				c.Observer().Acquired("orders", observe.OutcomeHandedOff, time.Millisecond)
				c.Observer().Released("orders", observe.OutcomeHandedOff, time.Millisecond)
			}
		})
	})
}

func BenchmarkCollect100Classes(b *testing.B) {
	c, r := newCollector(b, metrics.Config{})
	for i := range 100 {
		c.Observer().Lost(string(rune('A'+i)), observe.LostGone)
	}
	for b.Loop() {
		if _, err := r.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
