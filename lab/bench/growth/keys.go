package growth

import (
	"context"
	"time"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// KeysLeft is how many keys are in Redis at the end.
const KeysLeft measure.Figure = "redis_keys_left"

// keys uses N keys, each once.
func keys(ctx context.Context, l *child.Link, plan Plan) error {
	m, err := newManager(plan.Addr, false)
	if err != nil {
		return err
	}
	// Until go-redis has all the connections that it will ever need, which is negligible with few keys.
	for range min(5, 1+plan.N/1000) {
		if err := m.warm(plan.Prefix); err != nil {
			return err
		}
	}
	before := weigh()
	cpu, began := cpuTime(), time.Now()
	err = each(plan.N, func(i int) error {
		use(m.Mutex(key(plan.Prefix, "key", i)))
		return nil
	})
	if err != nil {
		return err
	}
	took, used := time.Since(began), cpuTime()-cpu
	after := weigh()
	left, err := m.rdb.DBSize(ctx).Result()
	if err != nil {
		return err
	}
	err = l.Send(report{Figures: measure.Figures{
		measure.OpsPerS:          float64(plan.N) / took.Seconds(),
		measure.ClientCPUUSPerOp: float64(used.Microseconds()) / float64(plan.N),
		HeapGrowth:               after.heap - before.heap,
		MoreRoutines:             float64(after.goroutines - before.goroutines),
		KeysLeft:                 float64(left),
	}})
	if err != nil {
		return err
	}
	return m.close()
}
