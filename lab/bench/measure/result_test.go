package measure_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/lab/bench/measure"
)

// keys are the keys of results.json for every scenario in one process.
var keys = []string{
	"scenario", "library", "goroutines", "processes", "keys", "hold_us", "fair", "ops_per_s", "p50_us", "p99_us", "max_us",
	"min_per_goroutine", "max_per_goroutine", "redis_commands_per_op", "allocs_per_op", "bytes_per_op",
	"client_cpu_us_per_op", "redis_cpu_us_per_op", "violations",
}

// TestResult_KeysAndAbsence is I3: measured figures have all their keys, even if they are 0, and others have none.
func TestResult_KeysAndAbsence(t *testing.T) {
	measured := measure.Tally{Ops: 1, Elapsed: time.Second, Processes: 1}
	full := measured.Figures().Add(measure.Reading{}.PerOp(measure.Reading{}, 1, nil))
	setup := measure.Setup{Scenario: "s", Library: "l", Goroutines: 1, Processes: 1, Keys: 1, Hold: time.Millisecond}
	var buf bytes.Buffer
	err := measure.WriteJSON(&buf, []measure.Result{
		measure.Summarize(setup, []measure.Figures{full}),
		measure.Summarize(setup, []measure.Figures{{measure.OpsPerS: 7}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	var objects []map[string]any
	if err := json.Unmarshal(buf.Bytes(), &objects); err != nil || len(objects) != 2 {
		t.Fatalf("%v, %d objects in %s", err, len(objects), buf.Bytes())
	}
	for _, key := range keys {
		if _, ok := objects[0][key]; !ok {
			t.Errorf("%s is not there", key)
		}
	}
	if objects[0]["hold_us"] != 1000.0 || objects[0]["violations"] != 0.0 || objects[0]["fair"] != false {
		t.Errorf("%v", objects[0])
	}
	got := slices.Sorted(maps.Keys(objects[1]))
	want := []string{"fair", "goroutines", "hold_us", "keys", "library", "ops_per_s", "processes", "rounds", "scenario", "settings", "spread", "version"}
	if !slices.Equal(got, want) {
		t.Errorf("with one figure: %v", got)
	}
	if !strings.HasPrefix(buf.String(), `[`+"\n"+`  {"scenario":"s","library":"l","goroutines":1,"processes":1,"keys":1,"hold_us":1000,"fair":false,"ops_per_s":`) {
		t.Errorf("the keys have lost their order: %.200s", buf.String())
	}
}

// TestSummarize: medians of odd and even numbers of rounds, the spread, and the figures
// that are not medians.
func TestSummarize(t *testing.T) {
	rounds := []measure.Figures{
		{measure.OpsPerS: 5, measure.P50US: 1, measure.MaxUS: 7, measure.Violations: 0, measure.Failures: 1},
		{measure.OpsPerS: 1, measure.P50US: 2, measure.MaxUS: 9, measure.Violations: 1, measure.Failures: 1},
		{measure.OpsPerS: 3, measure.MaxUS: 8, measure.Violations: 0, measure.Failures: 1},
	}
	r := measure.Summarize(measure.Setup{}, rounds)
	want := measure.Figures{measure.OpsPerS: 3, measure.P50US: 1.5, measure.MaxUS: 9, measure.Violations: 1, measure.Failures: 3}
	if !maps.Equal(r.Figures, want) || r.Rounds != 3 {
		t.Errorf("%v in %d rounds", r.Figures, r.Rounds)
	}
	if r.Spread[measure.OpsPerS] != [2]float64{1, 5} || r.Spread[measure.MaxUS] != [2]float64{7, 9} {
		t.Errorf("%v", r.Spread)
	}
}
