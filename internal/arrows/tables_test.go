package arrows

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocs_ImportTable: docs/generated/imports.md is the rule that TestImportsPointDown checks the packages against.
// ANTEROOM_UPDATE=1 writes it.
func TestDocs_ImportTable(t *testing.T) {
	const page = "docs/generated/imports.md"
	var b strings.Builder
	b.WriteString("# Imports\n\nWhat each package may import beyond the standard library, tests apart. ")
	b.WriteString("[Architecture](../internals/architecture.md#3-packages-and-the-state-word) has the picture.\n\n")
	b.WriteString("<!-- Written by TestDocs_ImportTable with ANTEROOM_UPDATE=1. -->\n| package | may import |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		fmt.Fprintf(&b, "| `%s` |", name)
		for _, imp := range allowed[name] {
			fmt.Fprintf(&b, " `%s`", imp)
		}
		b.WriteString(" |\n")
	}
	if os.Getenv("ANTEROOM_UPDATE") == "1" {
		if err := os.WriteFile(filepath.Join(root, page), []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, page) != b.String() {
		t.Errorf("%s is not the rule in arrows_test.go: run this test with ANTEROOM_UPDATE=1", page)
	}
}

var (
	proofRow = regexp.MustCompile(`(?m)^\| .*\? \| (.*) \| (.*) \|$`)
	quoted   = regexp.MustCompile("`([^`]+)`")
	function = regexp.MustCompile(`(?m)^(?:func (?:\(\w+ \*?(\w+)(?:\[\w+\])?\) )?|\s*local function )(\w+)\(`)
)

// TestDocs_ProofTable: docs/generated/proofs.md names functions and scripts that exist. TestDocs_NamedTestsExist looks
// for its tests.
func TestDocs_ProofTable(t *testing.T) {
	exists := map[string]bool{}
	add := func(folder, text string) {
		for _, m := range function.FindAllStringSubmatch(text, -1) {
			exists[m[2]] = true
			exists[cmp.Or(m[1], folder)+"."+m[2]] = true
		}
	}
	sources(t, func(name, text string) {
		if !strings.HasSuffix(name, "_test.go") {
			add(filepath.Base(filepath.Dir(name)), text)
		}
	})
	scripts, err := filepath.Glob(filepath.Join(root, "lettuce_compat/lua/*.lua"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range scripts {
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		add("lua", read(t, name))
		exists["lua/"+filepath.Base(path)] = true
	}
	rows := proofRow.FindAllStringSubmatch(read(t, "docs/generated/proofs.md"), -1)
	if len(rows) < 20 {
		t.Fatalf("only %d rows were found: this test looks for the wrong thing", len(rows))
	}
	for _, row := range rows {
		for _, m := range quoted.FindAllStringSubmatch(row[1], -1) {
			if !exists[m[1]] {
				t.Errorf("docs/generated/proofs.md says %s, which does not exist", m[1])
			}
		}
		if !quoted.MatchString(row[2]) {
			t.Errorf("docs/generated/proofs.md has a row without a test: %s", row[0])
		}
	}
}

var (
	nameRow    = regexp.MustCompile(`(?m)^\| .* \| (.*) \|$`)
	identifier = regexp.MustCompile(`[A-Z]\w+`)
	anyName    = regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |\t)(\w+)`)
)

// TestDocs_NamesTable: docs/generated/names.md names types, functions and fields that are exported.
func TestDocs_NamesTable(t *testing.T) {
	exists := map[string]bool{}
	sources(t, func(name, text string) {
		if !strings.HasSuffix(name, "_test.go") {
			for _, m := range anyName.FindAllStringSubmatch(text, -1) {
				exists[m[1]] = true
			}
		}
	})
	total := 0
	for _, row := range nameRow.FindAllStringSubmatch(read(t, "docs/generated/names.md"), -1) {
		for _, m := range quoted.FindAllStringSubmatch(row[1], -1) {
			for _, name := range identifier.FindAllString(m[1], -1) {
				total++
				if !exists[name] {
					t.Errorf("docs/generated/names.md names %s, which does not exist", name)
				}
			}
		}
	}
	if total < 40 {
		t.Fatalf("only %d names were found: this test looks for the wrong thing", total)
	}
}
