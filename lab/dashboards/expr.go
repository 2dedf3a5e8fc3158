package dashboards

import (
	"fmt"
	"strings"
)

// The windows of counters. Grafana chooses interval so that it holds at least four scrapes; whole is the selected
// time range.
const (
	interval = "$__rate_interval"
	whole    = "$__range"
)

// series returns the selector of a metric, with job, instance and class (if it has one) matched by the variables, and
// further matchers, for example `outcome="acquired"`. suffix is that of a histogram's parts.
func series(name, suffix string, f family, matchers []string) string {
	all := []string{`job=~"$job"`, `instance=~"$instance"`}
	if f.has("class") {
		all = append(all, `class=~"$class"`)
	}
	return prefix + name + suffix + "{" + strings.Join(append(all, matchers...), ",") + "}"
}

// current is the value of a gauge.
func current(name string, matchers ...string) string {
	return series(name, "", mustBe(name, gauge), matchers)
}

// rate is the rate of a counter per second.
func rate(name string, matchers ...string) string {
	return fmt.Sprintf("rate(%s[%s])", series(name, "", mustBe(name, counter), matchers), interval)
}

// increase is the increase of a counter over a window.
func increase(name, window string, matchers ...string) string {
	return fmt.Sprintf("increase(%s[%s])", series(name, "", mustBe(name, counter), matchers), window)
}

// sum adds up, by labels if there are any.
func sum(expr string, by ...string) string { return aggregate("sum", expr, by) }

// greatest is the maximum, for ages.
func greatest(expr string, by ...string) string { return aggregate("max", expr, by) }

func aggregate(op, expr string, by []string) string {
	if len(by) == 0 {
		return fmt.Sprintf("%s(%s)", op, expr)
	}
	return fmt.Sprintf("%s by (%s) (%s)", op, strings.Join(by, ", "), expr)
}

// quantile is a quantile of a histogram. A server that scrapes native histograms keeps no classic buckets by default,
// and one that does not has no native ones, so the expression asks for classic or native; both have the same labels,
// so never both are shown.
func quantile(q float64, name string, by []string, matchers ...string) string {
	f := mustBe(name, histogram)
	classic := sum(fmt.Sprintf("rate(%s[%s])", series(name, "_bucket", f, matchers), interval), append(by[:len(by):len(by)], "le")...)
	native := sum(fmt.Sprintf("rate(%s[%s])", series(name, "", f, matchers), interval), by...)
	return fmt.Sprintf("histogram_quantile(%v, %s) or histogram_quantile(%v, %s)", q, classic, q, native)
}

// mean is the mean of a histogram, classic or native.
func mean(name string, by []string, matchers ...string) string {
	f := mustBe(name, histogram)
	part := func(suffix string) string {
		return sum(fmt.Sprintf("rate(%s[%s])", series(name, suffix, f, matchers), interval), by...)
	}
	native := part("")
	return fmt.Sprintf("(%s / %s) or (histogram_sum(%s) / histogram_count(%s))", part("_sum"), part("_count"), native, native)
}
