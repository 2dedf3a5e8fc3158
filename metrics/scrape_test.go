package metrics_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/anteroom/anteroom/metrics"
)

// scrape gets r's metrics over HTTP, as Prometheus does.
func scrape(t *testing.T, r *prometheus.Registry, accept string) string {
	t.Helper()
	srv := httptest.NewServer(promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError, EnableOpenMetrics: true}))
	defer srv.Close()
	req, err := http.NewRequest(http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v: %s", resp.Status, err, body)
	}
	return string(body)
}

// promtool's linter differs from client_golang's, and reads what is really sent.
func TestScrape_PromtoolFindsNothing(t *testing.T) {
	tool := promtool(t)
	for _, cfg := range []metrics.Config{{}, {Detail: true}, {Namespace: "shop", ConstLabels: prometheus.Labels{"redis": "eu"}}} {
		c, r := newCollector(t, cfg)
		everything(c.Observer(), "orders", "default", "naïve\nclass \"x\"")
		cmd := exec.Command(tool, "check", "metrics")
		cmd.Stdin = strings.NewReader(scrape(t, r, ""))
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil || out.Len() > 0 {
			t.Errorf("%+v: %v\n%s", cfg, err, out.String())
		}
	}
}

func TestScrape_OpenMetrics(t *testing.T) {
	c, r := newCollector(t, metrics.Config{})
	everything(c.Observer(), "orders")
	text := scrape(t, r, "application/openmetrics-text; version=1.0.0")
	for _, line := range []string{
		"# EOF\n",
		"# TYPE anteroom_lost counter\n",
		"anteroom_lost_total{class=\"orders\",reason=\"gone\"} 1.0\n",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the exposition lacks %q", line)
		}
	}
}
