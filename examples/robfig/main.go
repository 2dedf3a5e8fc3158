// Command robfig runs a job of robfig/cron that every machine has, on one of them only.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/robfig/cron/v3"

	anteroom "github.com/anteroom/anteroom/sync"
)

func main() {
	url := flag.String("redis", "redis://localhost:6379", "URL of Redis")
	spec := flag.String("spec", "*/10 * * * * *", "when, with seconds")
	late := flag.Duration("late", 0, "how much later the ticks come here, as they do where the clock is behind")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *url, *spec, *late); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url, spec string, late time.Duration) error {
	m, err := anteroom.Open(ctx, url, anteroom.Config{})
	if err != nil {
		return err
	}
	defer m.CloseWithin(5 * time.Second)
	schedule, err := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor).Parse(spec)
	if err != nil {
		return err
	}
	schedule = behind{schedule, late}
	c := cron.New()
	report := cron.FuncJob(func() { fmt.Println("reporting at", time.Now().Format(time.RFC3339Nano)) })
	c.Schedule(schedule, cron.NewChain(once(ctx, m, "report", schedule)).Then(report))
	c.Start()
	<-ctx.Done()
	<-c.Stop().Done() // the jobs that run
	return nil
}

// once runs each tick of the schedule on one machine. The key stays taken until shortly before the next tick, or a machine
// whose clock is behind would run a short job again. cron.Job has no context, so the job does not learn of a lost lock.
func once(ctx context.Context, m *anteroom.Manager, name string, schedule cron.Schedule) cron.JobWrapper {
	return func(job cron.Job) cron.Job {
		return cron.FuncJob(func() {
			now := time.Now()
			wait := schedule.Next(now).Sub(now) // each time, since a crontab may be irregular, and a day of 23 hours
			mu, err := m.NewMutex(anteroom.LockConfig{
				Key: "cron:" + name, Name: "cron", MinHold: min(max(wait*9/10, time.Millisecond), 24*time.Hour),
			})
			if err != nil {
				log.Print(err)
				return
			}
			ran, err := mu.TryDo(ctx, func(context.Context) error { job.Run(); return nil })
			if err != nil {
				log.Printf("ran: %v: %v", ran, err) // not: Redis did not answer; if it ran: the lock was lost
			}
		})
	}
}

// behind is the schedule of a machine whose clock is behind.
type behind struct {
	cron.Schedule
	by time.Duration
}

func (b behind) Next(t time.Time) time.Time { return b.Schedule.Next(t.Add(-b.by)).Add(b.by) }
