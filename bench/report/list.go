package report

import (
	"github.com/anteroom/anteroom/bench/crew"
	"github.com/anteroom/anteroom/bench/growth"
	"github.com/anteroom/anteroom/bench/handover"
	"github.com/anteroom/anteroom/bench/library"
	"github.com/anteroom/anteroom/bench/measure"
	"github.com/anteroom/anteroom/bench/plot"
	"github.com/anteroom/anteroom/bench/scenario"
)

const rate = "acquisitions/s"

// ofRounds is said below every chart of several rounds.
const ofRounds = "medians; the thin lines reach from the least to the greatest round"

// Charts are all pictures, in the order of the document.
func Charts() []Chart {
	charts := []Chart{
		bars("alone.svg", "One goroutine, lock and unlock", ofRounds, "µs for both", scenario.TimePerOp, false,
			group{"loopback", "alone"}, group{"loopback, processors awake", "alone-awake"}, group{"Redis 1 ms away", "alone-1ms"}),
		bars("one-key.svg", "One key, one process, held for no time", ofRounds, rate, measure.OpsPerS, true,
			group{"1 goroutine", "alone"}, group{"8 goroutines", "one-key-8-hold-0s"},
			group{"64 goroutines", "one-key-64-hold-0s"}, group{"1,000 goroutines", "one-key-1000-hold-0s"}),
		bars("one-key-1ms.svg", "One key, one process, held for 1 ms", ofRounds+"; a sleep of 1 ms takes a little longer, so about 900/s is all there is", rate, measure.OpsPerS, false,
			group{"1 goroutine", "one-key-1-hold-1ms"}, group{"8 goroutines", "one-key-8-hold-1ms"},
			group{"64 goroutines", "one-key-64-hold-1ms"}, group{"1,000 goroutines", "one-key-1000-hold-1ms"}),
		bars("wait.svg", "64 goroutines, one key: the wait that 99 % do not exceed", ofRounds, "µs", measure.P99US, true,
			group{"held for no time", "one-key-64-hold-0s"}, group{"held for 1 ms", "one-key-64-hold-1ms"}),
		bars("many-keys.svg", "64 goroutines, 64,000 keys", ofRounds, rate, measure.OpsPerS, true,
			group{"loopback", "many-keys"}, group{"Redis 1 ms away", "many-keys-1ms"}),
		bars("second-process.svg", "Two processes, one key", ofRounds, rate, measure.OpsPerS, true,
			group{"64 and 64 goroutines", "second-process"}, group{"64 and 1", "lone-rival"}, group{"64, Redis 1 ms away", "one-key-64-1ms"}),
		bars("share.svg", "Two processes × 64 goroutines: what the worse served one gets", "its least part of the acquisitions of any 2 s; 50 % is even", "%", crew.LeastShare, false,
			group{"64 and 64 goroutines", "second-process"}),
		bars("handover.svg", "Hand-over from one process to another that waits", "p50, from the call of the release to the return of the acquire; "+ofRounds, "round trips (PING)", handover.RoundTrips, false,
			group{"loopback", "handover"}, group{"loopback, processors awake", "handover-awake"}, group{"Redis 1 ms away", "handover-1ms"}),
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
		lines("keys.svg", "Keys used once: what is left in memory", "the client's heap after a collection, less than before the first key", log("keys used"), linear("bytes in all"), 0, false,
			of("keys", growth.HeapGrowth, library.Anteroom)...),
	}
}

func budgetCharts() []Chart {
	const sub = "two processes × 64 goroutines, fair; "
	const over = "MaxHandoffTime in ms, at most 65,535 hand-offs"
	hands, ms := plot.Axis{Label: "MaxHandoffs, at most 50 ms", Log: true}, plot.Axis{Label: over, Log: true}
	one := func(name, family string, figure measure.Figure, hue int) curve {
		return curve{name: name, family: family, figure: figure, hue: hue}
	}
	wait := func(family string) (curves []curve) {
		for i, figure := range []measure.Figure{crew.WorstP99, measure.MaxUS, crew.LongestPause} {
			c := one([]string{"wait, p99", "wait, longest", "longest time without the lock"}[i], family, figure, []int{1, 2, 4}[i])
			c.per = 1e3
			curves = append(curves, c)
		}
		return curves
	}
	share := func(family string) curve { return one("worse served process", family, crew.LeastShare, 1) }
	both := func(family string) curve { return one("both processes", family, measure.OpsPerS, 6) }
	percent, inMS := plot.Axis{Label: "%"}, plot.Axis{Label: "ms", Log: true}
	return []Chart{
		lines("budget-handoffs.svg", "The hand-off budget: throughput", sub+"both together", hands, plot.Axis{Label: rate, Log: true}, 0, false, both("budget-handoffs")),
		lines("budget-time.svg", "The hand-off budget: throughput", sub+"both together", ms, plot.Axis{Label: rate}, 0, false, both("budget-time")),
		lines("budget-work.svg", "The hand-off budget: throughput of locks that are held for 1 ms", sub+"both together", ms, plot.Axis{Label: rate}, 0, false,
			one("Redis on loopback", "budget-work", measure.OpsPerS, 6), one("Redis 1 ms away", "budget-far", measure.OpsPerS, 4)),
		lines("budget-wait-handoffs.svg", "The hand-off budget: waiting", sub+"the worse served process", hands, inMS, 0, false, wait("budget-handoffs")...),
		lines("budget-wait-time.svg", "The hand-off budget: waiting", sub+"the worse served process", ms, inMS, 0, false, wait("budget-time")...),
		lines("budget-share-handoffs.svg", "The hand-off budget: shares", sub+"the least part of any 2 s; 50 % is even", hands, percent, 0, false, share("budget-handoffs")),
		lines("budget-share-time.svg", "The hand-off budget: shares", sub+"the least part of any 2 s; 50 % is even", ms, percent, 0, false, share("budget-time")),
	}
}
