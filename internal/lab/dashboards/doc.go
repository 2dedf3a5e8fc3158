// Package dashboards makes the Grafana dashboards of metrics/grafana. The JSON files
// are the product and are checked in; this package only spares us to write the same
// thirty lines for each of fifty panels by hand. `make dashboards` writes the files, and
// a test fails when they differ from what this package makes.
//
//	families (metrics.go) ──► selectors, rates, quantiles (expr.go) ──► panels (panel.go)
//	                                                                      │
//	   overview.go, class.go, redis.go: what is asked, in which order ────┤
//	                                                                      ▼
//	                                     Dashboard (model.go) ──► metrics/grafana/*.json
//
// A dashboard is data: nothing here talks to Prometheus or Grafana. The tests do. They
// hold the rules below against the files, and ask a real Prometheus that scrapes
// internal/lab/allpaths for each expression.
//
// # Invariants
//
//	I1  The files are what this package makes.
//	I2  Panels are time series, stats, bar gauges and tables; each has a title, a
//	    description, a unit and the templated data source.
//	I3  Every selector matches job and instance by their variables, and class where the
//	    metric has that label.
//	I4  A counter stands only under rate or increase, over $__rate_interval, or over
//	    $__range where a panel shows one figure for the whole time that is shown.
//	I5  A histogram is asked for as classic or native, so that each expression works
//	    with servers that scrape native histograms and with those that do not.
//	I6  Every metric in an expression is one that the Collector exports, with such
//	    labels, and every metric of the Collector is shown somewhere.
//	I7  Ids of panels and uids of dashboards are unique, no panel lies on another, and
//	    no dashboard is editable in Grafana: the next import would undo it.
//	I8  Every expression and every variable gives numbers, with classic and with native
//	    histograms, when it is asked of a Prometheus that saw the library at work.
package dashboards
