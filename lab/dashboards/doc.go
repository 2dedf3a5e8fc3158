// Package dashboards tests the files in metrics/grafana and the recording rules in metrics/prometheus, and that the files
// of deploy match each other. It has only tests.
//
// The files are edited by hand, or in Grafana and exported. The rules that the tests hold them to:
//
//	I1  Panels are time series, stats, bar gauges and tables; each has a title, a description, a unit and the templated
//	    data source.
//	I2  Every selector matches cluster, namespace, job and instance by their variables, and class if the metric has that
//	    label. Targets without the first two are matched by All.
//	I3  A counter appears only under rate or increase, over $__rate_interval, or over $__range if a panel shows one
//	    figure for the whole time range.
//	I4  A histogram is queried as classic or native: I7 tries both.
//	I5  Every metric in an expression is one that the Collector exports, and each of those is shown somewhere. A panel that
//	    needs metrics.Config.Detail says so; none of the overview does.
//	I6  Ids of panels and uids of dashboards are unique, and no dashboard is editable in Grafana: the next import would
//	    undo it.
//	I7  Every expression, variable and record gives numbers on a real Prometheus that scrapes a Collector of which every
//	    hook is called with every value of its labels: those of the overview and the rules without Detail, with classic
//	    histograms and with targets that have no cluster, and all of them with native ones, Detail and a cluster.
//	I8  Each file has the structure of Grafana's JSON schema of dashboards.
package dashboards
