package anteroomgocron

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

func scheduler(t *testing.T, m *anteroom.Manager) *Scheduler {
	t.Helper()
	s, err := NewScheduler(m, anteroom.LockConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shutdown(t, s) })
	return s
}

func shutdown(t *testing.T, s gocron.Scheduler) {
	t.Helper()
	if err := s.Shutdown(); err != nil {
		t.Error(err)
	}
}

// Two processes, the second with a clock that is behind. Without MinHold it runs again what the first has run.
func TestScheduler_RunsATickOnce(t *testing.T) {
	addr := testredis.Start(t).Addr()
	const interval = 400 * time.Millisecond
	// run runs the job until what has run is enough.
	run := func(enough func(runs []ran) bool, with func(m *anteroom.Manager) (gocron.Scheduler, error)) (runs []ran) {
		came, first := make(chan ran, 1000), time.Now().Add(interval/2)
		for i := range 2 {
			s, err := with(manager(t, addr))
			if err != nil {
				t.Fatal(err)
			}
			defer shutdown(t, s)
			c := clock{first, interval, time.Duration(i) * interval / 8}
			if err := start(s, c, gocron.NewTask(func() { came <- c.ran(i, time.Now()) })); err != nil {
				t.Fatal(err)
			}
		}
		for !enough(runs) {
			runs = append(runs, receive(t, came))
		}
		return runs
	}
	runs := run(func(runs []ran) bool { return len(runs) >= 4 }, func(m *anteroom.Manager) (gocron.Scheduler, error) {
		return NewScheduler(m, anteroom.LockConfig{})
	})
	if twice := doubles(runs); len(twice) > 0 {
		t.Errorf("ticks %v ran twice: %+v", twice, runs)
	}
	run(func(runs []ran) bool { return len(doubles(runs)) > 0 }, func(m *anteroom.Manager) (gocron.Scheduler, error) {
		return gocron.NewScheduler(gocron.WithDistributedLocker(noMinHold{m}))
	})
}

func TestNewScheduler_RefusesWhatMinHoldCannotBeWith(t *testing.T) {
	m := manager(t, testredis.Start(t).Addr())
	for _, cfg := range []anteroom.LockConfig{{MaxHold: time.Hour}, {LeaseTime: time.Minute, RenewalTime: -1}} {
		if _, err := NewScheduler(m, cfg); !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("%+v: %v, want ErrConfig", cfg, err)
		}
		cfg.MinHold = time.Second
		s, err := NewScheduler(m, cfg)
		if err != nil {
			t.Fatalf("with MinHold: %v", err)
		}
		shutdown(t, s)
	}
}

func TestNewJob_RefusesNamesThatAreNone(t *testing.T) {
	s := scheduler(t, manager(t, testredis.Start(t).Addr()))
	hourly, task := gocron.DurationJob(time.Hour), gocron.NewTask(func() {})
	if _, err := s.NewJob(hourly, task); !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "WithName") {
		t.Errorf("an anonymous function: %v", err)
	}
	a, err := s.NewJob(hourly, task, gocron.WithName("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.NewJob(hourly, task, gocron.WithName("a")); !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "two jobs") {
		t.Errorf("the same name: %v", err)
	}
	if _, err := s.Update(a.ID(), hourly, task, gocron.WithName("a")); err != nil {
		t.Errorf("Update of the job itself: %v", err)
	}
	if _, err := s.NewJob(hourly, nil, gocron.WithName("b")); err == nil {
		t.Error("a job without a task was accepted")
	}
	if jobs := s.Jobs(); len(jobs) != 1 {
		t.Errorf("%d jobs are left, want 1", len(jobs))
	}
}

// An updated job has a lock, too.
func TestUpdate_KeepsTheLock(t *testing.T) {
	m := manager(t, testredis.Start(t).Addr())
	s, ran := scheduler(t, m), make(chan *anteroom.Hold, 10)
	job, err := s.NewJob(gocron.DurationJob(time.Hour), gocron.NewTask(func() {}), gocron.WithName("job"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(job.ID(), gocron.DurationJob(time.Hour), s.NewTask(func(ctx context.Context) error {
		hold, _ := anteroom.HoldFrom(ctx)
		ran <- hold
		return nil
	}), gocron.WithName("job"), gocron.WithStartAt(gocron.WithStartImmediately())); err != nil {
		t.Fatal(err)
	}
	s.Start()
	if hold := receive(t, ran); hold == nil || hold.Key() != "gocron:job" {
		t.Errorf("it ran under the lock %v", hold)
	}
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(pace.Hang):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// Ticks during a run that lasts longer than the interval are left out, here and elsewhere, with ErrNotAcquired. When the lock
// is lost, the context of the run ends.
func TestScheduler_ALongRunThatLosesItsLock(t *testing.T) {
	addr := testredis.Start(t).Addr()
	m := manager(t, addr)
	began, left, failed := make(chan struct{}, 100), make(chan error, 100), make(chan error, 100)
	for range 2 {
		s := scheduler(t, manager(t, addr))
		if _, err := s.NewJob(gocron.DurationJob(50*time.Millisecond), s.NewTask(func(ctx context.Context) error {
			began <- struct{}{}
			<-ctx.Done()
			return nil
		}), gocron.WithName("long"), gocron.WithEventListeners(
			gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { left <- err }),
			gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { failed <- err }),
		)); err != nil {
			t.Fatal(err)
		}
		s.Start()
	}
	receive(t, began)
	for range 6 {
		if err := receive(t, left); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("a tick is left out because of %v", err)
		}
	}
	select {
	case <-began:
		t.Error("it ran twice at a time")
	default:
	}
	if _, err := m.ForceRelease(t.Context(), "gocron:long"); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, failed); !errors.Is(err, anteroom.ErrLost) {
		t.Errorf("AfterJobRunsWithError got %v, want ErrLost", err)
	}
}

// A job that has no lock runs as with gocron alone.
func TestTask_WithoutALock(t *testing.T) {
	s, ran := scheduler(t, manager(t, testredis.Start(t).Addr())), make(chan bool, 10)
	if _, err := s.NewJob(gocron.DurationJob(time.Hour), s.NewTask(func(ctx context.Context) error {
		_, locked := anteroom.HoldFrom(ctx)
		ran <- locked
		return nil
	}), gocron.WithName("here"), gocron.WithDisabledDistributedJobLocker(true), gocron.WithStartAt(gocron.WithStartImmediately())); err != nil {
		t.Fatal(err)
	}
	s.Start()
	if receive(t, ran) {
		t.Error("it has a lock")
	}
}
