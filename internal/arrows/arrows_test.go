// Package arrows checks the picture in docs/internals/architecture.md: imports point down and never run back.
package arrows

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/anteroom/anteroom/"

// allowed lists which packages each package may import beyond the standard library: ours by folder, others by a
// prefix of their path. Tests may import more; they never reach a user.
var allowed = map[string][]string{
	"queue":                      {},
	"internal/heap":              {},
	"renewal":                    {"internal/heap"},
	"watchdog":                   {"internal/heap", "internal/goroutines"},
	"lettuce_compat":             {"github.com/redis/go-redis/v9"},
	"internal/goid":              {"github.com/petermattis/goid"},
	"internal/goroutines":        {},
	"internal/waits":             {"queue"},
	"sync/observe":               {},
	"sync/internal/conversation": {},
	"sync/internal/lock":         {"sync/internal/conversation", "queue", "renewal", "lettuce_compat"},
	"sync":                       {"sync/observe", "sync/internal/report", "sync/internal/lock", "queue", "renewal", "watchdog", "lettuce_compat", "internal/goid", "internal/waits", "github.com/redis/go-redis/v9"},
	"sync/internal/report":       {"sync/observe", "sync/internal/lock", "queue", "renewal", "watchdog", "lettuce_compat", "internal/goroutines", "internal/waits"},
	"leader":                     {"sync", "sync/observe"},
	"fence":                      {"github.com/redis/go-redis/v9"},

	"metrics":                {"sync", "sync/observe", "metrics/debug", "metrics/internal/facts", "github.com/prometheus/client_golang", "github.com/prometheus/client_model"},
	"metrics/debug":          {"sync", "sync/observe"},
	"metrics/internal/facts": {"sync/observe"},
	"sync/locktest":          {"sync", "sync/observe", "lettuce_compat", "internal/faultnet", "github.com/redis/go-redis/v9", "github.com/alicebob/miniredis/v2"},
	"cmd/anteroom":           {"sync", "sync/observe", "lettuce_compat", "github.com/redis/go-redis/v9", "github.com/spf13/cobra", "golang.org/x/sys", "golang.org/x/term"},
	"cmd/demo":               {"sync", "sync/observe", "metrics", "metrics/debug", "internal/child", "internal/faultnet", "github.com/redis/go-redis/v9", "github.com/alicebob/miniredis/v2", "github.com/prometheus/client_golang", "github.com/prometheus/client_model", "golang.org/x/term"},

	// What tests and the module lab share: none of it reaches a user.
	"internal/arrows":    {},
	"internal/child":     {},
	"internal/faultnet":  {},
	"internal/headcount": {},
	"internal/pace":      {},
	"internal/screen":    {},
	"internal/seeds":     {},
	"internal/silence":   {"github.com/redis/go-redis/v9"},
	"internal/foreign":   {"github.com/redis/go-redis/v9"},
	"internal/testprom":  {"internal/child", "internal/testredis"},
	"internal/testredis": {"internal/child", "internal/pace", "github.com/redis/go-redis/v9"},
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func TestImportsPointDown(t *testing.T) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := map[string]bool{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p.ImportPath, module)
		rule, known := allowed[name]
		if !known {
			t.Errorf("package %s is not in the picture: give it a place in docs/internals/architecture.md, §3, and here", name)
			continue
		}
		seen[name] = true
		for _, imp := range p.Imports {
			if !permitted(imp, rule) {
				t.Errorf("%s imports %s, which the picture does not show", name, imp)
			}
		}
	}
	for name := range allowed {
		if !seen[name] {
			t.Errorf("package %s is in the picture and does not exist", name)
		}
	}
}

func permitted(imp string, rule []string) bool {
	if ours, ok := strings.CutPrefix(imp, module); ok {
		return slices.Contains(rule, ours)
	}
	if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") {
		return true // the standard library
	}
	return slices.ContainsFunc(rule, func(r string) bool { return imp == r || strings.HasPrefix(imp, r+"/") })
}
