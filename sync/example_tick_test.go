package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

// Every machine starts a job at each tick. One of them runs it, also while the run of the tick before lasts.
func ExampleMutex_TryDo_tick() {
	lt := locktest.Start(anteroom.Config{})
	defer lt.Stop()
	m := lt.Manager

	run := func(ctx context.Context, tick time.Time, report func(context.Context) error) (ran bool, err error) {
		mu, err := m.NewMutex(anteroom.LockConfig{
			Key: "cron:report:" + tick.UTC().Format(time.RFC3339), Name: "cron",
			MinHold: time.Hour, // how late a machine may start
		})
		if err != nil {
			return false, err
		}
		return mu.TryDo(ctx, report)
	}

	ctx, tick := context.Background(), time.Now().Truncate(5*time.Minute)
	nothing := func(context.Context) error { return nil }
	fmt.Println(run(ctx, tick, nothing))
	fmt.Println(run(ctx, tick, nothing))
	fmt.Println(run(ctx, tick.Add(5*time.Minute), nothing))
	// Output:
	// true <nil>
	// false <nil>
	// true <nil>
}

// Two transfers between the same accounts do not deadlock: the locks are acquired in the order of their keys.
func ExampleManager_AcquireAll() {
	lt := locktest.Start(anteroom.Config{})
	defer lt.Stop()
	m := lt.Manager

	transfer := func(ctx context.Context, from, to string) (err error) {
		set, err := m.AcquireAll(ctx, "account:"+from, "account:"+to)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, set.Release(ctx)) }()
		fmt.Println(from, "to", to)
		return context.Cause(set.Context())
	}

	fmt.Println(transfer(context.Background(), "7", "3"))
	// Output:
	// 7 to 3
	// <nil>
}
