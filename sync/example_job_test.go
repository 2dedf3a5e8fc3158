package anteroom_test

import (
	"context"
	"errors"
	"fmt"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

// reindex rebuilds one shard after the other, and stops when the lock is lost or ctx
// ends. next is where the following run begins: a shard whose lock did not last is
// not counted, since somebody else may have been at it too.
func reindex(ctx context.Context, m *anteroom.Manager, next *int, rebuild func(ctx context.Context, shard int) error) error {
	return m.Mutex("reindex").Do(ctx, func(ctx context.Context) error {
		for *next < 5 {
			if err := rebuild(ctx, *next); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return context.Cause(ctx) // ErrLost, or why the caller's context ended
			}
			*next++
		}
		return nil
	})
}

func Example_longJob() {
	m := locktest.Start(anteroom.Config{})
	defer m.Stop()
	ctx := context.Background()

	next := 0
	err := reindex(ctx, m.Manager, &next, func(_ context.Context, shard int) error {
		fmt.Println("shard", shard)
		if shard == 2 {
			m.Lose("reindex")
		}
		return nil
	})
	fmt.Println("lost:", errors.Is(err, anteroom.ErrLost))

	err = reindex(ctx, m.Manager, &next, func(_ context.Context, shard int) error {
		fmt.Println("shard", shard)
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// shard 0
	// shard 1
	// shard 2
	// lost: true
	// shard 2
	// shard 3
	// shard 4
	// error: <nil>
}
