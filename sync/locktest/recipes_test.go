package locktest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The code in docs/recipes.md is that of the Examples, tests and programs, which are compiled and run. Only indentation
// may differ.
func TestRecipesAreInTheExamples(t *testing.T) {
	page, err := os.ReadFile("../../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	sources := exampleSources(t)
	blocks := blocksOf(string(page), "go")
	if len(blocks) < 11 {
		t.Errorf("%d blocks found, want at least 11", len(blocks))
	}
	for _, b := range blocks {
		if !strings.Contains(bare(sources), "\n"+bare(b)+"\n") {
			t.Errorf("this block is in no Example or program:\n%s", b)
		}
	}
}

// So is that in docs/migrating.md which is indented as it is there; the others show how other libraries are used.
func TestMigratingIsInTheExamples(t *testing.T) {
	page, err := os.ReadFile("../../docs/migrating.md")
	if err != nil {
		t.Fatal(err)
	}
	sources, ours := exampleSources(t), 0
	for _, b := range blocksOf(string(page), "go") {
		if strings.HasPrefix(b, "\t") {
			ours++
			if !strings.Contains(bare(sources), "\n"+bare(b)+"\n") {
				t.Errorf("this block is in no Example:\n%s", b)
			}
		}
	}
	if ours < 2 {
		t.Errorf("%d blocks are indented, want 2", ours)
	}
}

func exampleSources(t *testing.T) string {
	t.Helper()
	var sources strings.Builder
	for _, pattern := range []string{"../example_*test.go", "example_test.go", "shop_test.go", "../../examples/*/main.go", "../../fence/example_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no files match %s: %v", pattern, err)
		}
		for _, f := range files {
			source, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			sources.WriteString("\n" + string(source) + "\n")
		}
	}
	return sources.String()
}

// blocksOf returns the text between ```language and ```.
func blocksOf(page, language string) []string {
	var blocks []string
	for _, part := range strings.Split(page, "```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```")
		blocks = append(blocks, block)
	}
	return blocks
}

// bare removes the indentation of each line.
func bare(code string) string {
	lines := strings.Split(code, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}

func TestBlocksOfAPageAreFound(t *testing.T) {
	const page = "text\n```go\n\tx := 1\n\ty := 2\n```\nmore\n```sql\nSELECT 1\n```\n```go\nz()\n```\n"
	blocks := blocksOf(page, "go")
	if len(blocks) != 2 || bare(blocks[0]) != "x := 1\ny := 2" || blocks[1] != "z()" {
		t.Errorf("blocks of Go: %q", blocks)
	}
}
