package allpaths

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// notTaken are the values that no path counts, with the reason.
var notTaken = map[string]string{
	"events_total long_wait":                  "needs a wait above the threshold; the tests of sync have it",
	"events_total deadlock":                   "needs two goroutines that stay parked for good; the tests of sync have them",
	"class_overflows_total":                   "needs more than 100 classes; the tests of metrics have them",
	"unrecognized_reports_total":              "needs a program that feeds the Collector itself",
	"events_dropped_total":                    "needs 1024 events that OnEvent does not take",
	"events_total clock_jump":                 "needs a clock that somebody sets",
	"events_total self_late":                  "needs a process that is stopped",
	"watchdog_findings_total lease_over":      "needs a renewal loop that stands still",
	"watchdog_findings_total renewal_stalled": "the same",
	"recoveries_total restart_renewal":        "the same",
	"recoveries_total declined":               "needs a hold that ends between a finding and the action",
}

// complete waits until everything that is not in notTaken was counted. Some of it is ordinary work, and may come a
// moment after the last path.
func (r *Run) complete(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		never, err := r.idle()
		if err != nil || len(never) == 0 {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("never counted: %q; a path has to bring them about, or notTaken has to say why none does", never)
		}
		pause(ctx, 100*time.Millisecond)
	}
}

// idle returns what no counter and no histogram of any process has counted: names of metrics, and their label values.
// Classes are not included.
func (r *Run) idle() ([]string, error) {
	counted := map[string]bool{}
	for _, p := range r.processes {
		list, err := p.samples()
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			if s.gauge {
				continue // a gauge says nothing about the past
			}
			counted[s.name] = counted[s.name] || s.value > 0
			for _, v := range s.values {
				n := s.name + " " + v
				counted[n] = counted[n] || s.value > 0
			}
		}
	}
	maps.DeleteFunc(counted, func(n string, was bool) bool { return was || notTaken[n] != "" })
	return slices.Sorted(maps.Keys(counted)), nil
}
