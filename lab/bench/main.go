// Command bench measures Anteroom and other ways to lock, side by side in one run, on a redis-server that it starts
// itself.
//
//	scenarios() ── rounds, interleaved ──► figures ──► results ──┬─► results.json ──► docs/reference/measurements.md,
//	  each: load · crew · handover · grow · removal              │                   docs/performance.md, docs/plots
//	                                                             └─► the screen
//
//	go run .                        everything: about 25 minutes
//	go run . -only 'alone|many'     scenarios whose name matches; the file keeps the others
//	go run . -render                measure nothing: pages and charts from the file
//
// Without -only a run writes the pages and charts too. figures.go explains the figures.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/anteroom/anteroom/internal/child"
)

// limit bounds a run, whatever happens.
const limit = 40 * time.Minute

// roles are what children of this program do.
var roles = map[string]child.Role{"crew": crewRole, "handover": handoverRole, "grow": growRole, "removal": removalRole, "far": farRole}

func main() {
	child.Run(roles)
	var p plan
	flag.IntVar(&p.rounds, "rounds", 0, "rounds of every scenario; 0: its own number")
	only := flag.String("only", "", "run only scenarios whose name matches this regular expression")
	file := flag.String("out", "results.json", "the file for the results")
	render := flag.Bool("render", false, "measure nothing, make pages and charts from the file")
	docs := flag.String("docs", "../../docs", "the folder of the pages and charts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	chosen, err := choose(*only)
	switch {
	case err != nil:
	case *render:
		err = renderFile(*file, *docs)
	default:
		whole := *only == ""
		err = run(ctx, os.Stdout, p, chosen, *file, !whole)
		if err == nil && whole {
			err = renderFile(*file, *docs)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// choose returns the scenarios to run.
func choose(only string) ([]scenario, error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return nil, err
	}
	chosen := slices.DeleteFunc(scenarios(), func(s scenario) bool { return !match.MatchString(s.name) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no scenario matches %q", only)
	}
	return chosen, nil
}

// run measures, prints and writes the results, including those obtained before an error. keep: the file keeps the
// results of other scenarios.
func run(ctx context.Context, w io.Writer, p plan, chosen []scenario, file string, keep bool) error {
	fmt.Fprintln(w, machine())
	began := time.Now()
	var results []result
	var err error
	for _, s := range chosen {
		more, notes, failed := p.run(ctx, s)
		if failed != nil {
			err = failed
			break
		}
		results = append(results, more...)
		fmt.Fprintf(w, "\n%s (%s)\n\n%s", s.title, s.name, text(table(more)))
		for _, note := range notes {
			fmt.Fprintln(w, "  note:", note)
		}
	}
	fmt.Fprintf(w, "\nThe libraries and their settings:\n\n%s", text(settings(results)))
	fmt.Fprintf(w, "\nMeasured for %.0f s. At the end: %s\n", time.Since(began).Seconds(), machine())
	if len(results) == 0 {
		return err
	}
	if keep {
		old, failed := readResults(file)
		if failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			return errors.Join(err, failed)
		}
		results = merge(old, results)
	}
	return errors.Join(err, writeResults(file, results))
}

// machine describes the machine, and how busy it is.
func machine() string {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		load = []byte("unknown")
	}
	return fmt.Sprintf("%d processors, %s %s/%s, load averages %s", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, strings.TrimSpace(string(load)))
}

// writeResults writes one array, an object a line.
func writeResults(file string, results []result) error {
	var b strings.Builder
	for i, r := range results {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%c\n  %s", "[,"[min(i, 1)], line)
	}
	return os.WriteFile(file, []byte(b.String()+"\n]\n"), 0o644)
}

func readResults(file string) (results []result, err error) {
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &results)
	}
	return results, err
}

// merge returns the old results without the scenarios that were measured, and the new ones, in the order of the
// scenarios.
func merge(old, measured []result) (all []result) {
	for _, s := range scenarios() {
		if fresh := of(measured, s.name); len(fresh) > 0 {
			all = append(all, fresh...)
		} else {
			all = append(all, of(old, s.name)...)
		}
	}
	return all
}
