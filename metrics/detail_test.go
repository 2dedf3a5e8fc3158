package metrics_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/metrics"
)

// What docs/observability.md says that a process with one class costs, in series with a class and others: before any
// event, after every possible one, and with Detail.
const (
	perClassIdle, othersIdle     = 32, 22
	perClassAll, othersAll       = 52, 54
	perClassDetail, othersDetail = 101, 450
	// The default histograms, and what they are as classic ones: buckets, +Inf, sum and count.
	histograms, classic = 4, 6 + 6 + 3 + 4 + 4*3
)

// cost returns how many series a class has and how many the process, as Prometheus counts them: a histogram is its
// buckets, +Inf, sum and count. A server that scrapes native histograms counts each as one.
func cost(all map[string]series) (perClass, others int) {
	for name, s := range all {
		n := 1
		if s.buckets > 0 {
			n = s.buckets + 3
		}
		if strings.Contains(name, `class="`) {
			perClass += n
		} else {
			others += n
		}
	}
	return perClass, others
}

func TestDetail_SeriesBudget(t *testing.T) {
	for _, c := range []struct {
		detail, used     bool
		perClass, others int
	}{
		{false, false, perClassIdle, othersIdle},
		{false, true, perClassAll, othersAll},
		{true, false, perClassDetail, othersDetail},
		{true, true, perClassDetail, othersDetail},
	} {
		collector, r := newCollector(t, metrics.Config{Detail: c.detail})
		collector.Attach(&counts{"orders": {}})
		if c.used {
			everything(collector.Observer(), "orders")
		}
		all, _ := gather(t, r)
		if perClass, others := cost(all); perClass != c.perClass || others != c.others {
			t.Errorf("%+v: a class costs %d series and all others %d", c, perClass, others)
		}
	}
	if perClassAll > 60 || perClassIdle+othersIdle > 60 {
		t.Error("a class costs too much")
	}
	page := readFile(t, "../docs/observability.md")
	for _, says := range []string{
		fmt.Sprintf("%d series before its first event", perClassIdle+othersIdle), fmt.Sprintf("%d to %d per class", perClassIdle, perClassAll),
		fmt.Sprintf("%d series instead of %d", perClassIdle+othersIdle-classic+histograms, perClassIdle+othersIdle),
		fmt.Sprintf("%d per class and %d", perClassDetail, othersDetail),
	} {
		if !strings.Contains(page, says) {
			t.Errorf("docs/observability.md does not say %q", says)
		}
	}
}

var single = regexp.MustCompile(`increase\((\w+)(?:\{(\w+)(=~|!~|=)"([^"]*)"\})?\[\w+\]\) > 0$`)

// increase() does not see the event that makes a series. So a series of which a single event raises an alert exists before.
// class_overflows_total need not: such reports do not stay alone.
func TestDetail_WhatASingleEventRaisesExistsBefore(t *testing.T) {
	idle, r := newCollector(t, metrics.Config{})
	idle.Attach(&counts{"orders": {}})
	before, _ := gather(t, r)
	used, r := newCollector(t, metrics.Config{})
	everything(used.Observer(), "orders")
	after, _ := gather(t, r)
	asked := 0
	for _, rule := range readRules(t) {
		m := single.FindStringSubmatch(rule.expr)
		if m == nil || rule.name == "AnteroomClassOverflow" {
			continue
		}
		for name := range after {
			value := regexp.MustCompile(m[2] + `="([^"]*)"`).FindStringSubmatch(name)
			if !strings.HasPrefix(name, m[1]) || m[2] != "" && slices.Contains(strings.Split(m[4], "|"), value[1]) == (m[3] == "!~") {
				continue
			}
			asked++
			if _, ok := before[name]; !ok {
				t.Errorf("%s does not see the first event of %s", rule.name, name)
			}
		}
	}
	if asked != 14 {
		t.Errorf("%d series are asked for", asked)
	}
}

// overview returns the expressions of the dashboard, as rules.
func overview(t *testing.T) []rule {
	t.Helper()
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, "grafana/overview.json")), &d); err != nil {
		t.Fatal(err)
	}
	var list []rule
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			list = append(list, rule{name: p.Title, expr: q.Expr})
		}
	}
	if len(list) < 20 {
		t.Fatalf("only %d questions", len(list))
	}
	return list
}
