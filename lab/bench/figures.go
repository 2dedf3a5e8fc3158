package main

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// The figures of results.json. A figure is measured or absent; none is zero because it was not measured.
const (
	opsPerS  = "ops_per_s" // acquisitions
	p50      = "p50_us"    // of the wait: from the call of Lock to its return
	p99      = "p99_us"
	longest  = "max_us"
	writeP50 = "write_p50_us" // of the waits of writers beside readers
	writeP99 = "write_p99_us"
	pair     = "us_per_op" // the average time of one acquisition and its release, for a single goroutine

	mostToLeast        = "most_to_least_goroutine" // acquisitions of the most served divided by those of the least served
	mostToLeastProcess = "most_to_least_process"

	commandsPerOp = "redis_commands_per_op" // sent by clients; those called by scripts are not counted
	bytesPerOp    = "bytes_per_op"          // between clients and Redis, both ways
	allocsPerOp   = "allocs_per_op"         // objects
	heapPerOp     = "heap_bytes_per_op"     // that were allocated
	clientCPU     = "client_cpu_us_per_op"
	redisCPU      = "redis_cpu_us_per_op"
	connections   = "connections"

	violations = "violations" // of exclusion, of all rounds and their warm-ups
	failures   = "failures"   // Lock or Unlock returned an error before the end
	stuck      = "stuck"      // goroutines that did not come back after the end

	handoverP50 = "handover_p50_us" // from the call of the release to the return of the acquire in another process
	handoverP99 = "handover_p99_us"
	roundTrip   = "ping_p50_us"
	roundTrips  = "handover_p50_round_trips"

	heapPerItem   = "heap_bytes_per_item" // of a held lock, without stacks
	moreRoutines  = "goroutines_more"     // than before
	cpuPercent    = "client_cpu_percent_of_core"
	redisPercent  = "redis_cpu_percent_of_core"
	redisPerItem  = "redis_bytes_per_item"
	commandsInAll = "redis_commands_in_window"
	takenPerS     = "acquisitions_per_s" // while the locks were taken, by 64 goroutines
	freedPerS     = "releases_per_s"
	locksLost     = "locks_lost" // until their release

	removalP50 = "removal_p50_us" // from before the command that removes until the holder is notified
	removalP99 = "removal_p99_us"
)

// columns are the figures in the order of the tables, with their heads.
var columns = [][2]string{
	{opsPerS, "acquisitions/s"},
	{pair, "µs for a pair"},
	{p50, "wait p50"},
	{p99, "p99"},
	{longest, "max"},
	{writeP50, "write p50"},
	{writeP99, "write p99"},
	{mostToLeast, "most to least served"},
	{mostToLeastProcess, "most to least process"},
	{handoverP50, "hand-over p50"},
	{handoverP99, "hand-over p99"},
	{roundTrip, "PING p50"},
	{roundTrips, "hand-over in round trips"},
	{heapPerItem, "heap each"},
	{moreRoutines, "more goroutines"},
	{cpuPercent, "client CPU"},
	{redisPercent, "Redis CPU"},
	{redisPerItem, "Redis' memory each"},
	{commandsInAll, "commands sent"},
	{removalP50, "removal noticed p50"},
	{removalP99, "removal noticed p99"},
	{takenPerS, "taken/s"},
	{freedPerS, "released/s"},
	{commandsPerOp, "commands/op"},
	{bytesPerOp, "bytes/op"},
	{allocsPerOp, "allocs/op"},
	{heapPerOp, "heap/op"},
	{clientCPU, "client CPU/op"},
	{redisCPU, "Redis CPU/op"},
	{connections, "connections"},
	{violations, "violations"},
	{failures, "failed"},
	{stuck, "stuck"},
	{locksLost, "lost"},
}

// figures are the results of one round, by name.
type figures map[string]float64

// add adds the figures of others.
func (f figures) add(others ...figures) figures {
	for _, o := range others {
		maps.Copy(f, o)
	}
	return f
}

// result is the result of several rounds of one library in one scenario.
type result struct {
	Scenario   string  `json:"scenario"`
	Library    string  `json:"library"`
	Version    string  `json:"version"`
	Settings   string  `json:"settings"`
	Processes  int     `json:"processes"`
	Goroutines int     `json:"goroutines"` // of each process
	Keys       int     `json:"keys"`
	Rounds     int     `json:"rounds"`
	Figures    figures `json:"figures"`
	// Spread has the least and the greatest of the rounds, where they differ.
	Spread map[string][2]float64 `json:"spread,omitempty"`
}

// summarize makes medians of rounds; for violations, failures and stuck goroutines sums; for the longest wait the
// maximum. If some rounds lack a figure, it is that of those that have it.
func summarize(r result, rounds []figures) result {
	r.Rounds, r.Figures, r.Spread = len(rounds), figures{}, map[string][2]float64{}
	all := map[string][]float64{}
	for _, f := range rounds {
		for name, v := range f {
			all[name] = append(all[name], v)
		}
	}
	for name, values := range all {
		slices.Sort(values)
		n := len(values)
		if values[0] != values[n-1] {
			r.Spread[name] = [2]float64{rounded(values[0]), rounded(values[n-1])}
		}
		switch name {
		case violations, failures, stuck:
			sum := 0.0
			for _, v := range values {
				sum += v
			}
			r.Figures[name] = sum
		case longest:
			r.Figures[name] = rounded(values[n-1])
		default:
			r.Figures[name] = rounded((values[n/2] + values[(n-1)/2]) / 2)
		}
	}
	return r
}

// rounded keeps five digits: more are noise and make the file unreadable.
func rounded(v float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 5, 64), 64) // what was formatted parses
	return r
}

func of(results []result, scenario string) []result {
	return slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.Scenario != scenario })
}

// figure returns a figure of one library in one scenario.
func figure(results []result, scenario, library, name string) (float64, bool) {
	for _, r := range results {
		if r.Scenario == scenario && r.Library == library {
			v, ok := r.Figures[name]
			return v, ok
		}
	}
	return 0, false
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
