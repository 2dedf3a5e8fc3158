package metrics_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/metrics"
	anteroom "github.com/anteroom/anteroom/sync"
)

// A Collector is the Manager's Observer, reads the Manager at each scrape, and is registered by the program, here in
// a registry of its own.
func Example() {
	srv := miniredis.NewMiniRedis()
	if err := srv.Start(); err != nil {
		panic(err)
	}
	defer srv.Close()
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer rdb.Close()
	ctx := context.Background()

	c, err := metrics.New(metrics.Config{})
	if err != nil {
		panic(err)
	}
	m, err := anteroom.NewManager(rdb, anteroom.Config{
		Observer: c.Observer(),
		Logger:   slog.New(slog.DiscardHandler),
		Defaults: anteroom.LockConfig{Name: "orders"},
	})
	if err != nil {
		panic(err)
	}
	defer m.CloseWithin(5 * time.Second)
	c.Attach(m)
	registry := prometheus.NewRegistry()
	registry.MustRegister(c) // and serve it: promhttp.HandlerFor(registry, …)

	hold, err := m.Mutex("order:42").Acquire(ctx)
	if err != nil {
		panic(err)
	}
	show(registry, "anteroom_held", "anteroom_lost_total")
	if err := hold.Release(ctx); err != nil {
		panic(err)
	}
	show(registry, "anteroom_held")

	// Output:
	// anteroom_held{class="orders"} 1
	// anteroom_lost_total{class="orders",reason="deadline"} 0
	// anteroom_lost_total{class="orders",reason="gone"} 0
	// anteroom_lost_total{class="orders",reason="watchdog"} 0
	// anteroom_held{class="orders"} 0
}

// show prints the counters and gauges with these names.
func show(g prometheus.Gatherer, names ...string) {
	families, err := g.Gather()
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		for _, f := range families {
			if f.GetName() != name {
				continue
			}
			for _, m := range f.GetMetric() {
				sep := "{"
				fmt.Print(name)
				for _, l := range m.GetLabel() {
					fmt.Printf("%s%s=%q", sep, l.GetName(), l.GetValue())
					sep = ","
				}
				fmt.Printf("} %v\n", m.GetCounter().GetValue()+m.GetGauge().GetValue())
			}
		}
	}
}
