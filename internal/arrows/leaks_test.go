package arrows

import (
	"path/filepath"
	"regexp"
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

// logs are the imports that may write log lines in a test.
var logs = regexp.MustCompile(`(?m)^\t(?:\w+ )?"(github.com/redis/go-redis/v9|github.com/anteroom/anteroom/(sync|lettuce_compat|internal/testredis))"$`)

// TestLogs_EveryPackageSilencesThem finds packages whose tests may write log lines among their results.
func TestLogs_EveryPackageSilencesThem(t *testing.T) {
	tested, may, silent := map[string]bool{}, map[string]bool{}, map[string]bool{}
	sources(t, func(name, text string) {
		if strings.Contains(name, "/testdata/") {
			return
		}
		dir := filepath.Dir(name)
		may[dir] = may[dir] || logs.MatchString(text)
		if strings.HasSuffix(name, "_test.go") {
			tested[dir] = tested[dir] || declared.MatchString(text)
			silent[dir] = silent[dir] || strings.Contains(text, "silence.Logs()\n")
		}
	})
	count := 0
	for dir := range tested {
		if may[dir] {
			count++
			if !silent[dir] {
				t.Errorf("the tests of %s may write log lines: its TestMain needs silence.Logs", dir)
			}
		}
	}
	if count < 10 {
		t.Fatalf("only %d packages that may write log lines were found: this test looks for the wrong thing", count)
	}
}
