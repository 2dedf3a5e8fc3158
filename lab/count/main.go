// Command count prints how large the core is, so that its growth shows:
//
//	lines      of the non-test files, with comments and blank lines
//	types      type declarations at the top level, including those in a group and aliases
//	functions  function and method declarations; a literal is part of the enclosing one
//	paths      the functions of the library, and their files, that are entered by an
//	           uncontended Lock and Unlock, and by an Acquire while another one waits, the
//	           hand-off to that one, and its Release
//
// Paths are measured by coverage: the command builds itself with counters, walks a path once to warm it up, clears
// the counters and walks it again. It does so in several processes, and counts what was entered in all of them, so
// that no timer plays a part.
//
//	make count
//	go -C lab run ./count -v     also lists the functions
package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/coverage"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	anteroom "github.com/anteroom/anteroom/sync"
)

const module = "github.com/anteroom/anteroom/"

// walks is the number of processes in which each path is walked.
const walks = 5

func main() {
	log.SetFlags(0)
	if len(os.Args) == 3 && os.Args[1] == "walk" {
		walk(os.Args[2])
		return
	}
	for _, pkg := range []string{"sync", "queue", "renewal", "watchdog", "lettuce_compat"} {
		size(pkg)
	}
	dir := must(os.MkdirTemp("", "count"))
	defer func() { _ = os.RemoveAll(dir) }()
	binary := filepath.Join(dir, "count")
	run("go", "build", "-cover", "-covermode=atomic", "-coverpkg="+module+"...", "-o", binary, module+"lab/count")
	for _, path := range []string{"lock", "handoff"} {
		all := entered(binary, path)
		for range walks - 1 {
			once := entered(binary, path)
			maps.DeleteFunc(all, func(f string, _ bool) bool { return !once[f] })
		}
		core := maps.Clone(all)
		maps.DeleteFunc(core, func(f string, _ bool) bool { return !strings.HasPrefix(f, "sync/") })
		fmt.Printf("path %-8s in sync %3d functions in %2d files, in all packages %3d in %2d\n", path, len(core), files(core), len(all), files(all))
		if slices.Contains(os.Args, "-v") {
			fmt.Println("  " + strings.Join(slices.Sorted(maps.Keys(all)), "\n  "))
		}
	}
}

// size prints the size of a package.
func size(pkg string) {
	var lines, types, functions int
	names := must(filepath.Glob(filepath.Join("..", pkg, "*.go")))
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	for _, name := range names {
		text := must(os.ReadFile(name))
		lines += strings.Count(string(text), "\n")
		for _, d := range must(parser.ParseFile(token.NewFileSet(), name, text, 0)).Decls {
			if group, is := d.(*ast.GenDecl); !is {
				functions++
			} else if group.Tok == token.TYPE {
				types += len(group.Specs)
			}
		}
	}
	fmt.Printf("%-14s %5d lines in %2d files, %2d types, %3d functions\n", pkg, lines, len(names), types, functions)
}

// entered walks a path in a process of its own and returns what it entered: "<file> <function>".
func entered(binary, path string) map[string]bool {
	dir := must(os.MkdirTemp(filepath.Dir(binary), path))
	must(0, os.Setenv("GOCOVERDIR", dir))
	run(binary, "walk", path)
	names := map[string]bool{}
	for line := range strings.Lines(run("go", "tool", "covdata", "func", "-i", dir)) {
		f := strings.Fields(line) // "<file>:<line>:", "<function>", "<part>%"
		file, ours := strings.CutPrefix(f[0], module)
		if ours && f[2] != "0.0%" && !strings.HasPrefix(file, "lab/") {
			file, _, _ = strings.Cut(file, ":")
			names[file+" "+f[1]] = true
		}
	}
	return names
}

func files(names map[string]bool) int {
	distinct := map[string]bool{}
	for name := range names {
		file, _, _ := strings.Cut(name, " ")
		distinct[file] = true
	}
	return len(distinct)
}

// walk walks a path twice. The coverage of the second walk is written as the process ends.
func walk(path string) {
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: must(miniredis.Run()).Addr()})
	mu := must(anteroom.NewManager(rdb, anteroom.Config{Logger: slog.New(slog.DiscardHandler)})).Mutex("k")
	for range 2 {
		_ = coverage.ClearCounters()
		if path == "lock" {
			mu.Lock()
			//lint:ignore SA2001 nothing is to be done between
			mu.Unlock()
		} else {
			first, done := must(mu.Acquire(ctx)), make(chan error)
			go func() { done <- must(mu.Acquire(ctx)).Release(ctx) }()
			for parked := false; !parked; time.Sleep(time.Millisecond) {
				stacks := make([]byte, 1<<20)
				parked = strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "queue.(*Synchronizer).Wait")
			}
			time.Sleep(10 * time.Millisecond) // from Wait's beginning to its sleep
			must(0, first.Release(ctx))
			must(0, <-done)
		}
		time.Sleep(50 * time.Millisecond) // answered goroutines end
	}
}

func run(name string, args ...string) string {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	return string(must(cmd.Output()))
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
