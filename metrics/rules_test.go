package metrics_test

import (
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/metrics"
)

const (
	rulesFile   = "prometheus/rules.yml"
	casesFile   = "prometheus/rules_test.yml"
	clusterFile = "prometheus/clusters_test.yml"
	runbookPage = "../docs/runbook.md"
	runbooks    = "https://github.com/anteroom/anteroom/blob/main/docs/runbook.md#"
)

// rule is an alert or a record of rules.yml.
type rule struct {
	kind, name, expr string
	fields           map[string]string // severity and annotations
}

var (
	ruleStart = regexp.MustCompile(`^ +- (alert|record): (\S+)$`)
	ruleField = regexp.MustCompile(`^ +(expr|severity|summary|description|runbook_url): (.*)$`)
)

// readRules parses the file by lines: it is ours, and promtool checks that it is YAML.
func readRules(t *testing.T) []rule {
	t.Helper()
	var rules []rule
	inside := false // a block of several lines
	for line := range strings.Lines(readFile(t, rulesFile)) {
		line = strings.TrimRight(line, "\n")
		if m := ruleStart.FindStringSubmatch(line); m != nil {
			rules = append(rules, rule{kind: m[1], name: m[2], fields: map[string]string{}})
			inside = false
			continue
		}
		if len(rules) == 0 {
			continue
		}
		r := &rules[len(rules)-1]
		switch m := ruleField.FindStringSubmatch(line); {
		case m != nil && m[1] == "expr":
			if inside = m[2] == "|"; !inside {
				r.expr = m[2]
			}
		case m != nil:
			r.fields[m[1]] = strings.Trim(m[2], `"`)
		case inside && strings.HasPrefix(line, "          "):
			r.expr += strings.TrimSpace(line) + " "
		default:
			inside = false
		}
	}
	if len(rules) < 30 {
		t.Fatalf("only %d rules", len(rules))
	}
	return rules
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// promtool checks that the file is valid, and runs the cases.
func TestRules_PromtoolAgrees(t *testing.T) {
	tool := promtool(t)
	for _, args := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", rulesFile},
		{"test", "rules", casesFile, clusterFile},
	} {
		if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

var (
	selector = regexp.MustCompile(`[a-zA-Z0-9_:]*anteroom_[a-zA-Z0-9_:]*(\{[^}]*\})?`)
	matcher  = regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)"([^"]*)"`)
	grouping = regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`)
)

// exported returns the values of each label of each exported metric; of the metrics that a rule of the file records,
// only the names.
func exported(t *testing.T, rules []rule) map[string]map[string][]string {
	t.Helper()
	c, r := newCollector(t, metrics.Config{MaxClasses: 1})
	c.Attach(&counts{"orders": {}})
	everything(c.Observer(), "orders", "beyond the cap")
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]map[string][]string{}
	for _, f := range families {
		labels := map[string][]string{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = append(labels[l.GetName()], l.GetValue())
			}
		}
		known[f.GetName()] = labels
		if f.GetType().String() == "HISTOGRAM" {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				known[f.GetName()+suffix] = labels
			}
		}
	}
	for _, r := range rules {
		if r.kind == "record" {
			known[r.name] = map[string][]string{}
		}
	}
	return known
}

// A rule about something that does not exist is no error, it just never fires: so each name of a metric, a label and
// a label's value must be one that the Collector exports, without Detail. The same is so of the overview.
func TestRules_NameOnlyWhatTheCollectorExports(t *testing.T) {
	rules := readRules(t)
	known := exported(t, rules)
	for _, r := range append(rules, overview(t)...) {
		names := selector.FindAllString(r.expr, -1)
		if len(names) == 0 {
			t.Errorf("%s asks for nothing of ours: %s", r.name, r.expr)
		}
		labels := []string{"cluster", "namespace", "job", "instance", "le"}
		for _, s := range names {
			name, matchers, _ := strings.Cut(s, "{")
			values, ok := known[name]
			if !ok {
				t.Errorf("%s asks for %s, which nobody exports or records", r.name, name)
				continue
			}
			labels = slices.AppendSeq(labels, maps.Keys(values))
			for _, m := range matcher.FindAllStringSubmatch(matchers, -1) {
				if strings.HasPrefix(m[2], "$") { // a variable of the dashboard
					if !slices.Contains(labels, m[1]) {
						t.Errorf("%s asks for %s with %s, which it does not have", r.name, name, m[1])
					}
					continue
				}
				for v := range strings.SplitSeq(m[2], "|") {
					if !slices.Contains(values[m[1]], v) {
						t.Errorf("%s asks for %s with %s %q, which it never has", r.name, name, m[1], v)
					}
				}
			}
		}
		for _, m := range grouping.FindAllStringSubmatch(r.expr, -1) {
			for l := range strings.SplitSeq(m[1], ", ") {
				if !slices.Contains(labels, l) {
					t.Errorf("%s groups by %q, which none of its metrics has", r.name, l)
				}
			}
		}
	}
}

var acrossAll = regexp.MustCompile(`\b(sum|min|max|avg|count)\s*\(|\b(ignoring|without)\b`)

// A sum over clusters would hide the one that fails, and a comparison across them would compare strangers.
func TestRules_KeepClustersApart(t *testing.T) {
	asked := 0
	for _, r := range readRules(t) {
		for _, m := range grouping.FindAllStringSubmatch(r.expr, -1) {
			if asked++; !strings.HasPrefix(m[1]+",", "cluster, namespace, job,") {
				t.Errorf("%s groups by %q", r.name, m[1])
			}
		}
		if acrossAll.MatchString(r.expr) {
			t.Errorf("%s sums over clusters: %s", r.name, r.expr)
		}
	}
	if asked < 40 {
		t.Errorf("only %d groups", asked)
	}
}

var quantile = regexp.MustCompile(`histogram_quantile\((\S+), sum by \(([^)]*), le\) \(rate\((\w+)_bucket\[`)

// A server has the classic buckets or the native histogram, so each expression asks for either, with the same
// arguments.
func TestRules_HistogramsAreClassicOrNative(t *testing.T) {
	asked := 0
	for _, r := range readRules(t) {
		if strings.Contains(r.expr, "_seconds_sum[") {
			asked++
			if !strings.Contains(r.expr, "or histogram_sum(") || !strings.Contains(r.expr, "/ histogram_count(") {
				t.Errorf("%s asks for classic sums only: %s", r.name, r.expr)
			}
		}
		if strings.Contains(r.expr, "histogram_quantile(") {
			asked++
			m := quantile.FindStringSubmatch(r.expr)
			if m == nil || !strings.Contains(r.expr, "or histogram_quantile("+m[1]+", sum by ("+m[2]+") (rate("+m[3]+"[") {
				t.Errorf("%s does not ask for classic or native: %s", r.name, r.expr)
			}
		}
	}
	if asked < 5 {
		t.Errorf("only %d histograms are asked for", asked)
	}
}

var runbook = regexp.MustCompile(`(?m)^### (Anteroom\w+)\n\n\*(\w+)\.\*`)

// Each alert has its section of docs/runbook.md, which names it and has the same severity; no section is about an
// alert that does not exist.
func TestRules_EachAlertHasItsRunbook(t *testing.T) {
	sections := map[string]string{}
	for _, m := range runbook.FindAllStringSubmatch(readFile(t, runbookPage), -1) {
		sections[m[1]] = m[2]
	}
	alerts := map[string]string{}
	for _, r := range readRules(t) {
		if r.kind != "alert" {
			continue
		}
		alerts[r.name] = r.fields["severity"]
		if !slices.Contains([]string{"critical", "warning"}, r.fields["severity"]) {
			t.Errorf("%s has the severity %q", r.name, r.fields["severity"])
		}
		if r.fields["summary"] == "" || r.fields["description"] == "" {
			t.Errorf("%s lacks summary or description", r.name)
		}
		if want := runbooks + strings.ToLower(r.name); r.fields["runbook_url"] != want {
			t.Errorf("%s has the runbook %q, want %q", r.name, r.fields["runbook_url"], want)
		}
	}
	if !maps.Equal(sections, alerts) {
		t.Errorf("the page has runbooks for\n%v\nand the alerts are\n%v", sections, alerts)
	}
}

// Each alert is shown inactive, firing and cleared, in that order, and each record has a value that is expected.
func TestRules_EachRuleHasItsCases(t *testing.T) {
	cases := readFile(t, casesFile)
	states := map[string]string{}
	for block := range strings.SplitSeq(cases, "      - eval_time: ") {
		_, rest, ok := strings.Cut(block, "alertname: ")
		if !ok {
			continue
		}
		name, rest, _ := strings.Cut(rest, "\n")
		switch {
		case strings.HasPrefix(strings.TrimSpace(rest), "exp_alerts: []"):
			states[name] += "quiet "
		case strings.Contains(rest, "exp_labels: {") && strings.Contains(rest, "runbook_url: "):
			states[name] += "fires "
		}
	}
	for _, r := range readRules(t) {
		if r.kind == "alert" && (states[r.name] == "" || strings.ReplaceAll(states[r.name], "quiet fires quiet ", "") != "") {
			t.Errorf("%s is shown as %q, want quiet, firing and quiet again", r.name, states[r.name])
		}
		if r.kind == "record" && !strings.Contains(cases, "- labels: '"+r.name+"{") {
			t.Errorf("%s has no case", r.name)
		}
	}
}
