package scenario

import (
	"time"

	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// manyKeys is many goroutines that hardly ever want the same key: what matters is how well their commands share round
// trips.
func manyKeys() []Scenario {
	return []Scenario{{
		Name: "many-keys", Title: "64 goroutines, 64,000 keys, each acquisition another one",
		Libraries: []string{
			library.Anteroom, library.AnteroomFair, library.AnteroomFull,
			library.Redsync, library.Redislock, library.Rueidislock, library.Evalsha, library.Mutex, library.Semaphore,
		},
		Kind: library.Alone,
		Load: measure.Load{Goroutines: 64, Keys: 64_000},
		Warm: 150 * time.Millisecond, For: 400 * time.Millisecond, Quick: true,
		Targets: []Target{
			{Of: library.Anteroom, Figure: measure.OpsPerS, Over: []string{library.Rueidislock}, AtLeast: 1},
		},
	}}
}
