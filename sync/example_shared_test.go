package anteroom_test

import (
	"context"
	"fmt"
	"sync"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

// Many read a price list, in all processes, and nobody while one writes it.
func ExampleRWMutex() {
	lt := locktest.Start(anteroom.Config{})
	defer lt.Stop()
	ctx := context.Background()
	prices := lt.RWMutex("prices") // was: var prices sync.RWMutex

	prices.RLock()
	fmt.Println("another reader:", prices.TryRLock())
	fmt.Println("a writer:", prices.TryLock())
	prices.RUnlock()
	prices.RUnlock()

	err := prices.Do(ctx, func(ctx context.Context) error {
		hold, _ := anteroom.HoldFrom(ctx)
		return hold.Downgrade() // from here on others may read, too
	})
	fmt.Println("written:", err == nil)
	// Output:
	// another reader: true
	// a writer: false
	// written: true
}

// At most three goroutines of all processes call a service at a time.
func ExampleSemaphore() {
	lt := locktest.Start(anteroom.Config{})
	defer lt.Stop()
	ctx := context.Background()
	calls := lt.Semaphore("calls", 3)

	var mu sync.Mutex
	now, most := 0, 0
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		now += n
		most = max(most, now)
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			_ = calls.Do(ctx, 1, func(context.Context) error {
				count(1)
				defer count(-1)
				return nil
			})
		})
	}
	wg.Wait()
	fmt.Println("never more than 3:", most <= 3)
	// Output: never more than 3: true
}
