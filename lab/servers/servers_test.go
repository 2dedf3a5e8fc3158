package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestServerTests: a test is selected by what it calls, at any depth, and no other one is.
func TestServerTests(t *testing.T) {
	tests, err := serverTests("../../sync")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"TestAForeignClientSharesLocksBothWays_Lab", "TestACL_ACluster", "TestSync_I1_ExclusionAcrossProcesses"} {
		if !slices.Contains(tests, name) {
			t.Errorf("%s is not selected", name)
		}
	}
	if slices.Contains(tests, "TestFieldNames") || len(tests) > 100 {
		t.Errorf("too many are selected: %d", len(tests))
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
