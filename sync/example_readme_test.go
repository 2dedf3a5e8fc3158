package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

func Example_readme() {
	ctx := context.Background()
	m, err := anteroom.Open(ctx, "redis://localhost:6379", anteroom.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.CloseWithin(5 * time.Second)

	err = m.Mutex("order:42").Do(ctx, func(ctx context.Context) error {
		// One goroutine of one process is here at a time. ctx ends if the lock is lost.
		fmt.Println("shipping order 42")
		return context.Cause(ctx)
	})
	if errors.Is(err, anteroom.ErrLost) {
		fmt.Println("somebody else may have shipped it too:", err)
	} else if err != nil {
		fmt.Println(err) // not acquired; or shipped, and the release has no answer yet
	}
}
