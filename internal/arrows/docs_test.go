package arrows

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/sync/observe"
)

// root is the repository, relative to this folder.
const root = "../.."

// read returns the text of a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// documents returns every page of the repository, by name.
func documents(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir // what git keeps, and the servers that were fetched
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		name, err := filepath.Rel(root, path)
		docs[filepath.ToSlash(name)] = read(t, name)
		return err
	})
	if err != nil || len(docs) < 10 {
		t.Fatalf("%d documents: %v", len(docs), err)
	}
	return docs
}

// sources calls f for every Go file of the repository.
func sources(t *testing.T, f func(name, text string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		data, err := os.ReadFile(path)
		f(path, string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	declared = regexp.MustCompile(`(?m)^func ((?:Test|Example|Benchmark)\w*)\(`)
	named    = regexp.MustCompile(`\b(?:Test|Example|Benchmark)[A-Z_]\w*`)
)

// TestDocs_NamedTestsExist: every test that a document names as a proof must exist.
func TestDocs_NamedTestsExist(t *testing.T) {
	exists := map[string]bool{}
	sources(t, func(name, text string) {
		if strings.HasSuffix(name, "_test.go") {
			for _, m := range declared.FindAllStringSubmatch(text, -1) {
				exists[m[1]] = true
			}
		}
	})
	total := 0
	for doc, text := range documents(t) {
		for _, name := range named.FindAllString(text, -1) {
			total++
			if !exists[name] {
				t.Errorf("%s names %s, which does not exist", doc, name)
			}
		}
	}
	if total < 20 {
		t.Fatalf("only %d names of tests were found in the documents: this test looks for the wrong thing", total)
	}
}

// TestDocs_NoReleaseIsDropped: `defer hold.Release(ctx)` drops ErrLost, so nothing that people copy shows it.
func TestDocs_NoReleaseIsDropped(t *testing.T) {
	copied := documents(t)
	sources(t, func(name, text string) {
		if base := filepath.Base(name); strings.Contains(name, "/examples/") || base == "doc.go" || strings.HasPrefix(base, "example_") {
			copied[name] = text
		}
	})
	dropped := regexp.MustCompile(`(?m)^.*(?:defer|go) \w+\.Release\(.*$`)
	for name, text := range copied {
		for _, line := range dropped.FindAllString(text, -1) {
			if line != "defer lock.Release(ctx)" { // redislock's, in what is to be replaced
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the anchors of a document's headings, as GitHub generates them.
func anchors(text string) map[string]bool {
	set := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		slug := strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")
		for n := 0; ; n++ {
			name := slug
			if n > 0 {
				name = fmt.Sprintf("%s-%d", slug, n)
			}
			if !set[name] {
				set[name] = true
				break
			}
		}
	}
	return set
}

// TestDocs_LinksLeadSomewhere checks every link within the repository.
func TestDocs_LinksLeadSomewhere(t *testing.T) {
	docs := documents(t)
	total := 0
	for doc, text := range docs {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			total++
			file, anchor, _ := strings.Cut(m[1], "#")
			target := doc
			if file != "" {
				target = filepath.Join(filepath.Dir(doc), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", doc, m[1])
			} else if anchor != "" && !anchors(docs[target])[anchor] {
				t.Errorf("%s links to %s, and %s has no such heading", doc, m[1], target)
			}
		}
	}
	if total < 20 {
		t.Fatalf("only %d links were found: this test looks for the wrong thing", total)
	}
}

var (
	cited   = regexp.MustCompile(`\b(docs/[\w/-]+\.md),? §(\d+(?:\.\d+)*)`)
	section = regexp.MustCompile(`(?m)^#{2,6} +(\d+(?:\.\d+)*)\b|\b(\d+\.\d+\.\d+) [A-Z]`)
)

// TestDocs_SectionsThatCodeCitesExist: comments cite sections by number. The design document's third-level numbers
// are in the running text, before a name.
func TestDocs_SectionsThatCodeCitesExist(t *testing.T) {
	have := map[string]bool{}
	for doc, text := range documents(t) {
		for _, m := range section.FindAllStringSubmatch(text, -1) {
			have[doc+" §"+m[1]+m[2]] = true
		}
	}
	total := 0
	sources(t, func(name, text string) {
		for _, m := range cited.FindAllStringSubmatch(text, -1) {
			total++
			if !have[m[1]+" §"+m[2]] {
				t.Errorf("%s cites %s §%s, which does not exist", name, m[1], m[2])
			}
		}
	})
	if total == 0 {
		t.Fatal("no comment cites a section: this test looks for the wrong thing")
	}
}

// TestDocs_ReadmeProgramCompiles: the README's program is, word for word, an Example of the package, which is
// compiled with the tests.
func TestDocs_ReadmeProgramCompiles(t *testing.T) {
	program := strings.NewReplacer(
		"package anteroom_test", "package main", "func Example_readme()", "func main()",
	).Replace(read(t, "sync/example_readme_test.go"))
	if !strings.Contains(read(t, "README.md"), "```go\n"+program+"```\n") {
		t.Fatal("the program in README.md is not that of sync/example_readme_test.go")
	}
}

// TestDocs_EveryEventHasAnEntry: the page of events says what to do about every one.
func TestDocs_EveryEventHasAnEntry(t *testing.T) {
	text := read(t, "docs/reference/events.md")
	for _, kind := range observe.Labels().Events {
		if !strings.Contains(text, "\n### "+string(kind)+"\n") {
			t.Errorf("docs/reference/events.md has no entry for the event %s", kind)
		}
	}
}
