package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestOutcome: what go test -v prints, also of parallel parts, is read as it was meant.
func TestOutcome(t *testing.T) {
	r := outcome([]byte(`=== RUN   TestA
    a_test.go:3: TLS is missing
--- SKIP: TestA (0.00s)
=== RUN   TestB
=== RUN   TestB/x
=== RUN   TestB/y
=== CONT  TestB/x
    b_test.go:5: too old
=== CONT  TestB/y
    b_test.go:9: boom
--- FAIL: TestB (0.01s)
    --- SKIP: TestB/x (0.00s)
    --- FAIL: TestB/y (0.00s)
=== RUN   TestC
--- PASS: TestC (0.00s)
FAIL
`))
	if r.passed != 1 || r.failed != 1 || !slices.Equal(r.skipped, []string{"TLS is missing", "too old"}) || !strings.Contains(r.output, "boom") {
		t.Errorf("%+v", r)
	}
}

// TestServerTests: a test is selected by what it calls, at any depth, and no other one is.
func TestServerTests(t *testing.T) {
	tests, err := serverTests("../../sync")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"TestAStrangerSharesLocksBothWays", "TestACL_ACluster", "TestSync_I1_ExclusionAcrossProcesses"} {
		if !slices.Contains(tests, name) {
			t.Errorf("%s is not selected", name)
		}
	}
	if slices.Contains(tests, "TestFieldNames") || len(tests) > 100 {
		t.Errorf("too many are selected: %d", len(tests))
	}
}

// TestReplace: the lines of the servers that ran are new, all others stay, and the order is that of the list.
func TestReplace(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("a\n"+tableBegin+"\n| valkey-9.1 | old |\n| redis-8.6 | old |\n"+tableEnd+"\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rows := []row{
		{server: "redis-8.6", version: "Redis 8.6.3", suite: "wire", passed: 7, failed: 1, skipped: []string{"x, this is Redis 8.6.3", "x, this is Redis 8.6.3"}},
		{server: "redis-8.6", version: "Redis 8.6.3", suite: "lock", skipped: []string{"y"}},
		{server: "redis-8.0", skipped: []string{"not fetched: no | apt"}},
	}
	if err := replace(page, table(rows), suites(true)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := "a\n" + tableBegin + "\n\n| server | version | run on | wire | lock | failed | skipped, and why |\n|---|---|---|---:|---:|---:|---|\n" +
		"| redis-8.0 | not fetched: no \\| apt |\n| redis-8.6 | Redis 8.6.3 | " + time.Now().UTC().Format(time.DateOnly) + " | 7 | – | 1 | 3: 2 × x; 1 × y |\n" +
		"| valkey-9.1 | old |\n\n" + tableEnd + "\nb\n"
	if string(text) != want {
		t.Errorf("%s", text)
	}
}

// TestReady_OfAnother: a source that has moved on is told, and a digest that differs is no server.
func TestReady_OfAnother(t *testing.T) {
	dir := t.TempDir()
	program := func(version string) getter {
		return func(_ context.Context, dir string) error { return wrap(dir, "", "echo", version, "#") }
	}
	is := func(s server, want string) {
		t.Helper()
		if _, err := s.ready(t.Context(), dir); err == nil != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	is(server{name: "redis-8.6", get: program("Redis server v=8.6.9")}, "")
	is(server{name: "redis-8.7", get: program("Redis server v=8.70.1")}, "now holds Redis 8.70.1")
	is(server{name: "valkey-8.6", get: program("Redis server v=8.6.3")}, "now holds Redis 8.6.3")
	is(server{name: "redis-1", get: func(ctx context.Context, dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "x.whl"), []byte("another"), 0o600); err != nil {
			return err
		}
		return unpack(ctx, dir, "*.whl", "0123", "unzip")
	}}, "not 0123")
}
