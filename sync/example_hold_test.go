package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

// ledger is a resource that protects itself: it refuses a write that is older than one that
// it has seen. In SQL: UPDATE … SET token = $1 WHERE id = $2 AND token <= $1.
type ledger struct{ newest int64 }

func (l *ledger) write(token int64) error {
	if token < l.newest {
		return errors.New("refused: a later holder has written")
	}
	l.newest = token
	return nil
}

// Only a fencing token stops a write that is already in flight when the lock is lost.
func ExampleHold_Token() {
	m := locktest.Start(anteroom.Config{Defaults: anteroom.LockConfig{Fencing: true}})
	defer m.Stop()
	ctx, mu, accounts := context.Background(), m.Mutex("accounts"), &ledger{}

	first, err := mu.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	m.Lose("accounts") // its process is stopped for too long, say
	second, err := mu.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	later, _ := second.Token()
	earlier, _ := first.Token()
	fmt.Println("the later holder:", accounts.write(later))
	fmt.Println("the earlier one:", accounts.write(earlier))
	fmt.Println("the later one lasted:", second.Release(ctx) == nil)
	// Output:
	// the later holder: <nil>
	// the earlier one: refused: a later holder has written
	// the later one lasted: true
}

// What ended the work: the lock, or the caller's own deadline.
func ExampleHold_Context() {
	m := locktest.Start(anteroom.Config{})
	defer m.Stop()
	hold, err := m.Mutex("report").Acquire(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(hold.Context(), time.Minute)
	defer cancel()

	m.Lose("report")
	<-ctx.Done()
	fmt.Println("the lock was lost:", errors.Is(context.Cause(ctx), anteroom.ErrLost))
	fmt.Println("and Release says so:", errors.Is(hold.Release(ctx), anteroom.ErrLost))
	// Output:
	// the lock was lost: true
	// and Release says so: true
}

// The caller's context bounds the request; Wait bounds how long it waits for the lock.
func ExampleWait() {
	m := locktest.Start(anteroom.Config{})
	defer m.Stop()
	leave := m.TakeBy("order:42")
	defer leave()

	_, err := m.Mutex("order:42").Acquire(context.Background(), anteroom.Wait(time.Second))
	fmt.Println("held by another:", errors.Is(err, anteroom.ErrNotAcquired))
	// Output: held by another: true
}

// A fixed lease ends by itself unless its owner extends it: nothing renews it in the
// background, so a worker that hangs loses the lock.
func ExampleLease() {
	m := locktest.Start(anteroom.Config{})
	defer m.Stop()
	ctx := context.Background()
	hold, err := m.Mutex("import").Acquire(ctx, anteroom.Lease(5*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	for part := range 3 {
		if err := hold.Extend(ctx, 30*time.Second); err != nil {
			fmt.Println("lost:", err)
			return
		}
		fmt.Println("part", part, "with more than 5 s left:", hold.TTL() > 5*time.Second)
	}
	// Output:
	// part 0 with more than 5 s left: true
	// part 1 with more than 5 s left: true
	// part 2 with more than 5 s left: true
}
