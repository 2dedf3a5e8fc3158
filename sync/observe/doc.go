// Package observe is what a Manager of package anteroom reports to people and programs: events, states, the hooks for
// metrics and spans, and the closed sets of names in them.
//
// Package metrics has an Observer for Prometheus and a debug page, the metrics/otel module a Tracer for OpenTelemetry.
// Who writes an exporter of their own begins here; who only uses locks does not need this package.
package observe
