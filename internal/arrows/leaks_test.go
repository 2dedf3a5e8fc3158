package arrows

import (
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestLeaks_EveryPackageLooksForThem finds packages whose tests would not notice a leaked goroutine.
func TestLeaks_EveryPackageLooksForThem(t *testing.T) {
	tested, looks := map[string]bool{}, map[string]bool{}
	sources(t, func(name, text string) {
		if !strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/testdata/") {
			return
		}
		dir := filepath.Dir(name)
		tested[dir] = tested[dir] || declared.MatchString(text)
		looks[dir] = looks[dir] || strings.Contains(text, "goleak.VerifyTestMain(")
	})
	for dir := range tested {
		if !looks[dir] {
			t.Errorf("the tests of %s do not look for leaked goroutines: its TestMain needs goleak.VerifyTestMain", dir)
		}
	}
	if len(tested) < 10 {
		t.Fatalf("only %d packages with tests were found: this test looks for the wrong thing", len(tested))
	}
}
