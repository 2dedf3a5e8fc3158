package allpaths

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// notTaken are the values that no path counts, and why.
var notTaken = map[string]string{
	"class_overflows_total":                   "needs more than 100 classes; the tests of metrics have them",
	"unrecognized_reports_total":              "needs a program that feeds the Collector itself",
	"events_dropped_total":                    "needs 1024 events that OnEvent does not take",
	"events_total clock_jump":                 "needs a clock that somebody sets",
	"events_total self_late":                  "needs a process that is stopped",
	"watchdog_findings_total lease_over":      "needs a renewal loop that stands still",
	"watchdog_findings_total renewal_stalled": "the same",
	"recoveries_total restart_renewal":        "the same",
	"recoveries_total declined":               "needs a hold that ends between a finding and the action",
	"redis_commands_total exists":             "the library does not send it: a status says more",
	"redis_command_seconds exists":            "the same",
}

func TestAllPaths_I1_EveryValueIsCounted(t *testing.T) {
	r := Start(t, metrics.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { r.Work(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	start := time.Now()
	if err := r.TakeAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("all paths took %v", time.Since(start))
	// What ordinary work counts may come a moment later.
	deadline := time.Now().Add(moveTime)
	for {
		idle, err := r.Idle()
		if err != nil {
			t.Fatal(err)
		}
		var never []string
		for n := range idle {
			if notTaken[n] == "" {
				never = append(never, n)
			}
		}
		if len(never) == 0 {
			return
		}
		if time.Now().After(deadline) {
			slices.Sort(never)
			t.Fatalf("never counted: %q; let a path bring them about, or say in notTaken why not", never)
		}
		pause(t.Context(), 100*time.Millisecond)
	}
}
