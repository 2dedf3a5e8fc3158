// Command cron runs a command that every machine's crontab starts, on one of them only.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

func main() {
	url := flag.String("redis", "redis://localhost:6379", "URL of Redis")
	name := flag.String("name", "nightly", "the job; machines that name the same one share it")
	apart := flag.Duration("apart", 10*time.Minute, "more than the machines' clocks differ, less than the time between two runs")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("usage: cron [flags] command [arguments]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *url, *name, *apart, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url, name string, apart time.Duration, command []string) error {
	m, err := anteroom.Open(ctx, url, anteroom.Config{})
	if err != nil {
		return err
	}
	defer m.CloseWithin(5 * time.Second)

	mu, err := m.NewMutex(anteroom.LockConfig{
		Key: "cron:" + name, Name: "cron",
		MinHold: apart, // the key stays taken, so that a machine whose clock is behind does not run a short job again
	})
	if err != nil {
		return err
	}
	ran, err := mu.TryDo(ctx, func(ctx context.Context) error {
		job := exec.CommandContext(ctx, command[0], command[1:]...) // killed if the lock is lost
		job.Stdout, job.Stderr = os.Stdout, os.Stderr
		return job.Run()
	})
	if !ran && err == nil {
		fmt.Println("another machine runs it, or has just run it")
	}
	return err // where it did not run: Redis did not answer, and nobody knows who runs it
}
