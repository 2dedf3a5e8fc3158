package dashboards

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// selector is one occurrence of a metric in an expression.
type selector struct {
	name     string            // as in the expression
	family   string            // without the part of a histogram
	suffix   string            // the part of a histogram, "" for the whole
	kind     kind              // of the family
	labels   []string          // of the family
	matchers map[string]string // operator and value by label
	window   string            // "" for none
	function string            // the function called with it alone
}

// Every name that is neither followed by "(" nor a label or a number is taken for a metric, so that a metric without
// braces, or one that is not ours, is found too.
var (
	found   = regexp.MustCompile(`([a-zA-Z_:]+\()?\b([a-z]+_[a-z_]+)(\{([^}]*)\})?(\[([^\]]*)\])?`)
	matcher = regexp.MustCompile(`^(\w+)(=~|!~|!=|=)"([^"]*)"$`)
	// PromQL words with an underscore that are not metrics
	functions = []string{"histogram_quantile", "histogram_sum", "histogram_count"}
)

// selectors finds the metrics of an expression.
func selectors(expr string) []selector {
	// Values of matchers may look like metrics; labels are in braces, or after "by".
	var list []selector
	for _, m := range found.FindAllStringSubmatch(grouping.ReplaceAllString(expr, ""), -1) {
		if slices.Contains(functions, m[2]) {
			continue
		}
		s := selector{name: m[2], family: m[2], window: m[6], function: strings.TrimSuffix(m[1], "("), matchers: map[string]string{}}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			short := strings.TrimSuffix(s.name, suffix)
			if _, ours := families[strings.TrimPrefix(short, prefix)]; ours && short != s.name {
				s.family, s.suffix = short, suffix
			}
		}
		f := families[strings.TrimPrefix(s.family, prefix)]
		s.kind, s.labels = f.kind, f.labels
		for _, text := range strings.Split(m[4], ",") {
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

var grouping = regexp.MustCompile(`by \([^)]*\)`)

func TestSelectors_FindsWhatStandsThere(t *testing.T) {
	got := selectors(`sum by (le_x) (rate(anteroom_hold_seconds_bucket{job=~"$job",class=~"a_b"}[$__rate_interval])) / other_metric + histogram_sum(anteroom_held)`)
	if len(got) != 3 || got[0].family != "anteroom_hold_seconds" || got[0].suffix != "_bucket" || got[0].function != "rate" ||
		got[0].matchers["job"] != "=~$job" || got[0].window != "$__rate_interval" || got[1].name != "other_metric" || got[2].name != "anteroom_held" {
		t.Errorf("%+v", got)
	}
}

// everySelector calls f for each metric of each expression.
func everySelector(t *testing.T, f func(t *testing.T, p Panel, s selector)) {
	t.Helper()
	everyPanel(t, func(t *testing.T, p Panel) {
		for _, q := range p.Targets {
			all := selectors(q.Expr)
			if len(all) == 0 {
				t.Errorf("no metric in %s", q.Expr)
			}
			for _, s := range all {
				f(t, p, s)
			}
		}
	})
}

func TestDashboards_I3_SelectorsFollowTheVariables(t *testing.T) {
	everySelector(t, func(t *testing.T, _ Panel, s selector) {
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
	})
}

func TestDashboards_I4_CountersStandUnderRate(t *testing.T) {
	everySelector(t, func(t *testing.T, p Panel, s selector) {
		switch {
		case s.kind == gauge:
			if s.function == "rate" || s.function == "increase" || s.window != "" {
				t.Errorf("%s is a gauge and stands under %s over %q", s.name, s.function, s.window)
			}
		case s.function == "increase" && s.window == whole && p.Type != typeSeries:
		case (s.function == "rate" || s.function == "increase") && s.window == interval:
		default:
			t.Errorf("%s stands under %q over %q", s.name, s.function, s.window)
		}
	})
}

func TestDashboards_I5_HistogramsAreClassicOrNative(t *testing.T) {
	histograms := 0
	everyPanel(t, func(t *testing.T, p Panel) {
		for _, q := range p.Targets {
			classic, native, ok := strings.Cut(q.Expr, " or ")
			for _, s := range selectors(q.Expr) {
				if s.kind != histogram {
					continue
				}
				histograms++
				if !ok || strings.Contains(native, " or ") {
					t.Fatalf("not classic or native: %s", q.Expr)
				}
			}
			for _, s := range selectors(classic) {
				if s.kind == histogram && s.suffix == "" {
					t.Errorf("native in the place of classic: %s", q.Expr)
				}
			}
			for _, s := range selectors(native) {
				if s.kind == histogram && s.suffix != "" {
					t.Errorf("classic in the place of native: %s", q.Expr)
				}
			}
		}
	})
	if histograms == 0 {
		t.Error("no histogram was seen: this test looks for the wrong thing")
	}
}
