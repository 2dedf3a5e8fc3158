package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

// A program that ends at the start if its locks cannot work: the URL, with its password,
// comes from the environment, and the ACL allows the keys order:* and invoice:*.
func ExampleOpen() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	m, err := anteroom.Open(ctx, os.Getenv("REDIS_URL"), anteroom.Config{})
	if err != nil {
		log.Fatal(err) // says what is wrong, without the password
	}
	defer m.CloseWithin(5 * time.Second)
	if err := m.Ping(ctx, "order:0", "invoice:0"); err != nil {
		log.Fatal(err)
	}
}

// A readiness check distinguishes an outage, which passes, from what a person has to change.
func ExampleManager_Ping() {
	m := locktest.Start(anteroom.Config{})
	defer m.Stop()
	ready := func(ctx context.Context) string {
		switch err := m.Ping(ctx, "order:0"); {
		case err == nil:
			return "ready"
		case errors.Is(err, anteroom.ErrConfig):
			return "somebody has to look: " + err.Error()
		default:
			return "not ready"
		}
	}

	fmt.Println(ready(context.Background()))
	m.Down()
	fmt.Println(ready(context.Background()))
	// Output:
	// ready
	// not ready
}
