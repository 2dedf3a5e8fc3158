package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/silence"
)

func TestMain(m *testing.M) {
	silence.Logs()
	goleak.VerifyTestMain(m)
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// A change to a mechanism needs a change to its mutant, or this fails.
func TestMutants_ApplyOnceAndNameTestsThatExist(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	all, err := mutants()
	if err != nil || len(all) < 300 {
		t.Fatalf("%d mutants, %v", len(all), err)
	}
	names, tests := map[string]bool{}, map[string]map[string]bool{}
	for _, m := range all {
		if names[m.name] {
			t.Errorf("%s: two mutants have that name", m.name)
		}
		names[m.name] = true
		if _, err := m.apply(root); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		folder := m.folder()
		if tests[folder] == nil {
			tests[folder] = testsIn(t, filepath.Join(root, folder))
		}
		for _, name := range m.tests {
			if !tests[folder][name] {
				t.Errorf("%s: %s has no test %s", m.name, folder, name)
			}
		}
	}
}

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
		{"another test fails", "--- PASS: TestA (0.00s)\n--- PASS: TestB (0.00s)\n--- FAIL: TestC (0.00s)", false, false, survived},
		{"only a goroutine is left", "--- PASS: TestA (0.00s)\n--- PASS: TestB (0.00s)\ngoleak: Errors on successful test run", false, false, survived},
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
