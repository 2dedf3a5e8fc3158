// Command leader runs in several processes, of which one does the work at a time.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/anteroom/anteroom/leader"
	anteroom "github.com/anteroom/anteroom/sync"
)

// stepDownSignal makes the leader step down, an operator's way to move the work: SIGUSR1 where the system has it.
var stepDownSignal os.Signal

func main() {
	url := flag.String("redis", "redis://localhost:6379", "URL of Redis")
	lease := flag.Duration("lease", 10*time.Second, "how long the others wait after the leader has died")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *url, *lease); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url string, lease time.Duration) error {
	m, err := anteroom.Open(ctx, url, anteroom.Config{})
	if err != nil {
		return err
	}
	defer m.CloseWithin(5 * time.Second)
	e, err := leader.New(m, anteroom.LockConfig{Key: "leader:example", Name: "leader", LeaseTime: lease, Fencing: true}, "")
	if err != nil {
		return err
	}

	if stepDownSignal != nil {
		stepDown := make(chan os.Signal, 1)
		signal.Notify(stepDown, stepDownSignal)
		go func() {
			for range stepDown {
				e.StepDown()
			}
		}()
	}

	fmt.Println("standing by")
	return e.Run(ctx, func(ctx context.Context) error {
		hold, _ := anteroom.HoldFrom(ctx)
		token, _ := hold.Token() // give it to what must refuse an old leader
		fmt.Println("leading, token", token)
		defer fmt.Println("no longer leading")
		return work(ctx)
	})
}

// work is what only one process may do. It returns soon after ctx has ended.
func work(ctx context.Context) error {
	for {
		select {
		case <-time.After(time.Second):
			fmt.Println("working")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
