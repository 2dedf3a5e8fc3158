// Command asynq is a worker of asynq that works on one task of an account at a time, in however many processes it runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hibiken/asynq"

	anteroom "github.com/anteroom/anteroom/sync"
)

const bill = "bill" // the type of the tasks; the payload is the account

var dir = flag.String("dir", os.TempDir(), "where the work keeps a folder for each account")

func main() {
	url := flag.String("redis", "redis://localhost:6379", "URL of Redis")
	enqueue := flag.Int("enqueue", 0, "first enqueue so many tasks of one account")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *url, *enqueue); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url string, enqueue int) error {
	opt, err := asynq.ParseRedisURI(url)
	if err != nil {
		return err
	}
	m, err := anteroom.Open(ctx, url, anteroom.Config{})
	if err != nil {
		return err
	}
	defer m.CloseWithin(5 * time.Second)
	client := asynq.NewClient(opt)
	defer client.Close()
	for range enqueue {
		if _, err := client.EnqueueContext(ctx, asynq.NewTask(bill, []byte("alice"))); err != nil {
			return err
		}
	}

	mux := asynq.NewServeMux()
	mux.Use(oneAtATime(m, func(t *asynq.Task) string { return "account:" + string(t.Payload()) }))
	mux.HandleFunc(bill, work)
	srv := asynq.NewServer(opt, asynq.Config{
		Concurrency: 4, LogLevel: asynq.ErrorLevel,
		TaskCheckInterval: 200 * time.Millisecond, DelayedTaskCheckInterval: 200 * time.Millisecond,
		// A task that found its account busy comes again soon, and has not failed: it is not archived for that.
		IsFailure: func(err error) bool { return !errors.Is(err, errBusy) },
		RetryDelayFunc: func(n int, err error, t *asynq.Task) time.Duration {
			if errors.Is(err, errBusy) {
				return 100 * time.Millisecond
			}
			return asynq.DefaultRetryDelayFunc(n, err, t)
		},
	})
	if err := srv.Start(mux); err != nil {
		return err
	}
	<-ctx.Done()
	srv.Shutdown() // waits for the tasks
	return nil
}

var errBusy = errors.New("another task has the lock")

// oneAtATime holds the lock of the task's key while its handler works. The handler's context ends if the lock is lost. The wait is
// short: a task that waits occupies a worker.
func oneAtATime(m *anteroom.Manager, key func(*asynq.Task) string) asynq.MiddlewareFunc {
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			began := false
			err := m.Mutex(key(t)).Do(ctx, func(ctx context.Context) error {
				began = true
				return next.ProcessTask(ctx, t)
			}, anteroom.Wait(time.Second))
			if !began && errors.Is(err, anteroom.ErrNotAcquired) {
				return fmt.Errorf("%w: %w", errBusy, err)
			}
			return err
		})
	}
}

// work fails if somebody else works on the account.
func work(ctx context.Context, t *asynq.Task) error {
	mark := filepath.Join(*dir, string(t.Payload()))
	if err := os.Mkdir(mark, 0o700); err != nil {
		fmt.Println("two at a time:", err)
		return err
	}
	defer os.Remove(mark)
	select {
	case <-time.After(50 * time.Millisecond):
		fmt.Println("billed", string(t.Payload()))
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
