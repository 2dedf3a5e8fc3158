package dashboards

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/metrics"
	"github.com/anteroom/anteroom/sync/observe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// folder is where the files are.
const folder = "../../metrics/grafana"

// With ANTEROOM_UPDATE set this writes the files instead: that is `make dashboards`.
func TestDashboards_I1_FilesAreWhatThisPackageMakes(t *testing.T) {
	made, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("ANTEROOM_UPDATE") != "" {
		for name, text := range made {
			if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	present, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range present {
		if made[filepath.Base(path)] == nil {
			t.Errorf("%s is not generated", path)
		}
	}
	for name, want := range made {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator produces: change the generator and run `make dashboards`", name)
		}
	}
}

// read returns the files as Grafana sees them, by name.
func read(t *testing.T) map[string]Dashboard {
	t.Helper()
	files := map[string]Dashboard{}
	for name := range All() {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		var d Dashboard
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		files[name] = d
	}
	return files
}

// everyPanel calls f for each panel of each file.
func everyPanel(t *testing.T, f func(t *testing.T, p Panel)) {
	t.Helper()
	for name, d := range read(t) {
		for _, p := range d.Panels {
			t.Run(name+"/"+p.Title, func(t *testing.T) { f(t, p) })
		}
	}
}

func TestDashboards_I2_PanelsAreComplete(t *testing.T) {
	everyPanel(t, func(t *testing.T, p Panel) {
		if !slices.Contains([]string{typeSeries, typeStat, typeBars, typeTable}, p.Type) {
			t.Errorf("the type is %s", p.Type)
		}
		if p.Title == "" || len(p.Description) < 10 || p.FieldConfig.Defaults.Unit == "" {
			t.Errorf("title %q, description %q, unit %q", p.Title, p.Description, p.FieldConfig.Defaults.Unit)
		}
		if last := p.Description[len(p.Description)-1]; last != '.' {
			t.Errorf("the description is no sentence: %q", p.Description)
		}
		if p.Datasource != prometheusSource || len(p.Targets) == 0 {
			t.Errorf("data source %v, %d questions", p.Datasource, len(p.Targets))
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if q.Datasource != prometheusSource || refs[q.RefID] || q.Instant == q.Range {
				t.Errorf("question %s: data source %v, asked twice %v, instant %v, range %v", q.RefID, q.Datasource, refs[q.RefID], q.Instant, q.Range)
			}
			if p.Type != typeTable && q.LegendFormat == "" {
				t.Errorf("question %s has no name", q.RefID)
			}
			refs[q.RefID] = true
		}
	})
}

func TestDashboards_I7_NothingCollides(t *testing.T) {
	uids := map[string]bool{}
	for name, d := range read(t) {
		if len(d.UID) < 8 || len(d.UID) > 40 || uids[d.UID] {
			t.Errorf("%s: uid %q", name, d.UID)
		}
		uids[d.UID] = true
		if d.Title == "" || d.Description == "" || d.Editable {
			t.Errorf("%s: title %q, description %q, editable %v", name, d.Title, d.Description, d.Editable)
		}
		ids, titles := map[int]bool{}, map[string]bool{}
		var taken [1000][gridWidth]string
		for _, p := range d.Panels {
			if p.ID <= 0 || ids[p.ID] || titles[p.Title] {
				t.Errorf("%s: %q has id %d, used before: %v; title used before: %v", name, p.Title, p.ID, ids[p.ID], titles[p.Title])
			}
			ids[p.ID], titles[p.Title] = true, true
			g := p.GridPos
			if g.X < 0 || g.Y < 0 || g.W <= 0 || g.H <= 0 || g.X+g.W > gridWidth {
				t.Fatalf("%s: %q is off the grid: %+v", name, p.Title, g)
			}
			for y := g.Y; y < g.Y+g.H; y++ {
				for x := g.X; x < g.X+g.W; x++ {
					if taken[y][x] != "" {
						t.Fatalf("%s: %q lies on %q", name, p.Title, taken[y][x])
					}
					taken[y][x] = p.Title
				}
			}
		}
	}
}

func TestDashboards_VariablesAreTheSameEverywhere(t *testing.T) {
	for name, d := range read(t) {
		var names []string
		for i, v := range d.Templating.List {
			names = append(names, v.Name)
			if v.Label == "" {
				t.Errorf("%s: %s has no label", name, v.Name)
			}
			if i == 0 {
				if v.Type != "datasource" || v.Query != "prometheus" {
					t.Errorf("%s: the data source is %+v", name, v)
				}
				continue
			}
			if v.Type != "query" || !v.Multi || !v.IncludeAll || v.AllValue != ".+" || *v.Datasource != prometheusSource || v.Definition != v.Query {
				t.Errorf("%s: %+v", name, v)
			}
		}
		if want := []string{"datasource", "job", "instance", "class"}; !slices.Equal(names, want) {
			t.Errorf("%s: the variables are %v, want %v", name, names, want)
		}
	}
}

// exported returns the types and labels of what a Collector exports, by name.
func exported(t *testing.T) map[string]family {
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
	kinds := map[string]kind{"COUNTER": counter, "GAUGE": gauge, "HISTOGRAM": histogram}
	found := map[string]family{}
	for _, g := range gathered {
		f := family{kind: kinds[g.GetType().String()]}
		for _, l := range g.GetMetric()[0].GetLabel() {
			f.labels = append(f.labels, l.GetName())
		}
		found[g.GetName()] = f
	}
	return found
}

// counts is a Manager with one class, so that the metrics of a class exist.
type counts struct{}

func (counts) Counts() map[string]observe.Count { return map[string]observe.Count{"orders": {}} }

func TestDashboards_I6_MetricsAreThoseOfTheCollector(t *testing.T) {
	real := exported(t)
	known := map[string]bool{}
	for name, f := range families {
		known[prefix+name] = true
		got, ok := real[prefix+name]
		labels := slices.Sorted(slices.Values(f.labels))
		if !ok || got.kind != f.kind || !slices.Equal(got.labels, labels) {
			t.Errorf("%s: the Collector exports %+v, the table says %+v", name, got, f)
		}
	}
	shown := map[string]bool{}
	for _, d := range read(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				for _, s := range selectors(q.Expr) {
					shown[s.family] = true
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(real)) {
		if !known[name] {
			t.Errorf("%s is exported and not in the table: add it, and show it somewhere", name)
		}
		if !shown[name] {
			t.Errorf("%s is exported and on no dashboard", name)
		}
	}
	for name := range shown {
		if !strings.HasPrefix(name, prefix) {
			t.Errorf("%s is not a metric of ours", name)
		}
	}
}
