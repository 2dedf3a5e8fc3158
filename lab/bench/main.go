// Command bench measures Anteroom and other ways to lock, side by side in one run, on a redis-server that it starts
// itself.
//
//	go run .                        everything: minutes
//	go run . -quick                 the main scenarios: under 50 s
//	go run . -list                  what there is
//	go run . -only 'alone|many'     scenarios whose name matches
//	go run . -libraries 'rue|evalsha'  libraries whose name matches
//	go run . -peers -out ""         the peers alone, in all configurations that were tried
//	go run . -only held -keep       the file keeps the results of all other scenarios
//	go run . -old PROGRAM -only alone
//	                                Anteroom of another checkout too: PROGRAM is its bench, built. No file without -out
//	go run . -render -plots ../../docs/plots -pages ../../docs/performance.md,../../docs/generated/benchmarks.md
//	                                measure nothing: charts and tables from the file
//
// It prints a table for each scenario and writes all results to a file. docs/performance.md and measure.Figure
// explain the figures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/lab/bench/measure"
	"github.com/anteroom/anteroom/lab/bench/scenario"
)

// limit bounds a run, whatever happens.
const limit = 30 * time.Minute

func main() {
	child.Run(scenario.Roles())
	var plan scenario.Plan
	flag.BoolVar(&plan.Quick, "quick", false, "only the main scenarios, with short rounds")
	flag.IntVar(&plan.Rounds, "rounds", 0, "rounds of every scenario; 0: its own number")
	only := flag.String("only", "", "run only scenarios whose name matches this regular expression")
	flag.BoolVar(&plan.Peers, "peers", false, "measure other configurations of the peers, to find the best")
	flag.StringVar(&plan.Old, "old", "", "a bench program built from another checkout, to measure its Anteroom too")
	libraries := flag.String("libraries", "", "measure only libraries whose name matches this regular expression")
	list := flag.Bool("list", false, "list the scenarios and exit")
	out := flag.String("out", "results.json", "the file for the results; empty: none")
	var render render
	flag.BoolVar(&render.keep, "keep", false, "keep the results in the file of scenarios that are not measured")
	flag.BoolVar(&render.only, "render", false, "measure nothing, make charts and documents from the file")
	flag.StringVar(&render.plots, "plots", "", "a folder for charts as SVG")
	flag.StringVar(&render.pages, "pages", "", "documents whose tables are regenerated, separated by commas")
	flag.Parse()
	if plan.Old != "" && !given("out") {
		*out = "" // what is committed has one Anteroom
	}

	if render.only {
		if err := render.write(os.Stdout, *out, nil); err != nil {
			fail(err)
		}
		return
	}
	var err error
	if plan.Old != "" && plan.Peers {
		fail(errors.New("-old and -peers exclude each other"))
	}
	if plan.Libraries, err = regexp.Compile(*libraries); err != nil {
		fail(err)
	}
	chosen, err := choose(scenario.Table(), plan.Quick, *only)
	if err == nil && *list {
		for _, s := range chosen {
			fmt.Printf("%-24s %s\n", s.Name, s.Title)
		}
		return
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if isTerminal(os.Stderr) {
			plan.Progress = os.Stderr
		}
		err = run(ctx, os.Stdout, plan, chosen, *out, render)
	}
	if err != nil {
		fail(err)
	}
}

// given reports whether a flag is on the command line.
func given(name string) (is bool) {
	flag.Visit(func(f *flag.Flag) { is = is || f.Name == name })
	return is
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// choose returns the scenarios to run.
func choose(all []scenario.Scenario, quick bool, only string) (chosen []scenario.Scenario, err error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		// Scenarios that are named are run, quick or not.
		if match.MatchString(s.Name) && (!quick || s.Quick || only != "") {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no scenario matches %q; -list prints them", only)
	}
	return chosen, nil
}

// run measures, prints and writes the results, including those obtained before an error.
func run(ctx context.Context, w io.Writer, plan scenario.Plan, chosen []scenario.Scenario, out string, render render) (err error) {
	fmt.Fprintln(w, machine())
	start := time.Now()
	var outcomes []scenario.Outcome
	var results []measure.Result
	for _, s := range chosen {
		o, failed := plan.Run(ctx, s)
		if err = failed; err != nil {
			break
		}
		o.Print(w)
		outcomes = append(outcomes, o)
		results = append(results, o.Results...)
	}
	scenario.PrintSettings(w, outcomes)
	printVerdicts(w, outcomes)
	fmt.Fprintf(w, "\nMeasured for %.0f s. At the end: %s\n", time.Since(start).Seconds(), machine())
	if len(results) > 0 {
		err = errors.Join(err, render.write(w, out, results))
	}
	return err
}

// printVerdicts repeats the verdicts of all scenarios, so that they are easy to find.
func printVerdicts(w io.Writer, outcomes []scenario.Outcome) {
	fmt.Fprint(w, "\nTargets:\n\n")
	var all []measure.Result
	for _, o := range outcomes {
		all = append(all, o.Results...)
	}
	for _, o := range outcomes {
		for _, t := range o.Scenario.Targets {
			fmt.Fprintf(w, "  %s: %v\n", o.Scenario.Name, t.Judge(o.Scenario.Name, all))
		}
	}
}

// machine describes the machine, and how busy it is.
func machine() string {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		load = []byte("unknown")
	}
	return fmt.Sprintf("%d processors, %s %s/%s, load averages %s", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, strings.TrimSpace(string(load)))
}

// isTerminal reports whether output goes to a terminal.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
