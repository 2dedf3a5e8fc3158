// Command promise measures the promise of docs/guarantees.md §3 on Anteroom and on other packages for locks on Redis,
// and prints the tables of docs/generated/promise.md.
//
//	go run ./promise                       everything, once
//	go run ./promise -runs 3               three times, with the spread
//	go run ./promise -only Anteroom -kind expiry
//
// It needs a redis-server in PATH, an otherwise idle processor, and about five minutes a run.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/promise"
)

const lease = time.Second

// libraries are all that are measured. In the holders' processes each is identified by its name.
func libraries() []promise.Library {
	return []promise.Library{
		promise.Anteroom(lease, 0),
		promise.AnteroomUnrenewed(10*time.Second, 500*time.Millisecond, 250*time.Millisecond),
		rueidislockREADME(lease),
		rueidislockTight(lease),
		redislockREADME(lease),
		redislockCareful(lease),
	}
}

func main() {
	all := libraries()
	promise.Main(all...)
	leases := flag.Int("leases", 1000, "lost leases for each distribution")
	holds := flag.Int("holds", 200, "locks held at once")
	runs := flag.Int("runs", 1, "number of measurements")
	only := flag.String("only", "", "measure only libraries whose name has this prefix")
	kind := flag.String("kind", "", "measure only kinds of loss whose name has this prefix")
	flag.Parse()
	err := runAll(all, *runs, *only, *kind, promise.Plan{
		Leases: *leases, Holds: *holds,
		Failed: func(err error) { fmt.Fprintln(os.Stderr, "repeated:", err) },
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runAll(all []promise.Library, runs int, only, kind string, plan promise.Plan) error {
	var results [][]promise.Distribution
	for run := range runs {
		fmt.Printf("## Run %d of %d: %s\n\n", run+1, runs, machine())
		result, err := measure(all, only, kind, plan)
		if err != nil {
			return err
		}
		promise.Print(os.Stdout, result)
		fmt.Printf("\nAt the end: %s\n\n", machine())
		results = append(results, result)
	}
	if runs > 1 {
		fmt.Printf("## Least and greatest of %d runs\n\n", runs)
		promise.PrintSpread(os.Stdout, results)
	}
	return nil
}

func measure(all []promise.Library, only, kind string, plan promise.Plan) ([]promise.Distribution, error) {
	var result []promise.Distribution
	for _, lib := range all {
		if !strings.HasPrefix(lib.Name, only) {
			continue
		}
		fmt.Printf("- **%s**: %s\n", lib.Name, lib.Settings)
		for _, k := range promise.Kinds {
			// Leases that are never renewed expire by themselves; they are only for removals.
			if !strings.HasPrefix(k.Name, kind) || lib.Unrenewed && !k.Removal {
				continue
			}
			err := testredis.WithoutTest(lib.Name, func(p *testredis.Program) error {
				d, err := promise.Measure(p, lib, k, plan)
				result = append(result, d...)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	fmt.Println()
	return result, nil
}

// machine describes where and when the measurement takes place.
func machine() string {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		load = []byte("unknown")
	}
	return fmt.Sprintf("%d processors, %s %s/%s, load averages %s", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, strings.TrimSpace(string(load)))
}
