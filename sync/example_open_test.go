package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
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
	defer m.Close(context.Background())
	if err := m.Ping(ctx, "order:0", "invoice:0"); err != nil {
		log.Fatal(err)
	}
}

// A readiness check tells an outage, which passes, from what a person has to change.
func ExampleManager_Ping() {
	var m *anteroom.Manager // from Open
	ready := func(ctx context.Context) error {
		err := m.Ping(ctx, "order:0")
		if errors.Is(err, anteroom.ErrConfig) {
			return fmt.Errorf("somebody has to look: %w", err)
		}
		return err
	}
	_ = ready
}
