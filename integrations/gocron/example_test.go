package anteroomgocron_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"

	anteroomgocron "github.com/anteroom/anteroom/integrations/gocron"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

func ExampleNewScheduler() {
	lt := locktest.Start(anteroom.Config{})
	defer lt.Stop()

	s, err := anteroomgocron.NewScheduler(lt.Manager, anteroom.LockConfig{}, gocron.WithLocation(time.UTC))
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan struct{})
	task := s.NewTask(func(ctx context.Context) error {
		hold, _ := anteroom.HoldFrom(ctx) // ctx ends if the lock is lost
		fmt.Println("running under", hold.Key())
		close(done)
		return nil
	})
	if _, err := s.NewJob(gocron.CronJob("0 3 * * *", false), task, gocron.WithName("nightly"),
		gocron.WithStartAt(gocron.WithStartImmediately())); err != nil {
		fmt.Println(err)
	}
	s.Start()
	<-done
	fmt.Println(s.Shutdown())
	// Output:
	// running under gocron:nightly
	// <nil>
}
