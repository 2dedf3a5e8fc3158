// Package dashboards generates the Grafana dashboards of metrics/grafana. The JSON files are the product and are
// checked in; this package only saves writing the same thirty lines by hand for each of fifty panels. `make
// dashboards` writes the files, and a test fails if they differ from what this package generates.
//
//	families (metrics.go) ──► selectors, rates, quantiles (expr.go) ──► panels (panel.go)
//	                                                                      │
//	   overview.go, class.go, redis.go: what is asked, in which order ────┤
//	                                                                      ▼
//	                                     Dashboard (model.go) ──► metrics/grafana/*.json
//
// A dashboard is data: nothing here talks to Prometheus or Grafana. The tests do: they check the files against the
// rules below, and evaluate each expression on a real Prometheus that scrapes lab/allpaths.
//
// # Invariants
//
//	I1  The files are what this package generates.
//	I2  Panels are time series, stats, bar gauges and tables; each has a title, a description, a unit and the templated
//	    data source.
//	I3  Every selector matches job and instance by their variables, and class if the metric has that label.
//	I4  A counter appears only under rate or increase, over $__rate_interval, or over $__range if a panel shows one
//	    figure for the whole time range.
//	I5  A histogram is queried as classic or native, so that each expression works with servers that scrape native
//	    histograms and with those that do not.
//	I6  Every metric in an expression is one that the Collector exports, with such labels, and every metric of the
//	    Collector is shown somewhere.
//	I7  Ids of panels and uids of dashboards are unique, panels do not overlap, and no dashboard is editable in Grafana:
//	    the next import would undo it.
//	I8  Every expression and every variable gives numbers, with classic and with native histograms, on a Prometheus that
//	    saw the library at work.
package dashboards
