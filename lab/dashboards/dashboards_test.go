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

	"github.com/anteroom/anteroom/metrics"
	"github.com/anteroom/anteroom/sync/observe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// files returns the dashboards by the names of their files.
func files(t *testing.T) map[string]dashboard {
	t.Helper()
	paths, err := filepath.Glob("../../metrics/grafana/*.json")
	if err != nil || len(paths) != 3 {
		t.Fatal(paths, err)
	}
	all := map[string]dashboard{}
	for _, path := range paths {
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
				i > 0 && (v.Type != "query" || !v.Multi || !v.IncludeAll || v.AllValue != ".+" || v.Datasource != templated || v.Definition != v.Query) || v.Label == "" {
				t.Errorf("%s: %+v", name, v)
			}
		}
		// They are the same everywhere, so that a link between dashboards keeps the choice.
		if want := []string{"datasource", "job", "instance", "class"}; !slices.Equal(names, want) {
			t.Errorf("%s: the variables are %v, want %v", name, names, want)
		}
	}
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

// families returns what a Collector exports, by name.
func families(t *testing.T) map[string]family {
	t.Helper()
	c, err := metrics.New(metrics.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c.Attach(counts{})
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

// selector is one occurrence of a metric in an expression.
type selector struct {
	family                             // nothing if the Collector does not export it
	name, base       string            // as in the expression, and without the part of a histogram
	matchers         map[string]string // operator and value by label
	window, function string            // the function called with it alone
}

// Every name that is neither followed by "(" nor a label or a number is taken for a metric, so that a metric without
// braces, or one that is not ours, is found too.
var (
	occurrence = regexp.MustCompile(`([a-zA-Z_:]+\()?\b([a-z]+_[a-z_]+)(\{([^}]*)\})?(\[([^\]]*)\])?`)
	matcher    = regexp.MustCompile(`^(\w+)(=~|!~|!=|=)"([^"]*)"$`)
	grouping   = regexp.MustCompile(`by \([^)]*\)`)
	functions  = []string{"histogram_quantile", "histogram_sum", "histogram_count"}
)

// selectors finds the metrics of an expression.
func selectors(known map[string]family, expr string) (list []selector) {
	for _, m := range occurrence.FindAllStringSubmatch(grouping.ReplaceAllString(expr, ""), -1) {
		if slices.Contains(functions, m[2]) {
			continue
		}
		s := selector{name: m[2], base: m[2], window: m[6], function: strings.TrimSuffix(m[1], "("), matchers: map[string]string{}}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if short := strings.TrimSuffix(s.name, suffix); known[short].kind == "HISTOGRAM" {
				s.base = short
			}
		}
		s.family = known[s.base]
		for text := range strings.SplitSeq(m[4], ",") {
			if p := matcher.FindStringSubmatch(text); p != nil {
				s.matchers[p[1]] = p[2] + p[3]
			} else if text != "" {
				s.matchers[text] = "" // is found to be unknown
			}
		}
		list = append(list, s)
	}
	return list
}

func TestDashboards_I2_I3_I5_Selectors(t *testing.T) {
	known, shown := families(t), map[string]bool{}
	everyPanel(t, func(t *testing.T, p panel) {
		for _, q := range p.Targets {
			for _, s := range selectors(known, q.Expr) {
				shown[s.base] = true
				want := []string{"job", "instance"}
				if slices.Contains(s.labels, "class") {
					want = append(want, "class")
				}
				for _, label := range want {
					if s.matchers[label] != "=~$"+label {
						t.Errorf("%s is not chosen by %s: %v", s.name, label, s.matchers)
					}
				}
				for label := range s.matchers {
					if !slices.Contains(want, label) && !slices.Contains(s.labels, label) {
						t.Errorf("%s has no label %q", s.name, label)
					}
				}
				growing := s.function == "rate" || s.function == "increase"
				switch {
				case s.kind == "":
					t.Errorf("%s is not a metric of ours", s.name)
				case s.kind == "GAUGE" && (growing || s.window != ""):
					t.Errorf("%s is a gauge and stands under %s over %q", s.name, s.function, s.window)
				case s.kind == "GAUGE", growing && s.window == interval:
				case s.function != "increase" || s.window != whole || p.Type == "timeseries":
					t.Errorf("%s stands under %q over %q", s.name, s.function, s.window)
				}
			}
		}
	})
	for name := range known {
		if !shown[name] {
			t.Errorf("%s is exported and on no dashboard", name)
		}
	}
}

func TestDashboards_I4_HistogramsAreClassicOrNative(t *testing.T) {
	known, seen := families(t), 0
	everyPanel(t, func(t *testing.T, p panel) {
		for _, q := range p.Targets {
			if !slices.ContainsFunc(selectors(known, q.Expr), func(s selector) bool { return s.kind == "HISTOGRAM" }) {
				continue
			}
			seen++
			classic, native, ok := strings.Cut(q.Expr, " or ")
			if !ok || strings.Contains(native, " or ") {
				t.Fatalf("not classic or native: %s", q.Expr)
			}
			for _, s := range selectors(known, classic) {
				if s.kind == "HISTOGRAM" && s.name == s.base {
					t.Errorf("native in the place of classic: %s", q.Expr)
				}
			}
			for _, s := range selectors(known, native) {
				if s.name != s.base {
					t.Errorf("classic in the place of native: %s", q.Expr)
				}
			}
		}
	})
	if seen == 0 {
		t.Error("no histogram was seen: this test looks for the wrong thing")
	}
}
