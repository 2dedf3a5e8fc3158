package leader_test

import (
	"context"
	"fmt"

	"github.com/anteroom/anteroom/leader"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

// A program that runs its work in one of its processes, until it has to stop.
func Example() {
	lt := locktest.Start(anteroom.Config{})
	defer lt.Stop()
	ctx, stop := context.WithCancel(context.Background()) // signal.NotifyContext in a program
	defer stop()

	e, err := leader.New(lt.Manager, anteroom.LockConfig{Key: "leader:billing", Name: "leader", Fencing: true}, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	err = e.Run(ctx, func(ctx context.Context) error {
		hold, _ := anteroom.HoldFrom(ctx)
		token, _ := hold.Token() // for what must refuse an old leader
		fmt.Println("leading:", e.Leading(), "token:", token > 0)
		stop() // SIGTERM
		<-ctx.Done()
		return ctx.Err()
	})
	fmt.Println("error:", err)
	l, _ := e.Leader(context.Background())
	fmt.Printf("leader: %q\n", l.ID)
	// Output:
	// leading: true token: true
	// error: <nil>
	// leader: ""
}
