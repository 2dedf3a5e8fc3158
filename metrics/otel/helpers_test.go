package anteroomotel_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/internal/silence"
	anteroomotel "github.com/anteroom/anteroom/metrics/otel"
	anteroom "github.com/anteroom/anteroom/sync"
)

func TestMain(m *testing.M) {
	silence.Logs()
	goleak.VerifyTestMain(m)
}

var bg = context.Background()

// laboratory is an embedded server in virtual time, behind a faulty network, and the spans created.
type laboratory struct {
	*miniredis.Miniredis
	t        *testing.T
	net      *faultnet.Network
	spans    *tracetest.SpanRecorder
	provider *sdktrace.TracerProvider
}

// inside runs f in a bubble and checks that every started span has ended by its end (I1).
func inside(t *testing.T, f func(l *laboratory), opts ...sdktrace.TracerProviderOption) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := miniredis.NewMiniRedis()
		gate := faultnet.NewGate(s)
		t.Cleanup(gate.Close)
		l := &laboratory{Miniredis: s, t: t, spans: tracetest.NewSpanRecorder()}
		l.net = faultnet.New(gate.Dial)
		l.provider = sdktrace.NewTracerProvider(append(opts, sdktrace.WithSpanProcessor(l.spans))...)
		f(l)
		if n, m := len(l.spans.Started()), len(l.spans.Ended()); n != m {
			t.Errorf("I1: %d spans were started, %d ended", n, m)
		}
		l.net.Heal()
		time.Sleep(2 * time.Second) // go-redis keeps dialing
	})
}

// manager returns a Manager with a Tracer and connections of its own.
func (l *laboratory) manager(opts ...anteroomotel.Option) *anteroom.Manager {
	rdb := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:6379", DisableIdentity: true, ReadTimeout: 5 * time.Second, Dialer: l.net.Dial,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	l.t.Cleanup(func() { _ = rdb.Close() })
	m := must[*anteroom.Manager](l.t)(anteroom.NewManager(rdb, anteroom.Config{
		Logger: slog.New(slog.DiscardHandler), Defaults: anteroom.LockConfig{Name: "orders", Reentrant: true},
		Tracer: anteroomotel.New(append([]anteroomotel.Option{anteroomotel.WithTracerProvider(l.provider)}, opts...)...),
	}))
	l.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(bg, 5*time.Second)
		defer cancel()
		_ = m.Close(ctx)
	})
	return m
}

// refuse makes Redis refuse connections, until nothing is sent any more: a connection of m that is found dead may have
// carried a command, whose outcome is then unknown.
func (l *laboratory) refuse(m *anteroom.Manager) {
	l.t.Helper()
	l.net.Refuse()
	l.net.CloseAll()
	for range 100 {
		if _, err := m.Inspect(bg, "any"); !errors.Is(err, anteroom.ErrUnknown) {
			return
		}
	}
	l.t.Fatal("connections without end")
}

// request starts a span as a caller does.
func (l *laboratory) request() (context.Context, trace.Span) {
	return l.provider.Tracer("program").Start(bg, "request")
}

// named returns the ended spans with that name, in the order in which they ended.
func (l *laboratory) named(name string) []sdktrace.ReadOnlySpan {
	var list []sdktrace.ReadOnlySpan
	for _, s := range l.spans.Ended() {
		if s.Name() == name {
			list = append(list, s)
		}
	}
	return list
}

// one returns the only span with that name.
func (l *laboratory) one(name string) sdktrace.ReadOnlySpan {
	l.t.Helper()
	list := l.named(name)
	if len(list) != 1 {
		l.t.Fatalf("%d spans of the name %s", len(list), name)
	}
	return list[0]
}

// value returns an attribute of a span as text, "" if it has none.
func value(s sdktrace.ReadOnlySpan, key attribute.Key) string {
	for _, a := range s.Attributes() {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

// says fails the test unless the attributes of s are as given.
func says(t *testing.T, s sdktrace.ReadOnlySpan, want map[attribute.Key]string) {
	t.Helper()
	for key, v := range want {
		if got := value(s, key); got != v {
			t.Errorf("%s: %s is %q, want %q", s.Name(), key, got, v)
		}
	}
}

// linked fails the test unless s links to the span to, and to no other.
func linked(t *testing.T, s, to sdktrace.ReadOnlySpan) {
	t.Helper()
	if l := s.Links(); len(l) != 1 || l[0].SpanContext.SpanID() != to.SpanContext().SpanID() {
		t.Errorf("%s has the links %+v, want one to %s", s.Name(), l, to.Name())
	}
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// together runs f n times concurrently.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// firstGrant is the number of a Manager's first grant in virtual time, which begins in 2000.
const firstGrant = "1000000000000001"
