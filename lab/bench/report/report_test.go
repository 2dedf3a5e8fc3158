package report

import (
	"encoding/xml"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/lab/bench/growth"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
	"github.com/anteroom/anteroom/lab/bench/plot"
	"github.com/anteroom/anteroom/lab/bench/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is one round of one library.
func result(scenario, library string, f measure.Figures) measure.Result {
	return measure.Summarize(measure.Setup{Scenario: scenario, Library: library, Version: "v1", Settings: "as it comes", Goroutines: 64, Processes: 1, Keys: 1}, []measure.Figures{f})
}

func TestRewrite_I1_I2_I3(t *testing.T) {
	results := []measure.Result{
		result("alone", "a", measure.Figures{measure.OpsPerS: 12345, measure.P50US: 0.5, measure.ClientCPUUSPerOp: 3}),
		result("alone", library.Redsync, measure.Figures{measure.OpsPerS: 1000}),
	}
	const document = "before\n<!-- bench:begin table alone -->\nold\n<!-- bench:end -->\n between \n" +
		"<!-- bench:begin table other -->\nkept\n<!-- bench:end --> after"
	got, missing, err := Rewrite(document, results)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(missing, []string{"table other"}) || !strings.Contains(got, "\nkept\n") {
		t.Errorf("missing %q in\n%s", missing, got)
	}
	if strings.Contains(got, "old") || !strings.HasPrefix(got, "before\n<!--") || !strings.Contains(got, "<!-- bench:end -->\n between \n<!--") || !strings.HasSuffix(got, "<!-- bench:end --> after") {
		t.Errorf("what is outside of the marks has changed:\n%s", got)
	}
	if !strings.Contains(got, "| a | 12.3 k | 12.3 | –…– | 500 ns |") {
		t.Errorf("the table is\n%s", got)
	}
	again, _, err := Rewrite(got, results)
	if err != nil || again != got {
		t.Errorf("a second time, %v:\n%s", err, again)
	}
	for _, bad := range []string{
		"<!-- bench:begin table alone -->", "<!-- bench:begin nothing -->\n<!-- bench:end -->", "<!-- bench:begin  -->\n<!-- bench:end -->",
		"<!-- bench:begin table alone -->\n<!-- bench:begin table alone -->\n<!-- bench:end -->",
	} {
		if _, _, err := Rewrite(bad, results); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

// everything has a result for each library of each scenario, with all figures.
func everything() (all []measure.Result) {
	for i, sc := range scenario.Table() {
		for _, lib := range sc.Libraries {
			f := measure.Figures{}
			for _, c := range compared {
				f[c.name] = 100 + float64(i)
			}
			for _, a := range axes {
				for _, name := range a.figures {
					f[name] = 7
				}
			}
			for _, target := range sc.Targets {
				f[target.Figure] = 3
			}
			for _, name := range []measure.Figure{measure.MinPerGoroutine, measure.MaxPerGoroutine, measure.MinPerProcess, measure.MaxPerProcess, "handover_p50_round_trips"} {
				f[name] = float64(i + 1)
			}
			if b, ok := library.BudgetOf(lib); ok {
				f[scenario.BudgetHandoffs], f[scenario.BudgetTimeMS] = float64(b.Handoffs), float64(b.Time.Milliseconds())
			}
			all = append(all, measure.Summarize(measure.Setup{
				Scenario: sc.Name, Library: lib, Goroutines: sc.Load.Goroutines, Processes: max(sc.Processes, 1), Keys: sc.Load.Keys,
			}, []measure.Figures{f}))
		}
	}
	return all
}

// Every chart can be drawn when everything is measured, and none when nothing is.
func TestCharts(t *testing.T) {
	all, files := everything(), map[string]bool{}
	for _, c := range Charts() {
		if files[c.File] || filepath.Ext(c.File) != ".svg" {
			t.Errorf("file %q", c.File)
		}
		files[c.File] = true
		svg, there, err := c.Draw(all)
		if err != nil || !there {
			t.Errorf("%s: %v, %v", c.File, there, err)
			continue
		}
		if err := xml.Unmarshal(svg, new(struct{})); err != nil {
			t.Errorf("%s: %v", c.File, err)
		}
		if again, _, _ := c.Draw(all); string(again) != string(svg) {
			t.Errorf("%s: a second time it is another one", c.File)
		}
		if _, there, err := c.Draw(nil); there || err != nil {
			t.Errorf("%s is drawn from nothing: %v", c.File, err)
		}
	}
}

// documents show the charts: the first has those that most readers want, the second all others.
var documents = []string{"../../../docs/performance.md", "../../../docs/generated/benchmarks.md"}

// Every block of the documents can be made if everything is measured, and every chart is shown in one of them.
func TestDocument_CanBeMade(t *testing.T) {
	shown := map[string]bool{}
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		if _, missing, err := Rewrite(string(text), everything()); err != nil || len(missing) > 0 {
			t.Errorf("%s: %v; missing %q", document, err, missing)
		}
		for _, m := range regexp.MustCompile(`\((?:\.\./)?plots/(.*?)\)`).FindAllStringSubmatch(string(text), -1) {
			shown[m[1]] = true
			if !slices.ContainsFunc(Charts(), func(c Chart) bool { return c.File == m[1] }) {
				t.Errorf("%s shows %s, which nobody draws", document, m[1])
			}
		}
	}
	for _, c := range Charts() {
		if !shown[c.File] {
			t.Errorf("no document shows %s", c.File)
		}
	}
}

// The documents agree with the results beside them.
func TestDocument_IsMadeFromTheResults(t *testing.T) {
	f, err := os.Open("../results.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	results, err := measure.ReadJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range documents {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		made, missing, err := Rewrite(string(text), results)
		if err != nil {
			t.Fatal(err)
		}
		if len(missing) > 0 {
			t.Skip("bench/results.json is of a quick run, or of some scenarios")
		}
		if made != string(text) {
			t.Errorf("%s is not made from bench/results.json: run go run . -render -plots ../docs/plots -pages ../docs/performance.md,../docs/generated/benchmarks.md in bench", page)
		}
	}
	for _, c := range Charts() {
		svg, _, err := c.Draw(results)
		if err != nil {
			t.Fatalf("%s: %v", c.File, err)
		}
		if old, err := os.ReadFile("../../../docs/plots/" + c.File); err != nil || string(old) != string(svg) {
			t.Errorf("%s is not drawn from bench/results.json: %v", c.File, err)
		}
	}
}

func TestSlope(t *testing.T) {
	for want, f := range map[float64]func(x float64) float64{
		1: func(x float64) float64 { return 3 * x }, 0: func(float64) float64 { return 7 }, 2: func(x float64) float64 { return x * x },
		-0.5: func(x float64) float64 { return 100 / math.Sqrt(x) },
	} {
		var points []plot.Point
		for _, x := range []float64{1, 10, 64, 1000} {
			points = append(points, plot.Point{X: x, Y: f(x)})
		}
		if got, ok := slope(points); !ok || math.Abs(got-want) > 1e-9 {
			t.Errorf("the slope is %v, want %v", got, want)
		}
	}
	for _, points := range [][]plot.Point{nil, {{X: 1, Y: 1}}, {{X: 1, Y: 1}, {X: 1, Y: 2}}, {{X: 1, Y: 0}, {X: 2, Y: 1}}} {
		if _, ok := slope(points); ok {
			t.Errorf("%v has a slope", points)
		}
	}
}

// The estimate follows from the measurements.
func TestEstimate(t *testing.T) {
	held := result("held-100000", library.Anteroom, measure.Figures{growth.RedisCPU: 10, growth.RedisBytes: 200})
	held.Keys = 100_000
	s := set{
		result("many-keys", library.Anteroom, measure.Figures{measure.RedisCPUUSPerOp: 20}), held,
		result("second-process", library.AnteroomFair, measure.Figures{measure.RedisCPUUSPerOp: 0.05}),
	}
	got := estimate(s, nil)
	// Half a core at 20 µs each: 25,000. At 1 µs a second for each lock: 500,000.
	if !strings.Contains(got, "| 1 | 25 k | 500 k | 95.4 MiB | 10 M |") || !strings.Contains(got, "| 3 | 75 k | 1.5 M | 95.4 MiB | 30 M |") {
		t.Errorf("%s", got)
	}
	if estimate(s[:2], nil) != "" {
		t.Error("it was estimated from less than all it takes")
	}
}

func TestBetter_ListsWhatPeersDoBetter(t *testing.T) {
	got := better(set{
		result("alone", library.Anteroom, measure.Figures{measure.OpsPerS: 100, measure.BytesPerOp: 400, measure.AllocsPerOp: 10}),
		result("alone", library.Redsync, measure.Figures{measure.OpsPerS: 104, measure.BytesPerOp: 200, measure.AllocsPerOp: 20}),
		result("alone", library.Mutex, measure.Figures{measure.OpsPerS: 1e6}),
	}, nil)
	if !strings.Contains(got, "| bytes to and from Redis for each acquisition: 400, 200 redsync |") || strings.Count(got, "\n") != 3 {
		t.Errorf("%s", got)
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		name measure.Figure
		v    float64
		want string
	}{
		{measure.P50US, 0.332, "332 ns"},
		{measure.P99US, 1234, "1.23 ms"},
		{measure.MaxUS, 2.4e6, "2.4 s"},
		{measure.OpsPerS, 650415, "650 k"},
		{growth.CPU, 36.1, "36.1 %"},
		{growth.HeapPerItem, 1024, "1,024 B"},
		{growth.HeapGrowth, 1064800, "1.06 MB"},
		{growth.LeastLeft, 18.5, "18.5 s"},
		{scenario.TimePerOp, 120, "120 µs"},
		{measure.CommandsPerOp, 2, "2"},
	} {
		if got := text(c.name, c.v); got != c.want {
			t.Errorf("%s of %v is %q, want %q", c.name, c.v, got, c.want)
		}
	}
}
