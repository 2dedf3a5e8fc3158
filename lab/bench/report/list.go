package report

import (
	"github.com/anteroom/anteroom/lab/bench/crew"
	"github.com/anteroom/anteroom/lab/bench/growth"
	"github.com/anteroom/anteroom/lab/bench/handover"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
	"github.com/anteroom/anteroom/lab/bench/plot"
	"github.com/anteroom/anteroom/lab/bench/scenario"
)

const rate = "acquisitions/s"

// ofRounds is below every chart of several rounds.
const ofRounds = "medians; the thin lines reach from the least to the greatest round"

// oneEach is how most programs are deployed: many processes, in each of which one goroutine wants the lock.
var oneEach = []group{
	{"4 processes", "one-each-4-hold-1ms"}, {"16 processes", "one-each-16-hold-1ms"}, {"64 processes", "one-each-64-hold-1ms"},
}

// Charts are all pictures, in the order of the document.
func Charts() []Chart {
	charts := []Chart{
		bars("alone.svg", "One goroutine, lock and unlock", ofRounds, "µs for both", scenario.TimePerOp, false,
			group{"loopback", "alone"}, group{"loopback, processors awake", "alone-awake"}, group{"loopback, wherever the kernel puts it", "alone-anywhere"}, group{"Redis 1 ms away", "alone-1ms"}),
		bars("one-key.svg", "One key, one process, held for no time", ofRounds, rate, measure.OpsPerS, true,
			group{"1 goroutine", "alone"}, group{"8 goroutines", "one-key-8-hold-0s"},
			group{"64 goroutines", "one-key-64-hold-0s"}, group{"1,000 goroutines", "one-key-1000-hold-0s"}),
		bars("one-key-1ms.svg", "One key, one process, held for 1 ms", ofRounds+"; a sleep of 1 ms takes a little longer, so about 900/s is all there is", rate, measure.OpsPerS, false,
			group{"1 goroutine", "one-key-1-hold-1ms"}, group{"8 goroutines", "one-key-8-hold-1ms"},
			group{"64 goroutines", "one-key-64-hold-1ms"}, group{"1,000 goroutines", "one-key-1000-hold-1ms"}),
		bars("many-processes.svg", "One key, one goroutine in each process, held for 1 ms", ofRounds+"; all with go-redis' or rueidis' defaults", rate, measure.OpsPerS, false, oneEach...),
		bars("many-processes-wait.svg", "One goroutine in each process, held for 1 ms: the wait that 99 % do not exceed", ofRounds, "µs", measure.P99US, true, oneEach...),
		bars("wait.svg", "64 goroutines, one key: the wait that 99 % do not exceed", ofRounds, "µs", measure.P99US, true,
			group{"held for no time", "one-key-64-hold-0s"}, group{"held for 1 ms", "one-key-64-hold-1ms"}),
		bars("many-keys.svg", "64 goroutines, 64,000 keys", ofRounds, rate, measure.OpsPerS, true,
			group{"loopback", "many-keys"}, group{"Redis 1 ms away", "many-keys-1ms"}),
		bars("second-process.svg", "Two processes, one key", ofRounds, rate, measure.OpsPerS, true,
			group{"64 and 64 goroutines", "second-process"}, group{"64 and 1", "lone-rival"}, group{"64, Redis 1 ms away", "one-key-64-1ms"}),
		bars("share.svg", "Two processes × 64 goroutines: what the worse served one gets", "its least part of the acquisitions of any 2 s; 50 % is even", "%", crew.LeastShare, false,
			group{"64 and 64 goroutines", "second-process"}),
		bars("handover.svg", "Hand-over from one process to another that waits", "p50, from the call of the release to the return of the acquire; "+ofRounds, "round trips (PING)", handover.RoundTrips, false,
			group{"loopback", "handover"}, group{"loopback, wherever the kernel puts it", "handover-anywhere"}, group{"Redis 1 ms away", "handover-1ms"}),
	}
	return append(append(charts, growthCharts()...), budgetCharts()...)
}

func growthCharts() []Chart {
	log := func(label string) plot.Axis { return plot.Axis{Label: label, Log: true} }
	linear := func(label string) plot.Axis { return plot.Axis{Label: label} }
	processes := plot.Axis{Label: "processes, 16 goroutines each", Log: true, Ticks: []float64{1, 4, 8, 16, 32, 64}}
	of := func(family string, name measure.Figure, libraries ...string) (curves []curve) {
		for _, lib := range libraries {
			curves = append(curves, curve{name: lib, family: family, library: lib, figure: name, hue: hues[lib]})
		}
		return curves
	}
	return []Chart{
		lines("processes.svg", "One key, more and more processes", ofRounds, processes, log(rate), 0, true,
			of("processes", measure.OpsPerS, library.AnteroomFair, library.Anteroom, library.Redsync, library.Redislock, library.Rueidislock)...),
		lines("held-cpu.svg", "Held locks: the client's processor time", "default LockConfig, watchdog on", log("held locks"), log("% of one core"), 10, true,
			of("held", growth.CPU, library.Anteroom)...),
		lines("held-memory.svg", "Held locks: memory of the client", "default LockConfig, watchdog on", log("held locks"), linear("bytes for each, beside stacks"), 1024, true,
			of("held", growth.HeapPerItem, library.Anteroom)...),
		lines("parked-memory.svg", "Goroutines parked behind a local owner: memory", "beside their stacks, Go's descriptor of the goroutine included", log("parked goroutines"), linear("bytes for each"), 1024, true,
			append(of("parked", growth.HeapPerItem, library.AnteroomFair, library.Semaphore),
				curve{name: "parked on a channel", family: "parked", library: library.AnteroomFair, figure: growth.BareHeap, hue: 8})...),
		lines("parked-handoffs.svg", "Hand-offs with so many parked", "", log("parked goroutines"), log("hand-offs/s"), 0, true,
			of("parked", growth.HandoffsPerS, library.AnteroomFair, library.Semaphore)...),
		lines("keys.svg", "Keys used once: what is left in memory", "the client's heap after a collection, above what it was before the first key", log("keys used"), linear("bytes in all"), 0, false,
			of("keys", growth.HeapGrowth, library.Anteroom)...),
	}
}

func budgetCharts() []Chart {
	const sub = "two processes × 64 goroutines, fair, held for "
	const none, work = sub + "no time; ", sub + "1 ms; "
	hands := plot.Axis{Label: "MaxHandoffs, at most 20 ms", Log: true}
	ms := plot.Axis{Label: "MaxHandoffTime in ms, at most 65,535 hand-offs", Log: true}
	one := func(name, family string, figure measure.Figure, hue int, per float64) curve {
		return curve{name: name, family: family, figure: figure, hue: hue, per: per}
	}
	// Over time there are two curves: Redis here, and far.
	two := func(figure measure.Figure, per float64) []curve {
		return []curve{one("Redis on loopback", "budget-work", figure, 6, per), one("Redis 1 ms away", "budget-far", figure, 4, per)}
	}
	percent, inMS, ops := plot.Axis{Label: "%"}, plot.Axis{Label: "ms", Log: true}, plot.Axis{Label: rate}
	return []Chart{
		lines("budget-handoffs.svg", "The hand-off budget: throughput over MaxHandoffs", none+"both processes together", hands, plot.Axis{Label: rate, Log: true}, 0, false,
			one("both processes", "budget-handoffs", measure.OpsPerS, 6, 0)),
		lines("budget-wait-handoffs.svg", "The hand-off budget: waiting over MaxHandoffs", none+"the worse served process", hands, inMS, 0, false,
			one("wait, p99", "budget-handoffs", crew.WorstP99, 1, 1e3), one("wait, longest", "budget-handoffs", measure.MaxUS, 2, 1e3),
			one("longest time without the lock", "budget-handoffs", crew.LongestPause, 4, 1e3)),
		lines("budget-share-handoffs.svg", "The hand-off budget: shares over MaxHandoffs", none+"the least part of any 2 s; 50 % is even", hands, percent, 0, false,
			one("worse served process", "budget-handoffs", crew.LeastShare, 1, 0)),
		lines("budget-time.svg", "The hand-off budget: throughput over MaxHandoffTime", work+"both processes together", ms, ops, 0, false, two(measure.OpsPerS, 0)...),
		lines("budget-wait-time.svg", "The hand-off budget: waiting over MaxHandoffTime", work+"the longest time that a process was without the lock", ms, inMS, 0, false, two(crew.LongestPause, 1e3)...),
		lines("budget-share-time.svg", "The hand-off budget: shares over MaxHandoffTime", work+"the least part of any 2 s; 50 % is even", ms, percent, 0, false, two(crew.LeastShare, 0)...),
	}
}
