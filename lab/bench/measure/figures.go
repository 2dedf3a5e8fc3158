package measure

// Figure names one measured quantity, as in results.json.
type Figure string

const (
	OpsPerS         Figure = "ops_per_s" // acquisitions
	P50US           Figure = "p50_us"    // of the wait: from the call of Lock to its return
	P99US           Figure = "p99_us"
	MaxUS           Figure = "max_us"
	MinPerGoroutine Figure = "min_per_goroutine" // acquisitions of the least served
	MaxPerGoroutine Figure = "max_per_goroutine"
	MinPerProcess   Figure = "min_per_process"
	MaxPerProcess   Figure = "max_per_process"

	CommandsPerOp   Figure = "redis_commands_per_op"          // sent by clients
	ExecutedPerOp   Figure = "redis_commands_executed_per_op" // including those called by scripts
	AllocsPerOp     Figure = "allocs_per_op"                  // objects
	AllocBytesPerOp Figure = "alloc_bytes_per_op"
	// BytesPerOp are the bytes between clients and Redis, both ways, per acquisition.
	BytesPerOp       Figure = "bytes_per_op"
	ClientCPUUSPerOp Figure = "client_cpu_us_per_op" // also: CPU seconds per million
	RedisCPUUSPerOp  Figure = "redis_cpu_us_per_op"
	Connections      Figure = "connections"

	Violations Figure = "violations" // of exclusion, of all rounds and their warm-ups
	Failures   Figure = "failures"   // Lock or Unlock returned an error before the end
	Stuck      Figure = "stuck"      // goroutines that did not come back after the end
)

// order is the order in results.json. Others follow by name.
var order = []Figure{
	OpsPerS, P50US, P99US, MaxUS, MinPerGoroutine, MaxPerGoroutine, MinPerProcess, MaxPerProcess,
	CommandsPerOp, ExecutedPerOp, AllocsPerOp, AllocBytesPerOp, BytesPerOp,
	ClientCPUUSPerOp, RedisCPUUSPerOp, Connections, Violations, Failures, Stuck,
}

// Figures are the results of one round. What was not measured is absent (I3).
type Figures map[Figure]float64

// Add adds the figures of others.
func (f Figures) Add(others ...Figures) Figures {
	for _, o := range others {
		for name, v := range o {
			f[name] = v
		}
	}
	return f
}
