package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

// runNightly is called by every machine when its own clock says that it is time.
// It returns nil where another machine runs the job, or has just run it.
func runNightly(ctx context.Context, m *anteroom.Manager, job func(context.Context) error) error {
	mu, err := m.NewMutex(anteroom.LockConfig{
		Key:     "cron:nightly",
		Name:    "cron",
		MinHold: 10 * time.Minute, // more than the clocks differ, less than a day
	})
	if err != nil {
		return err
	}
	hold, err := mu.TryAcquire(ctx)
	if errors.Is(err, anteroom.ErrNotAcquired) {
		return nil
	}
	if err != nil {
		return err // Redis did not answer: nobody knows who runs it
	}
	err = job(hold.Context())
	return errors.Join(err, hold.Release(ctx))
}

func Example_cronJob() {
	first := locktest.Start(anteroom.Config{})
	defer first.Stop()
	second, third := first.Another(anteroom.Config{}), first.Another(anteroom.Config{})

	job := func(context.Context) error {
		fmt.Println("the job runs")
		return nil
	}
	// The job takes no time, and the second and third machine come when it is over.
	for _, machine := range []*locktest.Manager{first, second, third} {
		if err := runNightly(context.Background(), machine.Manager, job); err != nil {
			fmt.Println(err)
		}
	}
	// Output: the job runs
}
