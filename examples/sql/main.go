// Command sql writes to a row of a database under a lock. The database refuses a writer whose lock has gone on to another.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "modernc.org/sqlite"

	"github.com/anteroom/anteroom/fence"
	anteroom "github.com/anteroom/anteroom/sync"
)

func main() {
	url := flag.String("redis", "redis://localhost:6379", "URL of Redis")
	file := flag.String("db", "account.db", "the SQLite database")
	owner := flag.String("owner", "me", "what to write")
	pause := flag.Duration("pause", 0, "how long to work before the write")
	lease := flag.Duration("lease", 10*time.Second, "the lease")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *url, *file, *owner, *pause, *lease); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url, file, owner string, pause, lease time.Duration) (err error) {
	m, err := anteroom.Open(ctx, url, anteroom.Config{})
	if err != nil {
		return err
	}
	defer m.CloseWithin(5 * time.Second)
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, guard.Schema()+`; CREATE TABLE IF NOT EXISTS account (id INTEGER PRIMARY KEY, owner TEXT);
		INSERT OR IGNORE INTO account VALUES (1, '')`); err != nil {
		return err
	}
	mu, err := m.NewMutex(anteroom.LockConfig{Key: "account:1", Name: "accounts", Fencing: true, LeaseTime: lease})
	if err != nil {
		return err
	}
	hold, err := mu.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Release(ctx)) }()
	fmt.Println("holding")
	time.Sleep(pause) // the work
	return write(db, hold, owner)
}

var guard = fence.SQL{Dialect: fence.SQLite}

// write checks the token and writes, in one transaction. It does not take the hold's context, as a write that was
// already on its way when the lock was lost would not: only the check can stop that one.
func write(db *sql.DB, hold *anteroom.Hold, owner string) error {
	ctx := context.Background()
	token, _ := hold.Token() // 0 without Fencing, which Check refuses
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := guard.Check(ctx, tx, "account:1", token); err != nil {
		return err // fence.ErrStale: a newer holder has written
	}
	if _, err := tx.ExecContext(ctx, `UPDATE account SET owner = ? WHERE id = 1`, owner); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	fmt.Println("written with token", token)
	return nil
}
