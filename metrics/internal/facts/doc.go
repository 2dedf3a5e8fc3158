// Package facts says what metrics make of what a Manager reports, for Prometheus and OpenTelemetry alike: which durations
// are measured, what a check found, which classes are told apart, and what the attached Managers hold together.
package facts
