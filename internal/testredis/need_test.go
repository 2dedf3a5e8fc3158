package testredis_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/testredis"
)

// Without the program a test is told how to get it and is skipped and counted; CI fails
// and counts nothing.
func TestNeed(t *testing.T) {
	for ci, counted := range map[string]string{"": "the name\n", "true": ""} {
		file := filepath.Join(t.TempDir(), "skipped")
		t.Setenv("ANTEROOM_SKIPPED", file)
		t.Setenv("CI", ci)
		err := testredis.WithoutTest("the name", func(p *testredis.Program) error {
			testredis.Need(p, "anteroom-has-no-such-program", "some-package")
			t.Error("Need returned")
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "apt-get install some-package") {
			t.Errorf("CI=%q: %v", ci, err)
		}
		if text, _ := os.ReadFile(file); string(text) != counted {
			t.Errorf("CI=%q: counted %q, want %q", ci, text, counted)
		}
	}
	if path := testredis.Need(t, "go", "golang"); path == "" {
		t.Error("no path of a program that is there")
	}
}
