// Package schema checks the structure of the dashboards beside it against Grafana's own JSON schema of dashboards, and
// that the files of deploy match each other. It is a module of its own, so that the validator, the YAML parser and
// their dependencies never enter the module graph of programs that use the library.
//
// grafana-dashboard.schema.json is jsonschema/dashboard.jsonschema.json of the repository
// grafana/grafana-foundation-sdk, unchanged. It is under the Apache License 2.0, whose text in LICENSE beside it
// covers that file only.
package schema
