package arrows

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	// A numbered invariant begins a line: in a comment of Go, or in a list of a page.
	numbered = regexp.MustCompile(`(?m)^(?://)?\s*(?:- )?I(\d+)[.: ]`)
	// A test names one, or a range of them, in its own name: TestMutex_I4_…, TestManager_I1toI8_….
	proves = regexp.MustCompile(`(?m)^func Test\w*?_I(\d+)(?:toI(\d+))?(?:_|\()`)
)

// TestDocs_EveryInvariantHasATest: each numbered invariant of a package has a test of that package which names it. The
// package's doc.go lists them; those of sync, whose doc.go is for users, are in docs/internals/proofs.md. The
// benchmarks and laboratories are left out: some of their invariants hold by construction.
func TestDocs_EveryInvariantHasATest(t *testing.T) {
	const forUsers = "sync"
	tests, lists := map[string]map[int]bool{}, map[string]string{}
	sources(t, func(name, text string) {
		dir, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.ToSlash(dir)
		if filepath.Base(name) == "doc.go" {
			lists[dir] = text
		}
		for _, m := range proves.FindAllStringSubmatch(text, -1) {
			from, _ := strconv.Atoi(m[1])
			to, _ := strconv.Atoi(m[2])
			for n := from; n <= max(from, to); n++ {
				if tests[dir] == nil {
					tests[dir] = map[int]bool{}
				}
				tests[dir][n] = true
			}
		}
	})
	if numbered.MatchString(lists[forUsers]) {
		t.Error("sync/doc.go is for users; its invariants belong in docs/internals/proofs.md")
	}
	_, lists[forUsers], _ = strings.Cut(read(t, "docs/internals/proofs.md"), "## Invariants of sync\n")
	total := 0
	for _, dir := range slices.Sorted(maps.Keys(lists)) {
		if strings.HasPrefix(dir, "lab/") {
			continue
		}
		for _, m := range numbered.FindAllStringSubmatch(lists[dir], -1) {
			total++
			if n, _ := strconv.Atoi(m[1]); !tests[dir][n] {
				t.Errorf("no test of %s names I%d", dir, n)
			}
		}
	}
	if total < 50 {
		t.Fatalf("only %d invariants were found: this test looks for the wrong thing", total)
	}
}
