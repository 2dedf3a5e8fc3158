package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
	"github.com/anteroom/anteroom/sync/observe"
)

// A lock with a configuration of its own. What it leaves out has the value of
// Config.Defaults, and a mistake is found here and not at the first Acquire.
func ExampleManager_NewMutex() {
	m := locktest.Start(anteroom.Config{})
	defer m.Stop()

	mu, err := m.NewMutex(anteroom.LockConfig{
		Key:       "invoice:7",
		Name:      "invoices", // the class in metrics and logs
		LeaseTime: 10 * time.Second,
		Fair:      true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("renewed every", mu.Config().RenewalTime.Round(time.Second))

	_, err = m.NewMutex(anteroom.LockConfig{Key: "invoice:7", LeaseTime: time.Millisecond})
	fmt.Println(err)
	// Output:
	// renewed every 3s
	// anteroom: new mutex "invoice:7": bad configuration: LeaseTime is 1ms; it must be from 100ms to 24h0m0s
}

// Close waits for the holds that are left and names those that remain.
func ExampleManager_Close() {
	m := locktest.Start(anteroom.Config{})
	defer m.Stop()
	hold, err := m.Mutex("order:42").Acquire(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		// … the rest of the work
		if err := hold.Release(context.Background()); err != nil {
			fmt.Println("the lock did not last:", err)
		}
	}()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println("closed:", m.Close(ctx))
	_, err = m.Mutex("order:42").Acquire(ctx)
	fmt.Println("refused:", errors.Is(err, anteroom.ErrClosed))
	// Output:
	// closed: <nil>
	// refused: true
}

// An operator's question and an operator's last resort.
func ExampleManager_ForceRelease() {
	m := locktest.Start(anteroom.Config{})
	defer m.Stop()
	ctx := context.Background()
	hold, err := m.Mutex("order:42").Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	info, err := m.Inspect(ctx, "order:42")
	fmt.Println("locked:", info.Locked, err)

	broken, err := m.ForceRelease(ctx, "order:42")
	<-hold.Context().Done() // the holder is notified
	fmt.Println("broken:", len(broken) == 1 && broken[0] == hold.Holder(), err)
	fmt.Println("held:", hold.Held())
	// Output:
	// locked: true <nil>
	// broken: true <nil>
	// held: false
}

// OnEvent hears what a person may want to know. It runs on a goroutine of its own and
// delays no lock.
func ExampleEvent() {
	events := make(chan observe.Event, 100)
	m := locktest.Start(anteroom.Config{OnEvent: func(e observe.Event) { events <- e }})
	defer m.Stop()
	hold, err := m.Mutex("order:42").Acquire(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	m.Lose("order:42")
	for e := range events {
		if e.Kind == observe.EventLost {
			fmt.Println(e.Kind, e.Key, e.Reason)
			break
		}
	}
	hold.Release(context.Background()) // ErrLost
	// Output: lost order:42 forced
}

// A try with a limit, for code that has no context.
func ExampleMutex_TryLockFor() {
	m := locktest.Start(anteroom.Config{})
	defer m.Stop()
	mu := m.Mutex("cache:refresh")
	leave := m.TakeBy("cache:refresh")

	fmt.Println("while another holds it:", mu.TryLockFor(20*time.Millisecond))
	leave()
	fmt.Println("after its release:", mu.TryLockFor(time.Minute))
	mu.Unlock()
	// Output:
	// while another holds it: false
	// after its release: true
}
