package anteroomotel_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	anteroomotel "github.com/anteroom/anteroom/metrics/otel"
	anteroom "github.com/anteroom/anteroom/sync"
)

// A program that has set a global TracerProvider needs no option. Here the spans of a request go to a recorder and
// are printed.
func ExampleNew() {
	srv := miniredis.NewMiniRedis()
	if err := srv.Start(); err != nil {
		panic(err)
	}
	defer srv.Close()
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer rdb.Close()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))

	m, err := anteroom.NewManager(rdb, anteroom.Config{
		Tracer:   anteroomotel.New(anteroomotel.WithTracerProvider(provider)),
		Logger:   slog.New(slog.DiscardHandler),
		Defaults: anteroom.LockConfig{Name: "orders"},
	})
	if err != nil {
		panic(err)
	}
	defer m.CloseWithin(5 * time.Second)

	ctx, request := provider.Tracer("shop").Start(context.Background(), "POST /orders/42/pay")
	err = m.Mutex("order:42").Do(ctx, func(ctx context.Context) error {
		_, work := provider.Tracer("shop").Start(ctx, "charge") // a child of the request
		work.End()
		return nil
	})
	request.End()
	if err != nil {
		panic(err)
	}
	for _, span := range recorder.Ended() {
		fmt.Println(span.Name(), span.Parent().SpanID() == request.SpanContext().SpanID())
	}
	// Output:
	// anteroom.acquire true
	// charge true
	// anteroom.release true
	// POST /orders/42/pay false
}
