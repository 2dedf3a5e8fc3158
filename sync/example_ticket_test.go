package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

// job is what a request leaves to a worker.
type job struct {
	Order  string
	Ticket string
}

// jobQueue replaces a broker.
type jobQueue chan job

func (q jobQueue) Publish(_ context.Context, j job) error {
	q <- j
	return nil
}

// A request takes the lock and answers. A worker, in another process as a rule, finishes the job under the same hold:
// nobody comes in between, and the token stays.
func ExampleHold_Detach() {
	lt := locktest.Start(anteroom.Config{Defaults: anteroom.LockConfig{Fencing: true}})
	defer lt.Stop()
	jobs := make(jobQueue, 1)

	request := func(ctx context.Context, m *anteroom.Manager, id string) error {
		hold, err := m.Mutex("order:" + id).Acquire(ctx)
		if err != nil {
			return err
		}
		ticket, err := hold.Detach(ctx, 10*time.Minute) // the longest time that the job may be queued
		if err != nil {
			return err
		}
		return jobs.Publish(ctx, job{Order: id, Ticket: string(ticket)}) // a secret: anyone with it can resume
	}
	worker := func(ctx context.Context, m *anteroom.Manager, job job) error {
		hold, err := m.Mutex("order:"+job.Order).Resume(ctx, anteroom.Ticket(job.Ticket))
		switch {
		case errors.Is(err, anteroom.ErrNotHeld): // too late, or the job was delivered twice
			return nil
		case err != nil:
			return err // try again
		}
		fmt.Println("working on", hold.Key())
		return hold.Release(ctx)
	}

	ctx := context.Background()
	other := lt.Another(anteroom.Config{Defaults: anteroom.LockConfig{Fencing: true}})
	fmt.Println(request(ctx, lt.Manager, "42"))
	delivered := <-jobs
	fmt.Println(worker(ctx, other.Manager, delivered))
	fmt.Println(worker(ctx, other.Manager, delivered))
	// Output:
	// <nil>
	// working on order:42
	// <nil>
	// <nil>
}
