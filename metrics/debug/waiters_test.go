package debug_test

import (
	"strings"
	"testing"

	"github.com/anteroom/anteroom/metrics/debug"
	"github.com/anteroom/anteroom/sync/observe"
)

func TestReport_WaitersShowModeAndUnits(t *testing.T) {
	p := newPage(t, debug.Config{})
	p.Attach(&fixed{observe.Survey{States: []observe.State{
		{Key: "rw", Waiting: 1, Waiters: []observe.WaiterState{{Goroutine: 7, Kind: "hold", Mode: "read", Units: 1}}},
		{Key: "sem", Waiting: 1, Waiters: []observe.WaiterState{{Goroutine: 8, Kind: "hold", Units: 3}}},
	}}})
	for query, words := range map[string][]string{
		"/?format=html": {"goroutine 7, hold, to read", "goroutine 8, hold, units: 3"},
		"/?format=json": {`"mode":"read","units":1`, `"mode":"","units":3`},
	} {
		body := get(t, p, query).Body.String()
		for _, w := range words {
			if !strings.Contains(body, w) && !strings.Contains(strings.Join(strings.Fields(body), ""), w) {
				t.Errorf("%s does not say %q", query, w)
			}
		}
	}
}
