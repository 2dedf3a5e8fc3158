package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

// A program that used redsync like this
//
//	mu := rs.NewMutex("invoice:7", redsync.WithExpiry(10*time.Second), redsync.WithTries(20))
//	if err := mu.LockContext(ctx); err != nil {
//		return err
//	}
//	defer mu.UnlockContext(ctx)
//	… and mu.ExtendContext(ctx) from time to time
//
// becomes this one. There is nothing to extend; the number of tries is a time.
func Example_fromRedsync() {
	lt := locktest.Start(anteroom.Config{})
	defer lt.Stop()
	m, ctx := lt.Manager, context.Background()

	invoice := func() (err error) {
		mu, err := m.NewMutex(anteroom.LockConfig{Key: "invoice:7", LeaseTime: 10 * time.Second})
		if err != nil {
			return err
		}
		hold, err := mu.Acquire(ctx, anteroom.Wait(3*time.Second))
		if err != nil {
			return err // ErrNotAcquired: another has it; ErrUnavailable: Redis does not answer
		}
		defer func() { err = errors.Join(err, hold.Release(ctx)) }()

		fmt.Println("valid:", hold.Held(), "for more than 1s:", time.Until(hold.Deadline()) > time.Second)
		return nil
	}
	fmt.Println("error:", invoice())
	// Output:
	// valid: true for more than 1s: true
	// error: <nil>
}

// Without renewal, as redsync's locks are: the lock ends ten seconds after it was
// obtained, unless it is extended.
func Example_fromRedsync_fixedLease() {
	m := locktest.Start(anteroom.Config{})
	defer m.Stop()
	ctx := context.Background()

	hold, err := m.Mutex("invoice:7").Acquire(ctx, anteroom.Lease(10*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	before := hold.Deadline()
	err = hold.Extend(ctx, time.Minute)
	fmt.Println("extended:", err == nil, hold.Deadline().Sub(before) > 40*time.Second)
	fmt.Println("released:", hold.Release(ctx) == nil)
	// Output:
	// extended: true true
	// released: true
}
