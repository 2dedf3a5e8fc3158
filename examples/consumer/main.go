// Command consumer books payments from a Redis stream, each of them once, however often it is delivered and however
// many consumers run.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite"

	anteroom "github.com/anteroom/anteroom/sync"
)

const stream, group = "payments", "booking"

func main() {
	url := flag.String("redis", "redis://localhost:6379", "URL of Redis")
	file := flag.String("db", "payments.db", "the SQLite database")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *url, *file); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url, file string) error {
	options, err := redis.ParseURL(url)
	if err != nil {
		return err
	}
	options.ContextTimeoutEnabled, options.PoolSize = true, 28
	rdb := redis.NewClient(options)
	defer rdb.Close()
	m, err := anteroom.NewManager(rdb, anteroom.Config{Defaults: anteroom.LockConfig{
		Name: "payments", Fencing: true,
		FenceRecordTime: time.Hour, // a key for each message leaves a record of about 100 bytes for so long
	}})
	if err != nil {
		return err
	}
	defer m.CloseWithin(30 * time.Second) // the message in hand is finished

	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	defer db.Close()
	if err := schema(db); err != nil {
		return err
	}
	c := consumer{m, db}
	_ = rdb.XGroupCreateMkStream(ctx, stream, group, "0").Err() // it may be there already
	me := m.ClientID()
	for ctx.Err() == nil {
		read, err := rdb.XReadGroup(ctx, &redis.XReadGroupArgs{Group: group, Consumer: me, Streams: []string{stream, ">"}, Count: 1, Block: time.Second}).Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return err
		}
		msg := read[0].Messages[0]
		id, _ := msg.Values["id"].(string)
		account, _ := msg.Values["account"].(string)
		text, _ := msg.Values["cents"].(string)
		cents, _ := strconv.Atoi(text)
		if err := c.handle(ctx, id, account, cents); err != nil {
			log.Printf("payment %s: %v: it stays pending, for XAUTOCLAIM", id, err)
			continue
		}
		if err := rdb.XAck(context.WithoutCancel(ctx), stream, group, msg.ID).Err(); err != nil {
			return err // it will be delivered again, and found done
		}
	}
	return nil
}

type consumer struct {
	m  *anteroom.Manager
	db *sql.DB
}

// handle books a payment unless that was done before. On nil the message may be acknowledged.
func (c consumer) handle(ctx context.Context, id, account string, cents int) (err error) {
	hold, err := c.m.Mutex("payment:" + id).Acquire(ctx)
	if err != nil {
		return err
	}
	// ErrLost: the lock did not last. The message is not acknowledged then, also if book returned nil.
	defer func() { err = errors.Join(err, hold.Release(ctx)) }()
	token, _ := hold.Token()
	return c.book(hold.Context(), id, account, cents, token)
}

var errSuperseded = errors.New("a consumer with a newer token works on it")

// book leaves its token, works, and books in a transaction that requires the token to be the newest still.
func (c consumer) book(ctx context.Context, id, account string, cents int, token int64) error {
	var done bool
	err := c.db.QueryRowContext(ctx, `INSERT INTO messages (id, fence) VALUES (?1, ?2)
		ON CONFLICT (id) DO UPDATE SET fence = max(fence, ?2) RETURNING done`, id, token).Scan(&done)
	if done || err != nil {
		return err
	}
	fmt.Println("working on payment", id)
	time.Sleep(50 * time.Millisecond) // the work, which may take longer than any lease

	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	marked, err := tx.ExecContext(ctx, `UPDATE messages SET done = true WHERE id = ? AND fence = ? AND NOT done`, id, token)
	if err != nil {
		return err
	}
	if n, err := marked.RowsAffected(); n == 0 {
		return cmp.Or(err, errSuperseded)
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO accounts (name, cents) VALUES (?1, ?2)
		ON CONFLICT (name) DO UPDATE SET cents = cents + ?2`, account, cents); err != nil {
		return err
	}
	return tx.Commit()
}

func schema(db *sql.DB) error {
	_, err := db.Exec(`CREATE TABLE IF NOT EXISTS messages (id TEXT PRIMARY KEY, fence INTEGER NOT NULL CHECK (fence > 0), done BOOLEAN NOT NULL DEFAULT false);
		CREATE TABLE IF NOT EXISTS accounts (name TEXT PRIMARY KEY, cents INTEGER NOT NULL)`)
	return err
}
