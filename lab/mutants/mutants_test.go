package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write docs/generated/mutants.md")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func root(t *testing.T) string {
	t.Helper()
	dir, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A change to a mechanism needs a change to its mutant, or this fails.
func TestMutants_ApplyExactlyOnce(t *testing.T) {
	dir, names := root(t), map[string]bool{}
	for _, m := range mutants() {
		switch {
		case names[m.name]:
			t.Errorf("%s: two mutants have that name", m.name)
		case m.name == "" || m.mechanism == "" || m.breaks == "" || len(m.tests) == 0:
			t.Errorf("%s: something is missing", m.name)
		case m.old == m.fresh:
			t.Errorf("%s: changes nothing", m.name)
		}
		names[m.name] = true
		if _, err := m.apply(dir); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

func TestMutants_NameTestsThatExist(t *testing.T) {
	dir, known := root(t), map[string]map[string]bool{}
	for _, m := range mutants() {
		if known[m.folder()] == nil {
			known[m.folder()] = testsIn(t, filepath.Join(dir, m.folder()))
		}
		for _, name := range m.tests {
			if !known[m.folder()][name] {
				t.Errorf("%s: %s has no test %s", m.name, m.folder(), name)
			}
		}
	}
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

func testsIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range testFunc.FindAllStringSubmatch(string(text), -1) {
			tests[match[1]] = true
		}
	}
	return tests
}

func TestMutants_TableInTheDocument(t *testing.T) {
	file := filepath.Join(root(t), "docs", "generated", "mutants.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := withTable(string(text), table(mutants()))
	if err != nil {
		t.Fatal(err)
	}
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatal("docs/generated/mutants.md is not the list's: go -C lab test ./mutants -update")
	}
	if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The runner's own judgement, on output as go test prints it.
func TestMutants_Judge(t *testing.T) {
	m := mutant{tests: []string{"TestA", "TestB"}}
	for _, c := range []struct {
		name, out string
		ok        bool
		hangs     bool
		want      verdict
	}{
		{"the named tests fail", "--- FAIL: TestA (0.00s)\n--- FAIL: TestB (0.01s)\nFAIL", false, false, caught},
		{"one of two fails", "--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.01s)\nFAIL", false, false, survived},
		{"a named test panics", "=== RUN   TestA\npanic: broken\n", false, false, caught},
		{"all pass", "--- PASS: TestA (0.00s)\n--- PASS: TestB (0.00s)\nPASS", true, false, survived},
		{"another test fails", "--- PASS: TestA (0.00s)\n--- PASS: TestB (0.00s)\n--- FAIL: TestC (0.00s)", false, false, survived},
		{"only a goroutine is left", "--- PASS: TestA (0.00s)\n--- PASS: TestB (0.00s)\ngoleak: Errors on successful test run", false, false, survived},
		{"nothing ran", "testing: warning: no tests to run\nPASS", true, false, notRun},
		{"they were skipped", "--- SKIP: TestA (0.00s)\n--- SKIP: TestB (0.00s)\nPASS", true, false, notRun},
		{"it does not build", "# x\n./x.go:1: declared and not used\nFAIL\tx [build failed]", false, false, doesNotBuild},
		{"it hangs", "panic: test timed out after 2m0s\n", false, false, hung},
		{"it hangs as expected", "panic: test timed out after 2m0s\n", false, true, caught},
	} {
		m.hangs = c.hangs
		if got := judge(m, c.out, c.ok); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestMutants_AnEditMustFitOnce(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.go"), []byte("one two two"), 0o600); err != nil {
		t.Fatal(err)
	}
	for old, want := range map[string]bool{"one": true, "two": false, "three": false} {
		_, err := mutant{file: "x.go", old: old, fresh: "-"}.apply(dir)
		if (err == nil) != want {
			t.Errorf("%q: %v", old, err)
		}
	}
	if text, _ := (mutant{file: "x.go", old: "one", fresh: "1"}).apply(dir); text != "1 two two" {
		t.Errorf("applied: %q", text)
	}
}

func TestMutants_List(t *testing.T) {
	var out, problems strings.Builder
	if status := run(t.Context(), []string{"-list"}, &out, &problems); status != 0 || problems.Len() > 0 {
		t.Fatalf("status %d: %s", status, problems.String())
	}
	if got := strings.Count(out.String(), "\n"); got != len(mutants()) {
		t.Errorf("%d lines for %d mutants", got, len(mutants()))
	}
}

func TestMutants_ACacheIsSwept(t *testing.T) {
	users := t.TempDir()
	t.Setenv("GOCACHE", users)
	mustWrite := func(file, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mustWrite(filepath.Join(users, "ab", "users"), "built")
	c, err := newCache()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.remove)
	mustWrite(filepath.Join(c.dir, "ab", "mutants"), "built")
	if err := c.sweep(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(c.dir, "ab", "users")); string(text) != "built" {
		t.Errorf("what the user's cache has: %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "ab", "mutants")); !os.IsNotExist(err) {
		t.Errorf("what a mutant built is still there: %v", err)
	}
}
