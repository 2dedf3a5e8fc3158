package main

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// scrapeTime bounds a scrape. It is below the ten seconds after which Prometheus gives up by default, so that a child
// that hangs does not hide the others.
const scrapeTime = 8 * time.Second

// debugPath is where the debug page is mounted.
const debugPath = "/debug/anteroom/"

// serveMetrics serves /metrics for the whole run, and the debug page if there is one, on l until the returned
// function is called. Every series has the label process. A process that does not answer in time is omitted, so that
// the others are still shown. ?process=N asks for one alone, so that Prometheus can have each as a target of its own;
// then no answer is status 500, or 404 if there is no such process.
func (d *demo) serveMetrics(l net.Listener) (stop func()) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(rw http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithTimeout(req.Context(), scrapeTime)
		defer cancel()
		only := req.FormValue("process")
		var all prometheus.Gatherers
		for n, p := range d.processes {
			if only == "" || only == strconv.Itoa(n+1) {
				all = append(all, prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return p.gather(ctx) }))
			}
		}
		if len(all) == 0 {
			http.NotFound(rw, req)
			return
		}
		promhttp.HandlerFor(all, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).ServeHTTP(rw, req)
	})
	if d.opts.url == "" {
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
