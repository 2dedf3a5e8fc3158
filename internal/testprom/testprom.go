// Package testprom starts a real Prometheus for tests. It scrapes loopback targets every second, keeps its data in a
// folder of the test, and is ended by process id with the test. If there is no prometheus the test is skipped and
// counted; under CI=true it fails.
package testprom

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/testredis"
)

const (
	// startTimeout is generous, because small machines are slow.
	startTimeout = 60 * time.Second
	// askTimeout bounds a request.
	askTimeout = 30 * time.Second
)

// Target is a scrape target: Addr is host and port, the others are labels, Labels further ones, if any.
type Target struct {
	Job, Instance, Addr string
	Labels              map[string]string
}

// Server is one Prometheus. Its methods are safe for concurrent use.
type Server struct {
	tb     testredis.TB
	url    string
	client *http.Client
}

// Start starts a Prometheus that scrapes targets, with further flags, for example
// "--enable-feature=native-histograms". It returns when the server is ready.
func Start(tb testredis.TB, targets []Target, flags ...string) *Server {
	tb.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		testredis.Missing(tb, "prometheus")
	}
	dir := tb.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, configOf(targets), 0o600); err != nil {
		tb.Fatal(err)
	}
	// A port that was free a moment ago may be taken before the server binds it, so a failed start is tried on
	// another port.
	for try := 0; ; try++ {
		s := &Server{tb: tb, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: askTimeout}}
		args := append([]string{
			"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "data"+strconv.Itoa(try)), "--log.level=error",
		}, flags...)
		if try < 2 {
			// A hidden flag, which other versions may not have. Without it the first scrape comes five seconds later.
			args = append(args, "--scrape.discovery-reload-interval=100ms")
		}
		err := s.launch(path, args)
		if err == nil {
			return s
		}
		if try == 4 {
			tb.Fatalf("prometheus did not start: %v", err)
		}
	}
}

// configOf returns a configuration. JSON is YAML.
func configOf(targets []Target) []byte {
	type static struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	type job struct {
		Name    string   `json:"job_name"`
		Statics []static `json:"static_configs"`
	}
	var jobs []job
	for _, t := range targets {
		if len(jobs) == 0 || jobs[len(jobs)-1].Name != t.Job {
			jobs = append(jobs, job{Name: t.Job})
		}
		j := &jobs[len(jobs)-1]
		labels := map[string]string{"instance": t.Instance}
		maps.Copy(labels, t.Labels)
		j.Statics = append(j.Statics, static{[]string{t.Addr}, labels})
	}
	text, _ := json.Marshal(map[string]any{ // strings only
		"global":         map[string]string{"scrape_interval": "1s", "scrape_timeout": "1s"},
		"scrape_configs": jobs,
	})
	return text
}

// launch starts the process on a free port and waits until it is ready.
func (s *Server) launch(path string, args []string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	addr := l.Addr().String()
	_ = l.Close()
	s.url = "http://" + addr
	cmd := exec.Command(path, append(args, "--web.listen-address="+addr)...)
	cmd.SysProcAttr = child.EndsWithParent()
	var said bytes.Buffer // read only after Wait
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait()
	}()
	end := func() {
		_ = cmd.Process.Kill()
		<-exited
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(startTimeout); ; {
		if resp, err := s.client.Get(s.url + "/-/ready"); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				s.tb.Cleanup(end)
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-exited:
			return fmt.Errorf("it ended immediately: %s", said.String())
		}
		if time.Now().After(deadline) {
			end()
			return fmt.Errorf("not ready after %v: %s", startTimeout, said.String())
		}
	}
}

// Series is one series of a result, with its points: one for Query.
type Series struct {
	Labels map[string]string `json:"labels"`
	Points []Point           `json:"points"`
}

// Point is a value at a time, in seconds since 1970. The value is a string as in Prometheus' answer, because JSON has
// no NaN.
type Point struct {
	At    float64 `json:"at"`
	Value string  `json:"value"`
}

// Query evaluates expr at the present time.
func (s *Server) Query(ctx context.Context, expr string) ([]Series, error) {
	return s.series(ctx, "/api/v1/query", url.Values{"query": {expr}})
}

// LabelValues returns the values of a label in the series that match a selector.
func (s *Server) LabelValues(ctx context.Context, selector, label string) ([]string, error) {
	var values []string
	err := s.get(ctx, "/api/v1/label/"+label+"/values", url.Values{"match[]": {selector}}, &values)
	return values, err
}

func (s *Server) series(ctx context.Context, path string, query url.Values) ([]Series, error) {
	var data struct {
		Result []struct {
			Metric map[string]string `json:"metric"`
			Value  *Point            `json:"value"`
			Values []Point           `json:"values"`
		} `json:"result"`
	}
	if err := s.get(ctx, path, query, &data); err != nil {
		return nil, err
	}
	var list []Series
	for _, r := range data.Result {
		if r.Value != nil {
			r.Values = []Point{*r.Value}
		}
		list = append(list, Series{r.Metric, r.Values})
	}
	return list, nil
}

// get sends a request and decodes the data of the answer.
func (s *Server) get(ctx context.Context, path string, query url.Values, data any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %w", resp.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(answer.Error))
	}
	return nil
}

// UnmarshalJSON parses [time, "value"].
func (p *Point) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&p.At, &p.Value})
}
