// Command pictures runs the library for some minutes, with faults, on a real redis-server, lets a real Prometheus
// scrape it, and writes the results of each query of each dashboard to a file, from which draw.jsx makes the pictures
// in docs/pictures. README.md says how to run both. CI does not run it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom/internal/testprom"
	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/allpaths"
	"github.com/anteroom/anteroom/lab/dashboards"
	"github.com/anteroom/anteroom/metrics"
)

const (
	// every is the time between two rounds of faults.
	every = 45 * time.Second
	// absence is how long the server is away after each round: less than every lease of ordinary work.
	absence = 1500 * time.Millisecond
	// step and rateInterval are what Grafana would choose for scrapes every second and panels of some hundred points.
	step         = 2 * time.Second
	rateInterval = 10 * time.Second
)

// answer is the result of one query of a panel.
type answer struct {
	RefID  string            `json:"refId"`
	Series []testprom.Series `json:"series"`
}

// picture is one dashboard with its results, by panel id.
type picture struct {
	Dashboard dashboards.Dashboard `json:"dashboard"`
	Answers   map[int][]answer     `json:"answers"`
	From      int64                `json:"from"` // milliseconds since 1970
	To        int64                `json:"to"`
}

func main() {
	length := flag.Duration("for", 5*time.Minute, "how long to work")
	out := flag.String("o", "data.json", "file for the answers")
	flag.Parse()
	err := testredis.WithoutTest("pictures", func(p *testredis.Program) error { return record(p, *length, *out) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// record works for length and writes the results to the file out.
func record(tb *testredis.Program, length time.Duration, out string) error {
	run := allpaths.Start(tb, metrics.Config{})
	var targets []testprom.Target
	for i, h := range run.Handlers() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
		go func() { _ = srv.Serve(l) }() // ends by Close
		tb.Cleanup(func() { _ = srv.Close() })
		targets = append(targets, testprom.Target{Job: "shop", Instance: fmt.Sprintf("shop-%d:9090", i+1), Addr: l.Addr().String()})
	}
	prometheus := testprom.Start(tb, targets)
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { run.Work(ctx) })
	err := trouble(ctx, run)
	if err == nil {
		err = ask(prometheus, begin, time.Now(), out) // while the work goes on
	}
	cancel()
	wg.Wait()
	return err
}

// trouble takes all paths again and again, with outages of the server in between, until the time is nearly over: the
// end of the picture shows ordinary work again.
func trouble(ctx context.Context, run *allpaths.Run) error {
	deadline, _ := ctx.Deadline()
	for time.Until(deadline) > every {
		sleep(ctx, every/2)
		if err := run.TakeAll(ctx); err != nil {
			return err
		}
		sleep(ctx, every/4)
		run.Server().Pause()
		sleep(ctx, absence)
		run.Server().Resume()
	}
	sleep(ctx, time.Until(deadline)-5*time.Second)
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// ask runs all queries and writes the results.
func ask(p *testprom.Server, begin, end time.Time, out string) error {
	filled := strings.NewReplacer(
		"$__rate_interval", seconds(rateInterval), "$__range", seconds(end.Sub(begin)),
		"$job", ".+", "$instance", ".+", "$class", ".+",
	)
	pictures := map[string]picture{}
	for name, d := range dashboards.All() {
		pic := picture{Dashboard: d, Answers: map[int][]answer{}, From: begin.UnixMilli(), To: end.UnixMilli()}
		for _, panel := range d.Panels {
			for _, q := range panel.Targets {
				expr := filled.Replace(q.Expr)
				var series []testprom.Series
				var err error
				if q.Instant {
					series, err = p.Query(context.Background(), expr)
				} else {
					series, err = p.QueryRange(context.Background(), expr, begin, end, step)
				}
				if err != nil {
					return fmt.Errorf("%s, %s: %w", name, panel.Title, err)
				}
				pic.Answers[panel.ID] = append(pic.Answers[panel.ID], answer{q.RefID, series})
			}
		}
		pictures[name] = pic
	}
	text, err := json.Marshal(pictures)
	if err != nil {
		return err
	}
	return os.WriteFile(out, text, 0o644)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%ds", int(d.Seconds())) }
