package metrics_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/metrics"
)

const page = "../docs/reference/metrics.md"

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var quoted = regexp.MustCompile("`([^`]*)`")

// words returns the words in back quotes.
func words(cell string) []string {
	var list []string
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		list = append(list, m[1])
	}
	return list
}

// rows returns the cells of the page's table rows with n columns, without the headers.
func rows(text string, n int) [][]string {
	var list [][]string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) == n && strings.Contains(line, "`") {
			list = append(list, cells)
		}
	}
	return list
}

// The tables name every metric, with its type, its labels and their values, and no others.
func TestDocs_TablesMatchTheMetrics(t *testing.T) {
	text := readPage(t)
	c, r := newCollector(t, metrics.Config{Detail: true})
	everything(c.Observer(), "orders")
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	type key struct{ family, label string }
	real, values := map[string]string{}, map[key][]string{}
	for _, f := range families {
		var labels []string
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName())
				k := key{strings.TrimPrefix(f.GetName(), "anteroom_"), l.GetName()}
				values[k] = append(values[k], l.GetValue())
			}
		}
		slices.Sort(labels)
		real[f.GetName()] = fmt.Sprint(strings.ToLower(f.GetType().String()), slices.Compact(labels))
	}
	documented := map[string]string{}
	for _, row := range rows(text, 4) {
		labels := words(row[2])
		slices.Sort(labels)
		documented[words(row[0])[0]] = fmt.Sprint(strings.TrimSpace(row[1]), labels)
	}
	if !maps.Equal(real, documented) {
		t.Errorf("the metrics are\n%v\nand the page says\n%v", real, documented)
	}

	described := map[key]bool{}
	for _, row := range rows(text, 3) {
		listed := words(row[2])
		slices.Sort(listed)
		for _, family := range words(row[1]) {
			k := key{family, words(row[0])[0]}
			described[k] = true
			got := slices.Sorted(slices.Values(values[k]))
			if !slices.Equal(slices.Compact(got), listed) {
				t.Errorf("%s of %s has the values %v, the page says %v", k.label, k.family, got, listed)
			}
		}
	}
	for k := range values {
		if k.label != "class" && !described[k] {
			t.Errorf("the page does not list the values of %s of %s", k.label, k.family)
		}
	}
}

// query is one PromQL expression of the page, under its heading.
type query struct{ figure, expr string }

func queries(text string) []query {
	var list []query
	figure, inside := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "### "):
			figure = strings.TrimPrefix(line, "### ")
		case strings.HasPrefix(line, "```"):
			inside = line == "```promql"
		case inside:
			list = append(list, query{figure, line})
		}
	}
	return list
}

// Each of the fourteen figures has metrics in the table and a query that uses them.
func TestDocs_EveryFigureHasAQuery(t *testing.T) {
	text := readPage(t)
	byFigure := map[string]string{}
	for _, q := range queries(text) {
		byFigure[q.figure] += q.expr + "\n"
	}
	figures := 0
	for _, row := range rows(text, 2) {
		figure := strings.TrimSpace(row[0])
		if strings.HasPrefix(figure, "14.") {
			figures++
		}
		for _, name := range words(row[1]) {
			if !strings.Contains(byFigure[figure], "anteroom_"+name) {
				t.Errorf("no query for %q uses %s", figure, name)
			}
		}
	}
	if figures != 14 {
		t.Errorf("%d figures of section 14 are mapped, want 14", figures)
	}
	for _, q := range queries(text) {
		if strings.Contains(q.expr, "_bucket") && !strings.Contains(q.expr, ") or histogram_quantile(") {
			t.Errorf("%q does not ask for classic or native: %s", q.figure, q.expr)
		}
	}
}

// promtool returns the path of the tool that comes with Prometheus, or skips the test.
func promtool(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		testredis.Missing(t, "prometheus")
	}
	return path
}

// Every query on what the Collector exports returns a number, neither NaN nor an empty result. promtool's engine
// evaluates them over two scrapes a minute apart.
func TestDocs_QueriesGiveNumbers(t *testing.T) {
	tool := promtool(t)
	c, r := newCollector(t, metrics.Config{Detail: true})
	c.Attach(&counts{"orders": {Held: 1, Waiting: 1}})
	first := exposition(t, r)
	everything(c.Observer(), "orders")
	second := exposition(t, r)

	var file strings.Builder
	file.WriteString("rule_files: []\nevaluation_interval: 1m\ntests:\n- interval: 1m\n  input_series:\n")
	for _, name := range slices.Sorted(maps.Keys(second)) {
		fmt.Fprintf(&file, "  - series: %q\n    values: '%s %s'\n", name, first[name], second[name])
	}
	file.WriteString("  promql_expr_test:\n")
	asked := queries(readPage(t))
	for _, q := range asked {
		// A comparison drops NaN; all others are counted.
		fmt.Fprintf(&file, "  - expr: %q\n    eval_time: 1m\n    exp_samples: [{labels: '{}', value: 1}]\n",
			fmt.Sprintf("count((%s) > -Inf) > bool 0", q.expr))
	}
	path := filepath.Join(t.TempDir(), "test.yml")
	if err := os.WriteFile(path, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if len(asked) < 14 {
		t.Fatalf("only %d queries", len(asked))
	}
	if out, err := exec.Command(tool, "test", "rules", path).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// exposition returns the values of a scrape in the text format, by series.
func exposition(t *testing.T, r *prometheus.Registry) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(scrape(t, r, "")) {
		line = strings.TrimSpace(line)
		if i := strings.LastIndexByte(line, ' '); i > 0 && !strings.HasPrefix(line, "#") {
			all[line[:i]] = line[i+1:]
		}
	}
	return all
}
