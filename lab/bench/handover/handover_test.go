package handover

import (
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/proxy"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=1") // of the children, which end often
	child.Run(map[string]child.Role{RoleName: Role, proxy.RoleName: proxy.Role})
	goleak.VerifyTestMain(m)
}

// Through the proxy a hand-over takes at least the delay of the release to the server plus that of the message to the
// waiter, and a PING both delays: so they are measured in the right place, whatever else the machine does.
func TestHandover_I1_I2_ThroughTheProxy(t *testing.T) {
	const oneWay = 5 * time.Millisecond
	s := testredis.Start(t)
	p, err := proxy.Start(t.Context(), proxy.Plan{Target: s.Addr(), OneWay: oneWay}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, name := range []string{library.Anteroom, library.Redislock} {
		f, err := Run(t.Context(), Plan{Library: name, Kind: library.Short, Addr: p.Addr(), Key: name, For: 500 * time.Millisecond}, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		least := float64(2 * oneWay.Microseconds())
		if f[RoundTrip] < least || f[P50] < least || f[P99] < f[P50] || f[Max] < f[P99] || f[Count] < 2 {
			t.Errorf("%s: %v", name, f)
		}
		if got, want := f[RoundTrips], f[P50]/f[RoundTrip]; got != want {
			t.Errorf("%s: %v round trips, want %v", name, got, want)
		}
	}
}

func TestHandover_AProcessThatCannotBegin(t *testing.T) {
	if _, err := Run(t.Context(), Plan{Library: "no such"}, nil); err == nil || !strings.Contains(err.Error(), "no such") {
		t.Errorf("%v", err)
	}
}

// A library that does not lock is acquired before the release, and is not measured.
func TestHandover_I1_WhoDoesNotWait(t *testing.T) {
	s := testredis.Start(t)
	_, err := Run(t.Context(), Plan{Library: library.Nothing, Addr: s.Addr(), Key: "k", For: time.Second}, nil)
	if err == nil || !strings.Contains(err.Error(), "before it was released") {
		t.Errorf("%v", err)
	}
}

func TestQuantile(t *testing.T) {
	var all []time.Duration
	for i := range 100 {
		all = append(all, time.Duration(i+1)*time.Microsecond)
	}
	for q, want := range map[float64]float64{0: 1, 0.5: 51, 0.99: 100, 1: 100} {
		if got := quantile(all, q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
}
