package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

// The Examples run on locktest's embedded server, so that they need no Redis. In a
// program the Manager comes from
//
//	m, err := anteroom.Open(ctx, "redis://localhost:6379", anteroom.Config{})
//
// and is closed with Close.

func Example() {
	m := locktest.Start(anteroom.Config{})
	defer m.Stop()
	ctx := context.Background()

	hold, err := m.Mutex("order:42").Acquire(ctx)
	if err != nil {
		fmt.Println("not acquired:", err)
		return
	}
	fmt.Println("holding", hold.Key(), hold.Held())
	if err := hold.Release(ctx); err != nil {
		fmt.Println("not held to the end:", err)
	}
	fmt.Println("holding", hold.Key(), hold.Held())
	// Output:
	// holding order:42 true
	// holding order:42 false
}

func ExampleMutex_Lock() {
	lt := locktest.Start(anteroom.Config{})
	defer lt.Stop()
	m := lt.Manager

	stock := 100
	var mu sync.Locker = m.Mutex("stock") // was: var mu sync.Mutex

	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			stock--
		})
	}
	wg.Wait()
	fmt.Println("left:", stock)
	// Output: left: 70
}

func ExampleMutex_Do() {
	m := locktest.Start(anteroom.Config{})
	defer m.Stop()
	ctx := context.Background()

	mu := m.Mutex("report")
	err := mu.Do(ctx, func(ctx context.Context) error {
		fmt.Println("alone with the report")
		// ctx carries the lock, so this enters again instead of waiting for itself.
		return mu.Do(ctx, func(context.Context) error {
			fmt.Println("still alone")
			return nil
		})
	})
	fmt.Println("error:", err)
	// Output:
	// alone with the report
	// still alone
	// error: <nil>
}

func ExampleMutex_Do_lost() {
	m := locktest.Start(anteroom.Config{})
	defer m.Stop()

	err := m.Mutex("report").Do(context.Background(), func(ctx context.Context) error {
		m.Lose("report") // somebody deletes the lock
		<-ctx.Done()     // which ends the work's context
		return nil       // and is an error, whatever the work says
	})
	fmt.Println("lost:", errors.Is(err, anteroom.ErrLost))
	// Output: lost: true
}

func ExampleMutex_TryAcquire() {
	m := locktest.Start(anteroom.Config{})
	defer m.Stop()
	ctx := context.Background()
	mu := m.Mutex("order:42")

	leave := m.TakeBy("order:42") // someone else has it
	_, err := mu.TryAcquire(ctx)
	fmt.Println("held by another:", errors.Is(err, anteroom.ErrNotAcquired))

	leave()
	hold, err := mu.TryAcquire(ctx)
	fmt.Println("mine:", err == nil && hold.Held())
	fmt.Println("released:", hold.Release(ctx) == nil)
	// Output:
	// held by another: true
	// mine: true
	// released: true
}
