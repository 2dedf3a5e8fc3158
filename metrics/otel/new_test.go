package anteroomotel_test

import (
	"context"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	anteroomotel "github.com/anteroom/anteroom/metrics/otel"
	"github.com/anteroom/anteroom/sync/observe"
)

// The provider can be replaced only once in a process.
var (
	global sync.Once
	spans  = tracetest.NewSpanRecorder()
)

// Without an option, spans go to the global provider, even one that is set later.
func TestNew_UsesTheGlobalProvider(t *testing.T) {
	tracer := anteroomotel.New()
	global.Do(func() { otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))) })
	before := len(spans.Ended())
	_, ended := tracer.StartAcquire(context.Background(), observe.AcquireStart{Op: "acquire"})
	ended(observe.AcquireEnd{Outcome: observe.OutcomeGranted, Holder: "host-1-0123456789ab:7"})
	if n := len(spans.Ended()) - before; n != 1 {
		t.Errorf("%d spans", n)
	}
}

// The library uses the API; the SDK is the program's.
func TestImports_TheAPIAlone(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if deps := string(out); !strings.Contains(deps, "go.opentelemetry.io/otel/trace\n") || strings.Contains(deps, "go.opentelemetry.io/otel/sdk") || strings.Contains(deps, "prometheus") {
		t.Errorf("it depends on\n%s", deps)
	}
}
