package anteroomgocron

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	anteroom "github.com/anteroom/anteroom/sync"
)

// Scheduler is a gocron.Scheduler whose jobs have locks of their own. It is safe for concurrent use.
type Scheduler struct {
	gocron.Scheduler
	m    *anteroom.Manager
	cfg  anteroom.LockConfig
	runs sync.Map // the context of each running job → its *anteroom.Hold
}

const maxHold = 24 * time.Hour // the most that MinHold can be

// NewScheduler is gocron.NewScheduler. cfg is that of the locks: cfg.Key, "gocron:" by default, goes before the name of a
// job. With cfg.MinHold a run keeps its key taken for so long, not until shortly before the next tick. Otherwise a
// MaxHold of less than 24 hours and a fixed lease are ErrConfig. WithDistributedElector replaces the locks.
func NewScheduler(m *anteroom.Manager, cfg anteroom.LockConfig, options ...gocron.SchedulerOption) (*Scheduler, error) {
	cfg.Key, cfg.Name = cmp.Or(cfg.Key, "gocron:"), cmp.Or(cfg.Name, "gocron")
	longest := cfg
	longest.MinHold = cmp.Or(cfg.MinHold, maxHold)
	if _, err := m.NewMutex(longest); err != nil {
		return nil, err
	}
	s, err := gocron.NewScheduler(options...)
	if err != nil {
		return nil, err
	}
	return &Scheduler{Scheduler: s, m: m, cfg: cfg}, nil
}

// NewJob is that of gocron. Its name is that of its lock: ErrConfig if another job has it, or if it is that of an
// anonymous function, which may be another in the next version of the program. WithDisabledDistributedJobLocker makes a
// job of this process alone. RunNow waits for no tick; in the tenth before one it counts as that.
func (s *Scheduler) NewJob(d gocron.JobDefinition, t gocron.Task, options ...gocron.JobOption) (gocron.Job, error) {
	return s.add(options, func(o []gocron.JobOption) (gocron.Job, error) { return s.Scheduler.NewJob(d, t, o...) })
}

// Update is that of gocron; see NewJob. If it fails, the job may be gone.
func (s *Scheduler) Update(id uuid.UUID, d gocron.JobDefinition, t gocron.Task, options ...gocron.JobOption) (gocron.Job, error) {
	return s.add(options, func(o []gocron.JobOption) (gocron.Job, error) { return s.Scheduler.Update(id, d, t, o...) })
}

var anonymous = regexp.MustCompile(`\.func\d+(\.\d+)*$`)

func (s *Scheduler) add(options []gocron.JobOption, create func([]gocron.JobOption) (gocron.Job, error)) (gocron.Job, error) {
	l := &locker{s: s, checked: make(chan struct{})}
	job, err := create(append([]gocron.JobOption{gocron.WithDistributedJobLocker(l)}, options...))
	if err != nil || job == nil { // nil: after Shutdown
		return job, err
	}
	taken := slices.ContainsFunc(s.Jobs(), func(o gocron.Job) bool { return o.Name() == job.Name() && o.ID() != job.ID() })
	if taken || anonymous.MatchString(job.Name()) {
		err := fmt.Errorf("%w: %s is the name of two jobs, or of an anonymous function: use gocron.WithName", anteroom.ErrConfig, job.Name())
		return nil, errors.Join(err, s.RemoveJob(job.ID()))
	}
	l.job = job
	close(l.checked)
	return job, nil
}

// NewTask is gocron.NewTask for a function whose context ends, with ErrLost, when the lock of the run is lost, and carries
// its Hold (anteroom.HoldFrom). gocron's own tasks are not notified, since it knows only Lock and Unlock. If the lock was lost
// and fn returned nil, AfterJobRunsWithError gets ErrLost.
func (s *Scheduler) NewTask(fn func(ctx context.Context) error) gocron.Task {
	return gocron.NewTask(func(ctx context.Context) error {
		run, locked := s.runs.Load(ctx)
		if !locked {
			return fn(ctx)
		}
		hold := run.(*anteroom.Hold)
		inner, cancel := context.WithCancelCause(hold.Context())
		defer cancel(nil)
		defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
		return cmp.Or(fn(inner), hold.Err())
	})
}

// locker is the gocron.Locker of one job. Lock returns an error, which AfterLockError gets and gocron does not log, and the
// tick is left out: ErrNotAcquired if another has the lock or has just run the tick, ErrUnavailable without Redis.
type locker struct {
	s       *Scheduler
	checked chan struct{} // closed when job is set
	job     gocron.Job
}

func (l *locker) Lock(ctx context.Context, name string) (gocron.Lock, error) {
	select {
	case <-l.checked:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if _, busy := l.s.runs.Load(ctx); busy {
		return nil, fmt.Errorf("%w: this process still runs %s", anteroom.ErrNotAcquired, name)
	}
	cfg := l.s.cfg
	cfg.Key, cfg.MinHold = cfg.Key+name, cmp.Or(cfg.MinHold, keep(l.job, time.Now()))
	mu, err := l.s.m.NewMutex(cfg)
	if err != nil {
		return nil, err
	}
	hold, err := mu.TryAcquire(ctx)
	if err != nil {
		return nil, err
	}
	l.s.runs.Store(ctx, hold)
	return l, nil
}

// Unlock ends the run that Lock began with ctx.
func (l *locker) Unlock(ctx context.Context) error {
	hold, _ := l.s.runs.LoadAndDelete(ctx)
	return hold.(*anteroom.Hold).Release(ctx)
}

// keep returns for how long a run that begins now keeps the key taken: until a tenth of the time between two ticks before
// the next, which a clock that is ahead may need. What no tick follows keeps it for a minute.
func keep(job gocron.Job, now time.Time) time.Duration {
	if random, is := job.Schedule().(gocron.DurationRandomJobSchedule); is { // NextRuns would draw other times, and is no read
		return min(random.Min*9/10, maxHold)
	}
	runs, _ := job.NextRuns(3)
	if len(runs) > 1 && !runs[1].IsZero() {
		ahead := runs[1].Sub(runs[0]) / 10
		for _, run := range runs {
			if d := run.Sub(now) - ahead; d > 0 {
				return min(max(d, time.Millisecond), maxHold)
			}
		}
	}
	return time.Minute
}
