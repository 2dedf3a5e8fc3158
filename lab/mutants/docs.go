package main

import (
	"fmt"
	"strings"
)

// The table in docs/generated/mutants.md is between these lines.
const (
	tableBegin = "<!-- Generated from lab/mutants: go test ./lab/mutants -update -->"
	tableEnd   = "<!-- End of the generated part. -->"
)

// table returns the generated part of docs/generated/mutants.md: a table for each package.
func table(list []mutant) string {
	var b strings.Builder
	tests := map[string]bool{}
	for _, m := range list {
		for _, t := range m.tests {
			tests[m.folder()+" "+t] = true
		}
	}
	fmt.Fprintf(&b, "%d mechanisms, %d tests.\n", len(list), len(tests))
	folder := ""
	for _, m := range list {
		if m.folder() != folder {
			folder = m.folder()
			fmt.Fprintf(&b, "\n**`%s`**\n\n| removed | then | fails |\n|---|---|---|\n", folder)
		}
		names := make([]string, len(m.tests))
		for i, t := range m.tests {
			names[i] = "`" + t + "`"
		}
		fmt.Fprintf(&b, "| %s (`%s`) | %s | %s |\n", cell(m.mechanism), m.name, cell(m.breaks), strings.Join(names, ", "))
	}
	return b.String()
}

// cell escapes a text that could end its table cell.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// withTable returns the document with the part between the marks replaced.
func withTable(doc, table string) (string, error) {
	before, rest, ok := strings.Cut(doc, tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !ok || !ended {
		return "", fmt.Errorf("the document lacks the marks %q and %q", tableBegin, tableEnd)
	}
	return before + tableBegin + "\n\n" + table + "\n" + tableEnd + after, nil
}
