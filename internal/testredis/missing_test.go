package testredis_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/testredis"
)

// A test whose program is missing says how to install it, is skipped and counted; under CI it fails and is not
// counted.
func TestMissing(t *testing.T) {
	for ci, counted := range map[string]string{"": "the name\n", "true": ""} {
		file := filepath.Join(t.TempDir(), "skipped")
		t.Setenv("ANTEROOM_SKIPPED", file)
		t.Setenv("CI", ci)
		err := testredis.WithoutTest("the name", func(p *testredis.Program) error {
			testredis.Missing(p, "some-package")
			t.Error("Missing returned")
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "apt-get install some-package") {
			t.Errorf("CI=%q: %v", ci, err)
		}
		if text, _ := os.ReadFile(file); string(text) != counted {
			t.Errorf("CI=%q: counted %q, want %q", ci, text, counted)
		}
	}
}
