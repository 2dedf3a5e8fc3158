package anteroom

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The files about reports and settings. All others are the lock itself.
var reportFiles = []string{
	"config.go", "doc.go", "errors.go", "events.go", "inspect.go", "log.go", "observer.go", "open.go", "outage.go", "ping.go",
	"redact.go", "reports.go", "reports_services.go", "state.go", "survey.go", "trace.go", "wait_text.go", "waits.go", "words.go",
}

// The lock and what is told about it can be read one without the other.
func TestReports_TheCoreNamesNone(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || slices.Contains(reportFiles, name) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			id, is := n.(*ast.Ident)
			if is && (id.Name == "slog" || strings.Contains(id.Name, "Observer") || strings.Contains(id.Name, "Tracer") || strings.HasPrefix(id.Name, "Event")) {
				t.Errorf("%s names %s", name, id.Name)
			}
			return true
		})
	}
}
