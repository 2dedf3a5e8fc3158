package dashboards

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/silence"
	"github.com/anteroom/anteroom/metrics"
	"github.com/anteroom/anteroom/sync/observe"
)

func TestMain(m *testing.M) {
	silence.Logs()
	goleak.VerifyTestMain(m)
}

// The windows of counters. Grafana chooses interval so that it holds at least four scrapes; whole is the selected
// time range.
const (
	interval = "$__rate_interval"
	whole    = "$__range"
)

// dashboard is what is tested of a file.
type dashboard struct {
	UID, Title, Description string
	Editable                bool
	Templating              struct{ List []variable }
	Panels                  []panel
}

type variable struct {
	Type, Name, Label, Query, Definition, AllValue string
	Multi, IncludeAll                              bool
	Datasource                                     source
}

type source struct{ Type, UID string }

// templated is the data source that is chosen at the top.
var templated = source{"prometheus", "${datasource}"}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               source
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []target
}

type target struct {
	RefID, Expr, LegendFormat string
	Datasource                source
	Instant, Range            bool
}

// paths returns where the dashboards are.
func paths(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("../../metrics/grafana/*.json")
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	return all
}

// files returns the dashboards by the names of their files.
func files(t *testing.T) map[string]dashboard {
	t.Helper()
	all := map[string]dashboard{}
	for _, path := range paths(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(path)] = d
	}
	return all
}

// everyPanel calls f for each panel of each file.
func everyPanel(t *testing.T, f func(t *testing.T, p panel)) {
	t.Helper()
	for name, d := range files(t) {
		for _, p := range d.Panels {
			t.Run(name+"/"+p.Title, func(t *testing.T) { f(t, p) })
		}
	}
}

func TestDashboards_I1_PanelsAreComplete(t *testing.T) {
	everyPanel(t, func(t *testing.T, p panel) {
		if !slices.Contains([]string{"timeseries", "stat", "bargauge", "table"}, p.Type) {
			t.Errorf("the type is %s", p.Type)
		}
		if p.Title == "" || len(p.Description) < 10 || !strings.HasSuffix(p.Description, ".") || p.FieldConfig.Defaults.Unit == "" {
			t.Errorf("title %q, description %q, unit %q", p.Title, p.Description, p.FieldConfig.Defaults.Unit)
		}
		if p.Datasource != templated || len(p.Targets) == 0 {
			t.Errorf("data source %v, %d questions", p.Datasource, len(p.Targets))
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if q.Datasource != templated || refs[q.RefID] || q.Instant == q.Range || p.Type != "table" && q.LegendFormat == "" {
				t.Errorf("question %+v, asked twice: %v", q, refs[q.RefID])
			}
			refs[q.RefID] = true
		}
	})
}

func TestDashboards_I6_NothingCollides(t *testing.T) {
	uids := map[string]bool{}
	for name, d := range files(t) {
		if len(d.UID) < 8 || len(d.UID) > 40 || uids[d.UID] || d.Title == "" || d.Description == "" || d.Editable {
			t.Errorf("%s: uid %q, title %q, description %q, editable %v", name, d.UID, d.Title, d.Description, d.Editable)
		}
		uids[d.UID] = true
		ids, titles := map[int]bool{}, map[string]bool{}
		for _, p := range d.Panels {
			if p.ID <= 0 || ids[p.ID] || titles[p.Title] {
				t.Errorf("%s: %q has id %d, used before: %v; title used before: %v", name, p.Title, p.ID, ids[p.ID], titles[p.Title])
			}
			ids[p.ID], titles[p.Title] = true, true
		}
		var names []string
		for i, v := range d.Templating.List {
			names = append(names, v.Name)
			if i == 0 && (v.Type != "datasource" || v.Query != "prometheus") ||
				i > 0 && (v.Type != "query" || !v.Multi || !v.IncludeAll || v.AllValue != all(v.Name) || v.Datasource != templated || v.Definition != v.Query) || v.Label == "" {
				t.Errorf("%s: %+v", name, v)
			}
		}
		// They are the same everywhere, so that a link between dashboards keeps the choice.
		if want := []string{"datasource", "cluster", "namespace", "job", "instance", "class"}; !slices.Equal(names, want) {
			t.Errorf("%s: the variables are %v, want %v", name, names, want)
		}
	}
}

// all returns what chooses every value of a variable. Targets need not have the first two labels.
func all(variable string) string {
	if variable == "cluster" || variable == "namespace" {
		return ".*"
	}
	return ".+"
}

// family is what a Collector exports under one name.
type family struct {
	kind   string // COUNTER, GAUGE, HISTOGRAM
	labels []string
}

// counts is a Manager with one class, so that the metrics of a class exist.
type counts struct{}

func (counts) Counts() map[string]observe.Count {
	return map[string]observe.Count{"orders": {Held: 3, Waiting: 2, OldestHold: 1e9, OldestWait: 1e9}}
}

// families returns what a Collector exports that has seen everything, by name.
func families(t *testing.T, cfg metrics.Config) map[string]family {
	t.Helper()
	cfg.MaxClasses = 1
	c, err := metrics.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.Attach(counts{})
	callAll(c.Observer())
	c.Observer().Lost("orders", "for another reason")
	c.Observer().Lost("beyond the cap", observe.LostGone)
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	gathered, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]family{}
	for _, g := range gathered {
		f := family{kind: g.GetType().String()}
		for _, l := range g.GetMetric()[0].GetLabel() {
			f.labels = append(f.labels, l.GetName())
		}
		found[g.GetName()] = f
	}
	return found
}

// selector is one occurrence of a metric: the function called with it alone, its name, the part of a histogram, the
// matchers that every one has, that of a class, and the window.
var selector = regexp.MustCompile(`(\w+\()?\b(anteroom_\w+?)(_bucket|_sum|_count)?\{cluster=~"\$cluster",namespace=~"\$namespace",job=~"\$job",instance=~"\$instance"(,class=~"\$class")?[^}]*\}(\[[^\]]*\])?`)

// byCommand is the only label that Detail adds to a metric.
var byCommand = regexp.MustCompile(`\bcommand\b`)

func TestDashboards_I2_I3_I5_Selectors(t *testing.T) {
	known, shown := families(t, metrics.Config{Detail: true}), map[string]bool{}
	plain := families(t, metrics.Config{})
	everyPanel(t, func(t *testing.T, p panel) {
		for _, q := range p.Targets {
			found := selector.FindAllStringSubmatch(q.Expr, -1)
			if len(found) != strings.Count(q.Expr, "anteroom_") {
				t.Errorf("a metric is not chosen by cluster, namespace, job and instance: %s", q.Expr)
			}
			for _, m := range found {
				function, name, window := m[1], m[2], m[5]
				f := known[name]
				shown[name] = true
				detailed := plain[name].kind == "" || !slices.Equal(plain[name].labels, f.labels) && byCommand.MatchString(q.Expr)
				if detailed && !strings.Contains(p.Description, "metrics.Config.Detail") {
					t.Errorf("%s needs Detail, and the description does not say so", name)
				}
				if chosen := m[4] != ""; chosen != slices.Contains(f.labels, "class") {
					t.Errorf("%s is chosen by class: %v", name, chosen)
				}
				switch growing := function == "rate(" || function == "increase("; {
				case f.kind == "":
					t.Errorf("%s is not a metric of ours", name)
				case f.kind == "GAUGE" && !growing && window == "", f.kind != "GAUGE" && growing && window == "["+interval+"]":
				case f.kind == "GAUGE" || function != "increase(" || window != "["+whole+"]" || p.Type == "timeseries":
					t.Errorf("%s, a %s, stands under %s over %q", name, f.kind, function, window)
				}
			}
		}
	})
	if len(plain) < 15 || len(known) <= len(plain) {
		t.Errorf("%d metrics, and %d with Detail", len(plain), len(known))
	}
	for name := range known {
		if !shown[name] {
			t.Errorf("%s is exported and on no dashboard", name)
		}
	}
}
