package metrics_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/anteroom/anteroom/metrics"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
	"github.com/anteroom/anteroom/sync/observe"
)

// Two lines, and both the registry and the page know the Manager; what the program had in its Config still is.
func TestInstrument(t *testing.T) {
	events, attached := make(chan observe.Event, 10), 0
	cfg := anteroom.Config{OnEvent: func(e observe.Event) { events <- e }, Attach: func(*anteroom.Manager) { attached++ }}
	registry := prometheus.NewRegistry()
	page, err := metrics.Instrument(&cfg, registry)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := metrics.Instrument(&cfg, prometheus.NewRegistry()); err == nil {
		t.Error("a second Observer replaces the first")
	}
	lt := locktest.NewManager(t, cfg, locktest.AllowLeaks())
	hold, err := lt.Mutex("order:42").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held := "# HELP anteroom_held Locks held by the attached Managers.\n# TYPE anteroom_held gauge\nanteroom_held{class=\"default\"} 1\n"
	if err := testutil.GatherAndCompare(registry, strings.NewReader(held), "anteroom_held"); err != nil {
		t.Error(err)
	}
	lt.Lose("order:42")
	for e := range events { // the program's own OnEvent is called, too
		if e.Kind == observe.EventLost {
			break
		}
	}
	_ = hold.Release(t.Context())
	answer := httptest.NewRecorder()
	page.ServeHTTP(answer, httptest.NewRequest("GET", "http://localhost/debug/anteroom/?format=json", nil))
	for _, want := range []string{lt.ClientID(), string(observe.EventLost), "instrument_test.go"} {
		if !strings.Contains(answer.Body.String(), want) {
			t.Errorf("the page does not show %q:\n%s", want, answer.Body)
		}
	}
	if attached != 1 {
		t.Errorf("the program's own Attach was called %d times", attached)
	}
}

// A nil Registerer registers nothing, as in promauto: the page works, and the Observer remains the program's.
func TestInstrument_WithoutARegisterer(t *testing.T) {
	var empty anteroom.Config
	if _, err := metrics.Instrument(&empty, nil); err != nil || empty.Observer != nil {
		t.Errorf("%v, and the Observer is %v", err, empty.Observer)
	}
	lost := make(chan string, 10)
	cfg := anteroom.Config{Observer: &observe.Observer{Lost: func(class string, _ observe.LossReason) { lost <- class }}}
	page, err := metrics.Instrument(&cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	lt := locktest.NewManager(t, cfg, locktest.AllowLeaks())
	hold, err := lt.Mutex("order:42").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lt.Lose("order:42")
	if class := <-lost; class != "default" {
		t.Errorf("a lock of class %q was lost", class)
	}
	_ = hold.Release(t.Context())
	answer := httptest.NewRecorder()
	page.ServeHTTP(answer, httptest.NewRequest("GET", "http://localhost/debug/anteroom/?format=json", nil))
	if !strings.Contains(answer.Body.String(), lt.ClientID()) {
		t.Errorf("the page does not show the Manager:\n%s", answer.Body)
	}
}
