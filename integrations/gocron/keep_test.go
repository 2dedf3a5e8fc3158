package anteroomgocron

import (
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
)

// ticks is a job that has the times of its ticks only.
type ticks struct {
	gocron.Job
	runs     []time.Time
	schedule gocron.JobSchedule
}

func (j ticks) NextRuns(n int) ([]time.Time, error) { return j.runs[:min(n, len(j.runs))], nil }
func (j ticks) Schedule() gocron.JobSchedule        { return j.schedule }

func TestKeep(t *testing.T) {
	noon := time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC)
	at := func(after ...time.Duration) (runs []time.Time) {
		for _, d := range after {
			runs = append(runs, noon.Add(d))
		}
		return runs
	}
	const m = time.Minute
	for name, c := range map[string]struct {
		job  ticks
		now  time.Duration
		want time.Duration
	}{
		"on time":                     {ticks{runs: at(0, 10*m, 20*m)}, 0, 9 * m},
		"late":                        {ticks{runs: at(0, 10*m, 20*m)}, 4 * m, 5 * m},
		"a clock set back":            {ticks{runs: at(0, 10*m, 20*m)}, -time.Second, 9*m + time.Second},
		"later than the next":         {ticks{runs: at(0, 10*m, 20*m)}, 12 * m, 7 * m},
		"RunNow":                      {ticks{runs: at(0, 10*m, 20*m)}, -5 * m, 4 * m},
		"irregular, before the short": {ticks{runs: at(0, 5*m, 60*m)}, 0, 5*m - 30*time.Second},
		"irregular, before the long":  {ticks{runs: at(5*m, 60*m, 65*m)}, 5 * m, 55*m - 330*time.Second},
		"the last":                    {ticks{runs: append(at(0), time.Time{}, time.Time{})}, 0, m},
		"the only":                    {ticks{runs: at(0)}, 0, m},
		"once a week":                 {ticks{runs: at(0, 7*24*time.Hour, 14*24*time.Hour)}, 0, 24 * time.Hour},
		"random":                      {ticks{schedule: gocron.DurationRandomJobSchedule{Min: 10 * m, Max: 30 * m}}, 0, 9 * m},
	} {
		if got := keep(c.job, noon.Add(c.now)); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A day of summer time that ends has 25 hours, one on which it begins 23: the tick of the next day must be free in both.
func TestKeep_SummerTime(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err) // no time zones here
	}
	for _, day := range []time.Time{time.Date(2026, 3, 28, 12, 0, 0, 0, berlin), time.Date(2026, 10, 24, 12, 0, 0, 0, berlin)} {
		tick, next := day, time.Date(day.Year(), day.Month(), day.Day()+1, 12, 0, 0, 0, berlin)
		kept := keep(ticks{runs: []time.Time{tick, next, next.Add(24 * time.Hour)}}, tick)
		if gap := next.Sub(tick); kept != gap*9/10 {
			t.Errorf("%v: it is kept for %v of %v", day, kept, gap)
		}
	}
}
