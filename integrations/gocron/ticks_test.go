package anteroomgocron

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/go-co-op/gocron/v2"

	anteroom "github.com/anteroom/anteroom/sync"
)

// The processes of these tests have ticks at the same times by their own clocks, which differ.

// clock is when the ticks of a process are.
type clock struct {
	First    time.Time // of the first tick
	Interval time.Duration
	Ahead    time.Duration // so much later the process has them
}

// ran is one run of the job.
type ran struct {
	Process int
	Tick    int
	Late    bool // by more than half an interval: on a loaded machine a later tick may be meant
}

func (c clock) ran(process int, now time.Time) ran {
	ticks := float64(now.Sub(c.First.Add(c.Ahead))) / float64(c.Interval)
	return ran{process, int(math.Floor(ticks)), ticks-math.Floor(ticks) > 0.5}
}

// doubles returns the ticks that ran twice, but for those where a run was late.
func doubles(runs []ran) (twice []int) {
	seen := map[int]int{}
	for _, r := range runs {
		if !r.Late {
			seen[r.Tick]++
		}
	}
	for tick, n := range seen {
		if n > 1 {
			twice = append(twice, tick)
		}
	}
	slices.Sort(twice)
	return twice
}

// start begins to run job at the ticks of c.
func start(s gocron.Scheduler, c clock, task gocron.Task) error {
	_, err := s.NewJob(gocron.DurationJob(c.Interval), task, gocron.WithName("job"),
		gocron.WithStartAt(gocron.WithStartDateTime(c.First.Add(c.Ahead))))
	s.Start()
	return err
}

// noMinHold is the gocron.Locker that the obvious adapter would be.
type noMinHold struct{ m *anteroom.Manager }

func (l noMinHold) Lock(ctx context.Context, name string) (gocron.Lock, error) {
	hold, err := l.m.Mutex(name).TryAcquire(ctx)
	if err != nil {
		return nil, err
	}
	return unlock{hold}, nil
}

type unlock struct{ hold *anteroom.Hold }

func (u unlock) Unlock(ctx context.Context) error { return u.hold.Release(ctx) }
