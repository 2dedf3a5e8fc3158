package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run is the command without its process. It returns the exit status.
func run(ctx context.Context, args []string, out, problems io.Writer) int {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.SetOutput(problems)
	only := flags.String("only", "", "run only the mutants whose name contains this")
	find := flags.Bool("find", false, "run all tests of the package of each mutant, and report which fail: for adding a mutant")
	// Half of the processors, because many of the tests measure time.
	atOnce := flags.Int("j", max(1, runtime.NumCPU()/2), "mutants that run at once")
	limit := flags.Duration("limit", 2*time.Minute, "time limit of the tests of one mutant")
	if flags.Parse(args) != nil {
		return 2
	}
	root, err := findRoot()
	all, failed := mutants()
	if err = errors.Join(err, failed); err != nil {
		fmt.Fprintln(problems, err)
		return 2
	}
	chosen := slices.DeleteFunc(all, func(m mutant) bool { return !strings.Contains(m.name, *only) })
	r := &runner{root: root, limit: *limit, find: *find}
	if !r.find {
		if err := r.baseline(ctx, chosen); err != nil {
			fmt.Fprintln(problems, err)
			return 2
		}
	}
	return r.all(ctx, chosen, max(1, *atOnce), out, problems)
}

// all runs the mutants, several at once, and prints a line for each as it ends and the counts after the last.
func (r *runner) all(ctx context.Context, chosen []mutant, atOnce int, out, problems io.Writer) int {
	var mu sync.Mutex // of counts and out
	counts := map[verdict]int{}
	next := make(chan mutant)
	var workers sync.WaitGroup
	for range min(atOnce, len(chosen)) {
		builds, err := newCache()
		defer builds.remove()
		if err != nil {
			close(next)
			workers.Wait()
			fmt.Fprintln(problems, err)
			return 2
		}
		workers.Go(func() {
			for m := range next {
				began := time.Now()
				v, detail, err := r.try(ctx, m, builds)
				if err != nil {
					v, detail = notRun, err.Error()
				}
				mu.Lock()
				counts[v]++
				fmt.Fprintf(out, "%-14s %-34s %5.1fs %s\n", v, m.name, time.Since(began).Seconds(), strings.Join(m.tests, " "))
				if detail != "" {
					fmt.Fprintln(out, "    "+strings.ReplaceAll(detail, "\n", "\n    "))
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range chosen {
		next <- m
	}
	close(next)
	workers.Wait()
	broken := len(chosen) - counts[caught] - counts[survived]
	fmt.Fprintf(out, "mutants=%d caught=%d survived=%d broken=%d\n", len(chosen), counts[caught], counts[survived], broken)
	if len(chosen) == 0 || counts[caught] != len(chosen) {
		return 1
	}
	return 0
}
