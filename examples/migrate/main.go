// Command migrate brings a database up to date when the program starts, in one of the processes that start at the same time.
package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/golang-migrate/migrate/v4"
	_ "github.com/golang-migrate/migrate/v4/database/sqlite"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	anteroom "github.com/anteroom/anteroom/sync"
)

//go:embed migrations/*.sql
var migrations embed.FS

func main() {
	url := flag.String("redis", "redis://localhost:6379", "URL of Redis")
	file := flag.String("db", "app.db", "the SQLite database")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *url, *file); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url, file string) error {
	m, err := anteroom.Open(ctx, url, anteroom.Config{})
	if err != nil {
		return err
	}
	defer m.CloseWithin(5 * time.Second)
	// Whoever comes first migrates, the others wait for it, and find nothing to do. If it dies, the next one comes after a lease;
	// golang-migrate then refuses a database that is left "dirty" in the middle of a migration.
	return m.Mutex("migrate:app").Do(ctx, func(ctx context.Context) error { return up(ctx, file) })
}

// up applies the migrations that are missing. If the lock is lost, it stops after the one that is under way.
func up(ctx context.Context, file string) error {
	source, err := iofs.New(migrations, "migrations")
	if err != nil {
		return err
	}
	mig, err := migrate.NewWithSourceInstance("iofs", source, "sqlite://"+file)
	if err != nil {
		return err
	}
	defer mig.Close()
	defer context.AfterFunc(ctx, func() { mig.GracefulStop <- true })()
	switch err := mig.Up(); {
	case errors.Is(err, migrate.ErrNoChange):
		fmt.Println("up to date")
	case err != nil:
		return err
	default:
		version, _, err := mig.Version()
		if err != nil {
			return err
		}
		fmt.Println("migrated to version", version)
	}
	return context.Cause(ctx)
}
