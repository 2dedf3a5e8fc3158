package anteroomgocron

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// plan is what a process of TestProcesses does.
type plan struct {
	Addr    string
	With    string // "scheduler", "elector" or "no MinHold"
	Process int
	Lease   time.Duration
	clock
}

// schedule is the program of such a process. It reports each run. After a message its next run does not end.
func schedule(ctx context.Context, l *child.Link, raw json.RawMessage) error {
	var p plan
	if err := json.Unmarshal(raw, &p); err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr, ContextTimeoutEnabled: true})
	defer rdb.Close()
	m, err := anteroom.NewManager(rdb, anteroom.Config{Defaults: anteroom.LockConfig{LeaseTime: p.Lease}})
	if err != nil {
		return err
	}
	defer m.CloseWithin(5 * time.Second)
	var s gocron.Scheduler
	switch p.With {
	case "scheduler":
		s, err = NewScheduler(m, anteroom.LockConfig{})
	case "no MinHold":
		s, err = gocron.NewScheduler(gocron.WithDistributedLocker(noMinHold{m}))
	case "elector":
		var e *Elector
		if e, err = NewElector(m, anteroom.LockConfig{}, ""); err == nil {
			defer e.Close()
			s, err = gocron.NewScheduler(gocron.WithDistributedElector(e))
		}
	}
	if err != nil {
		return err
	}
	hang := make(chan struct{})
	go func() {
		if l.Receive(new(string)) == nil {
			close(hang)
		}
	}()
	if err := start(s, p.clock, gocron.NewTask(func(ctx context.Context) {
		_ = l.Send(p.ran(p.Process, time.Now()))
		select {
		case <-hang:
			<-ctx.Done()
		default:
		}
	})); err != nil {
		return err
	}
	<-ctx.Done()
	return s.Shutdown()
}

// processes runs three, whose clocks differ, until what has run is enough. If kill is set, a process is killed in a run,
// and what has run after that counts. It returns the runs.
func processes(t *testing.T, with string, kill bool, enough func(runs []ran) bool) (runs []ran) {
	const interval = time.Second
	p := plan{
		Addr: testredis.Start(t).Addr(), With: with, Lease: pace.Scale(2 * time.Second),
		clock: clock{First: time.Now().Add(2 * interval), Interval: interval},
	}
	var all []*child.Process
	came := make(chan ran, 1000)
	for i := range 3 {
		p.Process, p.Ahead = i, time.Duration(i)*interval/20
		c, err := child.Start(t.Context(), "schedule", p, 2*pace.Hang)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
		go func() {
			for {
				var r ran
				if c.Receive(&r, 2*pace.Hang) != nil {
					return
				}
				came <- r
			}
		}()
	}
	victim, killed, before := -1, false, 0
	for killed != kill || !enough(runs[before:]) {
		r := receive(t, came)
		switch runs = append(runs, r); {
		case kill && victim < 0 && len(runs) > 3:
			victim = r.Process
			if err := all[victim].Send("hang"); err != nil {
				t.Fatal(err)
			}
		case r.Process != victim:
		case killed:
			t.Errorf("the killed process ran %+v", r)
		default: // it is in a run that does not end
			all[victim].Kill()
			killed, before = true, len(runs)
		}
	}
	for i, c := range all {
		if err := c.Stop(pace.Hang); err != nil && i != victim {
			t.Errorf("process %d: %v", i, err)
		}
	}
	return runs
}

func TestProcesses_NoTickRunsTwice_Lab(t *testing.T) {
	for _, with := range []string{"scheduler", "elector"} {
		t.Run(with, func(t *testing.T) {
			t.Parallel()
			runs := processes(t, with, true, func(runs []ran) bool { return len(runs) >= 10 })
			if twice := doubles(runs); len(twice) > 0 {
				t.Errorf("ticks %v ran twice: %+v", twice, runs)
			}
		})
	}
}

// The test above shows something only if ticks run twice without MinHold.
func TestProcesses_WithoutMinHoldTicksRunTwice_Lab(t *testing.T) {
	processes(t, "no MinHold", false, func(runs []ran) bool { return len(doubles(runs)) > 0 })
}
