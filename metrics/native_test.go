package metrics_test

import (
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testprom"
	"github.com/anteroom/anteroom/metrics"
	"github.com/anteroom/anteroom/sync/observe"
)

// A Prometheus that asks for protobuf gets native histograms, with a quantile within 5 %, and drops the classic buckets. Any
// other gets those, and nothing else differs.
func TestNative_PrometheusReceivesWhatItAsksFor_Lab(t *testing.T) {
	c, r := newCollector(t, metrics.Config{})
	c.Attach(&counts{"orders": {}})
	const holds, held = 7, 3 * time.Second
	for range holds {
		c.Observer().Released("orders", observe.OutcomeReleased, held)
	}
	srv := httptest.NewServer(promhttp.HandlerFor(r, promhttp.HandlerOpts{}))
	t.Cleanup(srv.Close)
	target := []testprom.Target{{Job: "shop", Instance: "a", Addr: srv.Listener.Addr().String()}}
	all, _ := gather(t, r)
	perClass, others := cost(all)
	for _, s := range []struct {
		name                      string
		flags                     []string
		total, buckets, histogram float64 // of series, of _bucket series of the holds, and the native count of holds
	}{
		{"classic", nil, float64(perClass + others), 7, 0},
		{"native", []string{"--enable-feature=native-histograms"}, float64(perClass + others - classic + histograms), 0, holds},
	} {
		p := testprom.Start(t, target, s.flags...)
		value := func(expr string) float64 {
			got, err := p.Query(t.Context(), expr)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) == 0 {
				return 0
			}
			n, err := strconv.ParseFloat(got[0].Points[0].Value, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		for end := time.Now().Add(pace.Hang); value(`count({__name__=~"anteroom_.*"})`) == 0; time.Sleep(100 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: nothing is scraped", s.name)
			}
		}
		for expr, want := range map[string]float64{
			`count({__name__=~"anteroom_.*"})`:                                 s.total,
			`count(anteroom_hold_seconds_bucket)`:                              s.buckets,
			`sum(histogram_count(anteroom_hold_seconds))`:                      s.histogram,
			`sum(anteroom_hold_seconds_count)`:                                 holds - s.histogram,
			`count(anteroom_lost_total{reason="gone"})`:                        1,
			`sum(anteroom_managers)`:                                           1,
			`count(abs(histogram_quantile(0.5, anteroom_hold_seconds)-3)<.15)`: min(s.histogram, 1),
		} {
			if got := value(expr); got != want {
				t.Errorf("%s: %s is %v, want %v", s.name, expr, got, want)
			}
		}
	}
}
