package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// scrapeTime bounds a scrape. It is below the ten seconds after which Prometheus gives up by default, so that a child
// that hangs does not hide the others.
const scrapeTime = 8 * time.Second

// debugPath is where the debug page is mounted.
const debugPath = "/debug/anteroom/"

// page is a minimal http.ResponseWriter that keeps the body.
type page struct {
	bytes.Buffer
	header http.Header
	status int
}

// Header and WriteHeader make page an http.ResponseWriter.
func (p *page) Header() http.Header { return p.header }
func (p *page) WriteHeader(s int)   { p.status = s }

// metrics renders the worker's registry in Prometheus' text format. Every series has the label process, so the series
// of several processes can be merged.
func (w *worker) metrics(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return "", err
	}
	p := &page{header: http.Header{}, status: http.StatusOK}
	promhttp.HandlerFor(w.reg, promhttp.HandlerOpts{DisableCompression: true}).ServeHTTP(p, req)
	if p.status != http.StatusOK {
		return "", fmt.Errorf("rendering metrics: %s", p.String())
	}
	return p.String(), nil
}

// mergeMetrics joins texts of the same families into one: the format requires each family once, with its help and
// type before its samples. It keeps the order of the first text. Samples never collide, because each has the label
// process.
func mergeMetrics(texts []string) string {
	type family struct{ head, samples strings.Builder }
	families := map[string]*family{}
	var order []*family
	for _, text := range texts {
		var f *family
		first := false // whether the family first appeared in this text, so that its help and type are kept
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
				name, _, _ := strings.Cut(rest, " ")
				if f = families[name]; f == nil {
					f, first = &family{}, true
					families[name] = f
					order = append(order, f)
				} else {
					first = false
				}
			}
			// Lines before the first family belong to none and are dropped.
			switch {
			case f == nil:
			case !strings.HasPrefix(line, "#"):
				f.samples.WriteString(line)
			case first:
				f.head.WriteString(line)
			}
		}
	}
	var out strings.Builder
	for _, f := range order {
		out.WriteString(f.head.String())
		out.WriteString(f.samples.String())
	}
	return out.String()
}

// serveMetrics serves /metrics for the whole run, and the debug page if there is one, on l until the returned
// function is called. A process that does not answer in time is omitted and named in a comment, so that the others
// are still shown. ?process=N asks for one alone, so that Prometheus can have each as a target of its own; then no
// answer is status 503, or 404 if there is no such process.
func (d *demo) serveMetrics(l net.Listener) (stop func()) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(rw http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithTimeout(req.Context(), scrapeTime)
		defer cancel()
		only := req.FormValue("process")
		var texts []string
		var missing strings.Builder
		for n, p := range d.processes {
			if only != "" && only != strconv.Itoa(n+1) {
				continue
			}
			text, err := p.metrics(ctx)
			if err != nil {
				fmt.Fprintf(&missing, "# process %d did not answer\n", n+1)
				continue
			}
			texts = append(texts, text)
		}
		if only != "" && len(texts) == 0 {
			status := http.StatusNotFound
			if missing.Len() > 0 {
				status = http.StatusServiceUnavailable
			}
			http.Error(rw, missing.String(), status)
			return
		}
		rw.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = rw.Write([]byte(mergeMetrics(texts) + missing.String()))
	})
	if d.page != nil {
		mux.Handle(debugPath, d.page)
	}
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = srv.Serve(l) // returns an error after Close
	}()
	return func() {
		_ = srv.Close()
		<-ended
	}
}
