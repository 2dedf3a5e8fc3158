package dashboards

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testprom"
	"github.com/anteroom/anteroom/lab/allpaths"
	"github.com/anteroom/anteroom/metrics"
)

// The values that Grafana would substitute for its variables. The windows are longer than the run, so that each path
// is still in them after the last one; no test depends on the speed of the machine.
var filled = strings.NewReplacer(interval, "10m", whole, "10m", "$job", "(shops|none)", "$instance", ".+", "$class", ".+")

func TestDashboards_I8_EveryExpressionGivesNumbers(t *testing.T) {
	t.Run("classic", func(t *testing.T) {
		p := played(t, metrics.Config{})
		whatIsMissingIsSeen(t, p)
		mustAnswer(t, p, "anteroom_hold_seconds_bucket", true)
		mustAnswer(t, p, "anteroom_hold_seconds", false)
		allAnswer(t, p)
	})
	t.Run("native", func(t *testing.T) {
		p := played(t, metrics.Config{NativeHistograms: true}, "--enable-feature=native-histograms")
		mustAnswer(t, p, "anteroom_hold_seconds_bucket", false)
		mustAnswer(t, p, "anteroom_hold_seconds", true)
		allAnswer(t, p)
	})
}

// whatIsMissingIsSeen proves that the checks below can fail.
func whatIsMissingIsSeen(t *testing.T, p *testprom.Server) {
	t.Helper()
	for _, expr := range []string{"sum(", "anteroom_no_such_metric", "vector(0) / vector(0)", `anteroom_held{class="nobody"}`} {
		if numbersMissing(t, p, expr) == "" {
			t.Errorf("%s gives numbers", expr)
		}
	}
	for _, query := range []string{"label_values(anteroom_managers, nothing)", "label_values(job)"} {
		if valuesMissing(t, p, query) == "" {
			t.Errorf("%s gives values", query)
		}
	}
}

// played returns a Prometheus that has seen all paths, and continues to scrape the ordinary work.
func played(t *testing.T, cfg metrics.Config, flags ...string) *testprom.Server {
	run := allpaths.Start(t, cfg)
	var targets []testprom.Target
	for i, h := range run.Handlers() {
		srv := httptest.NewServer(h)
		t.Cleanup(srv.Close)
		targets = append(targets, testprom.Target{Job: "shops", Instance: fmt.Sprintf("shop-%d", i+1), Addr: srv.Listener.Addr().String()})
	}
	p := testprom.Start(t, targets, flags...)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { run.Work(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	// Rates need an earlier sample.
	mustAnswer(t, p, `count(anteroom_held{class="orders"}) == 3`, true)
	if err := run.TakeAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// scrapeTime bounds the wait for a scrape of what was counted, which takes two seconds on an idle machine.
const scrapeTime = 2 * time.Minute

// mustAnswer waits until expr has a result, or checks that it has none.
func mustAnswer(t *testing.T, p *testprom.Server, expr string, want bool) {
	t.Helper()
	complaint := ""
	for deadline := time.Now().Add(scrapeTime); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		got, err := p.Query(t.Context(), expr)
		if err == nil && (len(got) > 0) == want {
			return
		}
		complaint = fmt.Sprintf("%d series, %v", len(got), err)
	}
	t.Fatalf("%s: %s", expr, complaint)
}

// allAnswer evaluates every variable, every expression and every record of the rules, again and again until what the
// run counted last has been scraped.
func allAnswer(t *testing.T, p *testprom.Server) {
	t.Helper()
	var missing []string
	for deadline := time.Now().Add(scrapeTime); ; time.Sleep(500 * time.Millisecond) {
		asked := 0
		missing = nil
		note := func(where, complaint string) {
			if asked++; complaint != "" {
				missing = append(missing, where+": "+complaint)
			}
		}
		for name, d := range read(t) {
			for _, v := range d.Templating.List[1:] {
				note(name+", variable "+v.Name, valuesMissing(t, p, v.Query))
			}
			for _, panel := range d.Panels {
				for _, q := range panel.Targets {
					note(fmt.Sprintf("%s, %s, %s: %s", name, panel.Title, q.RefID, q.Expr), numbersMissing(t, p, filled.Replace(q.Expr)))
				}
			}
		}
		for name, expr := range recorded(t) {
			note("rules.yml, "+name, numbersMissing(t, p, expr))
		}
		if asked < 92 {
			t.Fatalf("only %d questions: this test looks for the wrong thing", asked)
		}
		if len(missing) == 0 {
			t.Logf("%d questions have answers", asked)
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(strings.Join(missing, "\n"))
		}
	}
}

var record = regexp.MustCompile(`(?m)^ +- record: (\S+)\n +expr: (?:\|\n((?: {10}.*\n)+)|(.*)\n)`)

// recorded returns the expressions of the recording rules, by name. promtool's cases for them have no native
// histograms, which Debian's version cannot make up.
func recorded(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../metrics/prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	records := map[string]string{}
	for _, m := range record.FindAllStringSubmatch(string(text), -1) {
		records[m[1]] = strings.ReplaceAll(m[2]+m[3], "[5m]", "[10m]") // longer than the run, as in filled
	}
	if len(records) < 12 {
		t.Fatalf("only %d records: this test looks for the wrong thing", len(records))
	}
	return records
}

var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

// valuesMissing queries a variable as Grafana does.
func valuesMissing(t *testing.T, p *testprom.Server, query string) string {
	m := labelValues.FindStringSubmatch(query)
	if m == nil {
		return "is not label_values(…): " + query
	}
	values, err := p.LabelValues(t.Context(), filled.Replace(m[1]), m[2])
	if err != nil || len(values) == 0 {
		return fmt.Sprintf("%q, %v", values, err)
	}
	return ""
}

// numbersMissing evaluates an expression. A share or a quantile of nothing is not a number, so if several series are
// returned, one for a class or command with nothing to measure may not be a number; otherwise each must be one.
func numbersMissing(t *testing.T, p *testprom.Server, expr string) string {
	got, err := p.Query(t.Context(), expr)
	if err != nil {
		return err.Error()
	}
	numbers := 0
	for _, s := range got {
		if !strings.HasSuffix(s.Points[0].Value, "NaN") && !strings.HasSuffix(s.Points[0].Value, "Inf") {
			numbers++
		}
	}
	mayBeNone := strings.Contains(expr, "histogram_") || strings.Contains(expr, " / ")
	switch {
	case numbers == 0:
		return fmt.Sprintf("%d series and no number", len(got))
	case numbers < len(got) && !mayBeNone:
		return fmt.Sprintf("%d of %d series are no numbers", len(got)-numbers, len(got))
	}
	return ""
}
