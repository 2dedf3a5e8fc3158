// Command observability wires up everything that watches locks: Prometheus metrics, the debug page, OpenTelemetry
// spans, events and structured logs.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/anteroom/anteroom/metrics"
	anteroomotel "github.com/anteroom/anteroom/metrics/otel"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

func main() {
	url := flag.String("redis", "redis://localhost:6379", "URL of Redis")
	addr := flag.String("listen", "localhost:9464", "where operators reach /metrics and /debug/anteroom/")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *url, *addr); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url, addr string) error {
	exporter, err := stdouttrace.New() // in production: otlptracegrpc
	if err != nil {
		return err
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter, trace.WithBatchTimeout(time.Second)))
	defer provider.Shutdown(context.WithoutCancel(ctx))
	otel.SetTracerProvider(provider)

	cfg := anteroom.Config{
		Logger:   slog.New(slog.NewJSONHandler(os.Stderr, nil)),
		Tracer:   anteroomotel.New(),
		Defaults: anteroom.LockConfig{Name: "example"},
		OnEvent: func(e observe.Event) {
			if e.Kind == observe.EventLost {
				fmt.Println("page somebody:", e.Kind)
			}
		},
	}
	page, err := metrics.Instrument(&cfg, prometheus.DefaultRegisterer)
	if err != nil {
		return err
	}
	m, err := anteroom.Open(ctx, url, cfg)
	if err != nil {
		return err
	}
	defer m.CloseWithin(5 * time.Second)

	// Both show what only operators may see: not on the port that users reach.
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.Handler())
	mux.Handle("/debug/anteroom/", page)
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("serving on", l.Addr())
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go srv.Serve(l)
	defer srv.Close()

	for ctx.Err() == nil {
		_ = m.Mutex("example").Do(ctx, func(ctx context.Context) error {
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
			}
			return ctx.Err()
		})
	}
	return nil
}
