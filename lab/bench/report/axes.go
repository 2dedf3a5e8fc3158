package report

import (
	"github.com/anteroom/anteroom/lab/bench/crew"
	"github.com/anteroom/anteroom/lab/bench/growth"
	"github.com/anteroom/anteroom/lab/bench/measure"
	"github.com/anteroom/anteroom/lab/bench/scenario"
)

// axes are the families of scenarios that grow, by name prefix.
var axes = map[string]axis{
	"held": {"held locks", byKeys, []measure.Figure{
		growth.HeapPerItem, growth.MoreRoutines, growth.CPU, growth.RedisCPU, growth.RedisBytes, growth.Renewals, growth.Late,
		growth.Failed, growth.LeastLeft, growth.TakenPerS,
	}},
	"parked": {"parked goroutines", byGoroutines, []measure.Figure{
		growth.HeapPerItem, growth.BareHeap, growth.StackPerItem, growth.CPU, growth.OtherCommands, growth.HandoffsPerS,
	}},
	"keys": {"keys used", byKeys, []measure.Figure{
		measure.OpsPerS, measure.ClientCPUUSPerOp, growth.HeapGrowth, growth.MoreRoutines, growth.KeysLeft,
	}},
	"processes": {"processes", byProcesses, []measure.Figure{
		measure.OpsPerS, measure.RedisCPUUSPerOp, measure.Connections, scenario.MostToLeastProcess, measure.P99US, measure.MaxUS,
		crew.LongestPause,
	}},
	"budget-handoffs": {"MaxHandoffs", by(scenario.BudgetHandoffs), budgetFigures},
	"budget-work":     {"MaxHandoffTime, ms", by(scenario.BudgetTimeMS), budgetFigures},
	"budget-far":      {"MaxHandoffTime, ms", by(scenario.BudgetTimeMS), budgetFigures},
}

var budgetFigures = []measure.Figure{
	measure.OpsPerS, crew.LeastShare, crew.Turns, crew.WorstP99, measure.MaxUS, crew.LongestPause, crew.GoroutineRatio, measure.RedisCPUUSPerOp,
}
