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

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/anteroom/anteroom/internal/testprom"
	"github.com/anteroom/anteroom/metrics"
	"github.com/anteroom/anteroom/sync/observe"
)

// setup is a Prometheus and what is asked of it.
type setup struct {
	*testprom.Server
	clusters bool              // its targets have the labels cluster and namespace
	names    []string          // of the dashboards
	filled   *strings.Replacer // the values that Grafana would substitute for its variables
}

// choose returns the values of variables. The windows are longer than the run, so that no test depends on the speed of
// the machine.
func choose(cluster, namespace string) *strings.Replacer {
	return strings.NewReplacer(interval, "10m", whole, "10m", "$cluster", cluster, "$namespace", namespace, "$job", "(shops|none)", "$instance", ".+", "$class", ".+")
}

func TestDashboards_I4_I7_EveryExpressionGivesNumbers(t *testing.T) {
	t.Run("classic", func(t *testing.T) {
		allAnswer(t, setup{scraped(t, metrics.Config{}, nil), false, []string{"overview.json"}, choose(".*", ".*")})
	})
	t.Run("native", func(t *testing.T) {
		labels := map[string]string{"cluster": "eu", "namespace": "prod"}
		p := scraped(t, metrics.Config{Detail: true}, labels, "--enable-feature=native-histograms")
		allAnswer(t, setup{p, true, []string{"overview.json", "class.json", "redis.json"}, choose("eu", "(prod|none)")})
	})
}

// scraped returns a Prometheus that scrapes a Collector of which every hook is called again and again.
func scraped(t *testing.T, cfg metrics.Config, labels map[string]string, flags ...string) *testprom.Server {
	c, err := metrics.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.Attach(counts{})
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	srv := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(srv.Close)
	p := testprom.Start(t, []testprom.Target{{Job: "shops", Instance: "shop-1", Addr: srv.Listener.Addr().String(), Labels: labels}}, flags...)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			callAll(c.Observer())
			time.Sleep(50 * time.Millisecond) // a rate needs samples that differ
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return p
}

// callAll calls every hook with every value of its labels.
func callAll(o *observe.Observer) {
	const class, took = "orders", 20 * time.Millisecond
	l := observe.Labels()
	for _, outcome := range l.Acquire {
		o.Acquired(class, outcome, took)
	}
	for _, how := range l.Calls {
		o.Called(class, how)
	}
	for _, outcome := range l.Release {
		o.Released(class, outcome, took)
	}
	for _, outcome := range l.Renew {
		o.Renewed(class, outcome, took)
	}
	for _, reason := range l.Losses {
		o.Lost(class, reason)
	}
	for _, command := range l.Commands {
		for _, outcome := range l.CommandOutcomes {
			o.Command(command, outcome, took)
		}
	}
	for _, check := range l.Checks {
		for _, finding := range append(l.Findings, "healthy", "unknown") {
			o.Checked(check, finding)
		}
		for _, action := range l.Actions {
			for _, outcome := range l.RecoveryOutcomes {
				o.Recovered(check, action, outcome)
			}
		}
		o.Alert(class, check, true)
	}
	for _, kind := range l.Events {
		o.EventRaised(kind, true)
	}
	o.Subscription(true)
}

// allAnswer evaluates every variable, every expression and every record of the rules, again and again until all have
// been scraped often enough.
func allAnswer(t *testing.T, s setup) {
	t.Helper()
	// The checks below can fail.
	for _, expr := range []string{"sum(", "anteroom_no_such_metric", "vector(0) / vector(0)", `anteroom_held{class="nobody"}`} {
		if numbersMissing(t, s.Server, expr) == "" {
			t.Errorf("%s gives numbers", expr)
		}
	}
	for _, query := range []string{"label_values(anteroom_managers, nothing)", "label_values(job)"} {
		if valuesMissing(t, s, query) == "" {
			t.Errorf("%s gives values", query)
		}
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(500 * time.Millisecond) {
		asked := 0
		var missing []string
		note := func(where, complaint string) {
			if asked++; complaint != "" {
				missing = append(missing, where+": "+complaint)
			}
		}
		dashboards := files(t)
		for _, name := range s.names {
			d := dashboards[name]
			for _, v := range d.Templating.List[1:] {
				if s.clusters || all(v.Name) == ".+" {
					note(name+", variable "+v.Name, valuesMissing(t, s, v.Query))
				}
			}
			for _, panel := range d.Panels {
				for _, q := range panel.Targets {
					note(fmt.Sprintf("%s, %s, %s: %s", name, panel.Title, q.RefID, q.Expr), numbersMissing(t, s.Server, s.filled.Replace(q.Expr)))
				}
			}
		}
		for name, expr := range recorded(t) {
			note("rules.yml, "+name, numbersMissing(t, s.Server, expr))
		}
		if asked < 40 || s.clusters && asked < 98 {
			t.Fatalf("only %d questions: this test looks for the wrong thing", asked)
		}
		if len(missing) == 0 {
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
func valuesMissing(t *testing.T, s setup, query string) string {
	m := labelValues.FindStringSubmatch(query)
	if m == nil {
		return "is not label_values(…): " + query
	}
	values, err := s.LabelValues(t.Context(), s.filled.Replace(m[1]), m[2])
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
