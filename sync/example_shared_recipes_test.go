package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

// catalog is a file that all processes read, and that one of them builds anew when it is too old.
type catalog struct {
	lock  *anteroom.RWMutex // m.RWMutex("catalog")
	fresh func() bool
	use   func(ctx context.Context) error
	build func(ctx context.Context) error
}

// read uses the catalog, which is not replaced meanwhile.
func (c *catalog) read(ctx context.Context) error {
	for {
		used := false
		err := c.lock.RDo(ctx, func(ctx context.Context) error {
			if used = c.fresh(); !used {
				return nil
			}
			return c.use(ctx)
		})
		if used || err != nil {
			return err
		}
		// It is too old. A reader cannot become a writer, so look again: another one may have been quicker.
		err = c.lock.Do(ctx, func(ctx context.Context) error {
			if c.fresh() {
				return nil
			}
			return c.build(ctx)
		})
		if err != nil {
			return err
		}
	}
}

// Many processes read a catalog; the first one that finds it too old builds it.
func ExampleRWMutex_cache() {
	lt := locktest.Start(anteroom.Config{})
	defer lt.Stop()
	var mu sync.Mutex
	built, uses := 0, 0
	c := &catalog{
		lock:  lt.RWMutex("catalog"),
		fresh: func() bool { mu.Lock(); defer mu.Unlock(); return built > 0 },
		use:   func(context.Context) error { mu.Lock(); defer mu.Unlock(); uses++; return nil },
		build: func(context.Context) error { mu.Lock(); defer mu.Unlock(); built++; return nil },
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { _ = c.read(context.Background()) })
	}
	wg.Wait()
	fmt.Println("built:", built, "used:", uses)
	// Output: built: 1 used: 10
}

// All replicas of a service together have at most 20 calls to another one under way.
func ExampleSemaphore_Do() {
	lt := locktest.Start(anteroom.Config{})
	defer lt.Stop()
	ctx, m := context.Background(), lt.Manager
	charge := func(context.Context) error { fmt.Println("charged"); return nil }

	calls := m.Semaphore("calls:payments", 20)
	err := calls.Do(ctx, 1, charge, anteroom.Wait(2*time.Second))
	if errors.Is(err, anteroom.ErrNotAcquired) {
		fmt.Println("too many calls are under way: 429")
	}
	// Output: charged
}
