package arrows

import (
	"cmp"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	proofRow = regexp.MustCompile(`(?m)^\| .*\? \| (.*) \| (.*) \|$`)
	quoted   = regexp.MustCompile("`([^`]+)`")
	function = regexp.MustCompile(`(?m)^(?:func (?:\(\w+ \*?(\w+)(?:\[\w+\])?\) )?|\s*local function )(\w+)\(`)
)

// TestDocs_ProofTable: docs/internals/proofs.md names functions and scripts that exist. TestDocs_NamedTestsExist looks
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
	rows := proofRow.FindAllStringSubmatch(read(t, "docs/internals/proofs.md"), -1)
	if len(rows) < 20 {
		t.Fatalf("only %d rows were found: this test looks for the wrong thing", len(rows))
	}
	for _, row := range rows {
		for _, m := range quoted.FindAllStringSubmatch(row[1], -1) {
			if !exists[m[1]] {
				t.Errorf("docs/internals/proofs.md says %s, which does not exist", m[1])
			}
		}
		if !quoted.MatchString(row[2]) {
			t.Errorf("docs/internals/proofs.md has a row without a test: %s", row[0])
		}
	}
}

var (
	nameRow    = regexp.MustCompile(`(?m)^\| .* \| (.*) \|$`)
	identifier = regexp.MustCompile(`[A-Z]\w+`)
	anyName    = regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |\t)(\w+)`)
)

// TestDocs_NamesTable: docs/reference/names.md names types, functions and fields that are exported.
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
	for _, row := range nameRow.FindAllStringSubmatch(read(t, "docs/reference/names.md"), -1) {
		for _, m := range quoted.FindAllStringSubmatch(row[1], -1) {
			for _, name := range identifier.FindAllString(m[1], -1) {
				total++
				if !exists[name] {
					t.Errorf("docs/reference/names.md names %s, which does not exist", name)
				}
			}
		}
	}
	if total < 40 {
		t.Fatalf("only %d names were found: this test looks for the wrong thing", total)
	}
}
