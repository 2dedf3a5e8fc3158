package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// when is since when a series is exported.
type when int

const (
	always   when = iota // from the start, as 0
	occurred             // once it is not 0; with Config.Detail always
	detailed             // with Config.Detail only, then always
)

// unless returns always if zero is set, otherwise w.
func (w when) unless(zero bool) when {
	if zero {
		return always
	}
	return w
}

// resolved collects the series of one class, or of the process, found once, so that neither a report nor a scrape
// has to find them.
type resolved struct {
	detail bool
	series []prometheus.Metric // always exported
	late   []prometheus.Metric // exported while not 0
}

// add exports s according to w, and once even if it is added for several names.
func (r *resolved) add(w when, s prometheus.Metric) {
	list := &r.series
	switch {
	case w == always || r.detail:
	case w == occurred:
		list = &r.late
	default:
		return
	}
	if !slices.Contains(*list, s) {
		*list = append(*list, s)
	}
}

// send sends what is exported now.
func (r *resolved) send(ch chan<- prometheus.Metric) {
	for _, s := range r.series {
		ch <- s
	}
	for _, s := range r.late {
		var m dto.Metric
		if s.Write(&m) != nil || m.GetCounter().GetValue() != 0 || m.GetGauge().GetValue() != 0 {
			ch <- s
		}
	}
}

func (r *resolved) counter(w when, v *prometheus.CounterVec, labels ...string) prometheus.Counter {
	s := v.WithLabelValues(labels...)
	r.add(w, s)
	return s
}

func (r *resolved) gauge(w when, v *prometheus.GaugeVec, labels ...string) prometheus.Gauge {
	s := v.WithLabelValues(labels...)
	r.add(w, s)
	return s
}

func (r *resolved) histogram(v *prometheus.HistogramVec, labels ...string) prometheus.Observer {
	s := v.WithLabelValues(labels...)
	r.add(always, s.(prometheus.Metric)) // a HistogramVec holds nothing else
	return s
}
