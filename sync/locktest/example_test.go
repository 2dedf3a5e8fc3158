package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

func Example() {
	lt := locktest.Start(anteroom.Config{}) // in a test: locktest.NewManager(t, anteroom.Config{})
	defer lt.Stop()
	shop := &shop{locks: lt.Manager, stock: 1}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()

	leave := lt.TakeBy("stock")
	err := shop.sell(ctx, func() {})
	fmt.Println("someone else has the lock:", errors.Is(err, anteroom.ErrNotAcquired))
	leave()

	err = shop.sell(context.Background(), func() { lt.Lose("stock") })
	fmt.Println("the lock is lost while selling:", errors.Is(err, anteroom.ErrLost))

	lt.Down()
	_, err = lt.Mutex("stock").TryAcquire(context.Background())
	fmt.Println("the server is unreachable:", errors.Is(err, anteroom.ErrUnavailable))
	lt.Up()

	err = shop.sell(context.Background(), func() {})
	fmt.Println("sold:", err == nil, "left:", shop.stock)
	// Output:
	// someone else has the lock: true
	// the lock is lost while selling: true
	// the server is unreachable: true
	// sold: true left: 0
}
