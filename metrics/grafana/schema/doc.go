// Package schema checks the shape of the dashboards beside it against Grafana's own JSON
// schema of dashboards. It is a module of its own, so that the validator, and what that
// needs, never enters the module graph of a program that uses the library; bench is one
// for the same reason.
//
// grafana-dashboard.schema.json is jsonschema/dashboard.jsonschema.json of the repository
// grafana/grafana-foundation-sdk, unchanged. It is under the Apache License 2.0, which
// stands in LICENSE beside it and covers that file only.
package schema
