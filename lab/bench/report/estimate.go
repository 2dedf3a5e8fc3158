package report

import (
	"fmt"

	"github.com/anteroom/anteroom/lab/bench/growth"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
	"github.com/anteroom/anteroom/lab/bench/plot"
)

// spare is the share of a Redis' processor time that the estimate gives to locks: the rest is for peaks, for other
// work, and because waiting times grow without bound as the load approaches 1.
const spare = 0.5

// estimate computes what one Redis and a Cluster can carry, from the measured cost of one acquisition and of one held
// lock to Redis. Redis runs commands on one core.
func estimate(s set, _ []string) string {
	keys, a := s.get("many-keys", library.Anteroom)
	held, b := s.get("held-100000", library.Anteroom)
	crowd, c := s.get("second-process", library.AnteroomFair)
	if !a || !b || !c {
		return ""
	}
	perOp := keys.Figures[measure.RedisCPUUSPerOp]
	perHeld := held.Figures[growth.RedisCPU] / 100 / float64(held.Keys) // cores for each lock
	perShared := crowd.Figures[measure.RedisCPUUSPerOp]
	if perOp <= 0 || perHeld <= 0 || perShared <= 0 {
		return ""
	}
	bytes := held.Figures[growth.RedisBytes]
	text := fmt.Sprintf("From Redis' processor time as measured: %s µs for an acquisition and its release of a key that nobody else wants (`many-keys`), "+
		"%s µs for one of a key that two processes fight for (`second-process`: most are handed on without Redis), "+
		"%s µs a second for a held lock (`held-100000`, %s bytes of Redis' memory each). Of each core %.0f %% is given to locks.\n\n",
		plot.Number(perOp), plot.Number(perShared), plot.Number(perHeld*1e6), plot.Number(bytes), spare*100)
	t := newRows("masters", "uncontended acquisitions/s", "or held locks", "their memory in each Redis", "or contended acquisitions/s, over many keys")
	for _, n := range []int{1, 3, 6, 12} {
		cores := spare * float64(n)
		t.row(fmt.Sprint(n), plot.Number(cores*1e6/perOp), plot.Number(cores/perHeld),
			plot.Number(spare/perHeld*bytes/(1<<20))+" MiB", plot.Number(cores*1e6/perShared))
	}
	return text + t.String()
}
