package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/fence"
	"github.com/anteroom/anteroom/internal/pace"
)

func TestSQLite(t *testing.T)     { suite(t, sqlite) }
func TestPostgreSQL(t *testing.T) { suite(t, postgresql) }
func TestMariaDB(t *testing.T)    { suite(t, mariadb) }

func suite(t *testing.T, start func(*testing.T) database) {
	t.Parallel()
	d := start(t)
	db := d.open(t, d.DSN)
	apply(t, db, d.Guard.Schema(), d.Guard.Schema()) // twice: it may be there
	t.Run("answers", func(t *testing.T) {
		for i, dsn := range append([]string{d.DSN}, d.others...) {
			d.answers(t, d.open(t, dsn), fmt.Sprintf("%d-", i))
		}
	})
	t.Run("rolled back", func(t *testing.T) { d.rolledBack(t, db) })
	t.Run("waits", func(t *testing.T) { d.waits(t, db) })
	for _, level := range append([]sql.IsolationLevel{sql.LevelDefault}, d.levels...) {
		t.Run("order "+level.String(), func(t *testing.T) { d.order(t, db, level) })
	}
	t.Run("paused holders", func(t *testing.T) { d.paused(t, db) })
}

func apply(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// answers: each token is compared with the greatest of its resource, in a *sql.Tx and a *sql.Conn.
func (d database) answers(t *testing.T, db *sql.DB, prefix string) {
	other := fence.SQL{Dialect: d.Guard.Dialect, Table: "other_fence"}
	apply(t, db, other.Schema())
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, step := range []struct {
		guard    fence.SQL
		resource string
		token    int64
		seen     string // by which it is refused
	}{
		{d.Guard, "r", 1<<53 + 1, ""},
		{d.Guard, "r", 1<<53 + 1, ""}, // the same holder
		{d.Guard, "r", 1 << 53, "9007199254740993"},
		{d.Guard, "r", 1, "9007199254740993"},
		{d.Guard, "R", 1, ""}, // another resource
		{d.Guard, "r ", 1, ""},
		{d.Guard, "é", 1, ""},
		{d.Guard, "e", 1, ""},
		{other, "r", 1, ""}, // another table
		{d.Guard, "r", 1<<53 + 2, ""},
		{d.Guard, "r", 1<<53 + 1, "9007199254740994"},
	} {
		resource := prefix + step.resource
		if _, err := conn.ExecContext(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
		byConn := step.guard.Check(t.Context(), conn, resource, step.token)
		if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		tx := begin(t, db)
		byTx := step.guard.Check(t.Context(), tx, resource, step.token)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{byConn, byTx} {
			if errors.Is(err, fence.ErrStale) != (step.seen != "") || err != nil && step.seen == "" {
				t.Errorf("%s %d: %v", resource, step.token, err)
			}
			if err != nil && !(strings.Contains(err.Error(), resource) && strings.Contains(err.Error(), step.seen)) {
				t.Errorf("the error does not name %s and %s: %v", resource, step.seen, err)
			}
		}
	}
}

// rolledBack: a token counts only with what was written with it.
func (d database) rolledBack(t *testing.T, db *sql.DB) {
	tx := begin(t, db)
	if err := errors.Join(d.Guard.Check(t.Context(), tx, "rolled back", 9), tx.Rollback()); err != nil {
		t.Fatal(err)
	}
	tx = begin(t, db)
	if err := errors.Join(d.Guard.Check(t.Context(), tx, "rolled back", 8), tx.Commit()); err != nil {
		t.Error(err)
	}
	missing := fence.SQL{Dialect: d.Guard.Dialect, Table: "missing"}
	if err := missing.Check(t.Context(), begin(t, db), "r", 8); err == nil || errors.Is(err, fence.ErrStale) {
		t.Errorf("without a table: %v", err)
	}
}

// waits: who comes second waits for the end of the first one's transaction, and gets an answer that counts it.
func (d database) waits(t *testing.T, db *sql.DB) {
	for i, step := range []struct {
		first, second int64
		end           func(*sql.Tx) error
		stale         bool
	}{
		{7, 8, (*sql.Tx).Commit, false},
		{8, 7, (*sql.Tx).Commit, true},
		{8, 7, (*sql.Tx).Rollback, false},
		{8, 8, (*sql.Tx).Commit, false},
	} {
		for _, before := range []int64{0, 1} { // without a row, and with one
			resource := fmt.Sprintf("waits-%d-%d", i, before)
			if before > 0 {
				tx := begin(t, db)
				if err := errors.Join(d.Guard.Check(t.Context(), tx, resource, before), tx.Commit()); err != nil {
					t.Fatal(err)
				}
			}
			first := begin(t, db)
			if err := d.Guard.Check(t.Context(), first, resource, step.first); err != nil {
				t.Fatal(err)
			}
			second, got := begin(t, db), make(chan error, 1)
			go func() { got <- d.Guard.Check(t.Context(), second, resource, step.second) }()
			d.awaitWaiting(t, db)
			if err := step.end(first); err != nil {
				t.Fatal(err)
			}
			if err := <-got; errors.Is(err, fence.ErrStale) != step.stale || err != nil && !step.stale {
				t.Errorf("%s, token %d after %d: %v", resource, step.second, step.first, err)
			}
			_ = second.Rollback()
		}
	}
}

// awaitWaiting returns when a transaction waits for another. SQLite does not say so.
func (d database) awaitWaiting(t *testing.T, db *sql.DB) {
	t.Helper()
	for limit := time.Now().Add(pace.Hang); d.waiting != ""; time.Sleep(5 * time.Millisecond) {
		n := 0
		if err := db.QueryRowContext(t.Context(), d.waiting).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
		if time.Now().After(limit) {
			t.Fatal("nobody waits")
		}
	}
}

// order: writers with tokens in any order write to a log. Guarded, tokens in it never fall; without the guard they do.
func (d database) order(t *testing.T, db *sql.DB, level sql.IsolationLevel) {
	id := map[fence.Dialect]string{
		fence.PostgreSQL: "BIGSERIAL PRIMARY KEY", fence.MySQL: "BIGINT AUTO_INCREMENT PRIMARY KEY", fence.SQLite: "INTEGER PRIMARY KEY",
	}[d.Guard.Dialect]
	for _, table := range []string{"guarded_log", "control_log"} {
		apply(t, db, "DROP TABLE IF EXISTS "+table, "CREATE TABLE "+table+" (id "+id+", resource VARCHAR(40), token BIGINT)")
	}
	insert := func(tx *sql.Tx, table, resource string, token int64) error {
		_, err := tx.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO %s (resource, token) VALUES ('%s', %d)", table, resource, token))
		return err
	}
	var accepted, refused, repeated atomic.Int64
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for n := range int64(40) {
				resource, token := fmt.Sprint(level, n%3), 1+rand.Int64N(20)+n // they grow, in disorder
				err := d.within(t, db, level, func(tx *sql.Tx) error { return insert(tx, "control_log", resource, token) })
				if err != nil {
					t.Error(err)
				}
				for limit := time.Now().Add(pace.Hang); ; {
					err = d.within(t, db, level, func(tx *sql.Tx) error {
						if err := d.Guard.Check(t.Context(), tx, resource, token); err != nil {
							return err
						}
						return insert(tx, "guarded_log", resource, token)
					})
					switch {
					case err == nil:
						accepted.Add(1)
					case errors.Is(err, fence.ErrStale):
						refused.Add(1)
					case !conflict(err) || time.Now().After(limit):
						t.Error(err)
					default:
						repeated.Add(1)
						continue
					}
					break
				}
			}
		})
	}
	writers.Wait()
	if n := d.falls(t, db, "guarded_log"); n != 0 {
		t.Errorf("%d stale writes", n)
	}
	control := d.falls(t, db, "control_log")
	t.Logf("%d accepted, %d refused, %d repeated after a conflict; %d stale writes without the guard", accepted.Load(), refused.Load(), repeated.Load(), control)
	if control == 0 || accepted.Load() == 0 || refused.Load() == 0 {
		t.Error("this proves nothing")
	}
}

// within runs f in a transaction.
func (d database) within(t *testing.T, db *sql.DB, level sql.IsolationLevel, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// conflict reports whether the database has ended a transaction because of another.
func conflict(err error) bool {
	return strings.Contains(err.Error(), "could not serialize") || strings.Contains(err.Error(), "eadlock")
}

// falls returns how often a token in the log is smaller than one of the same resource before it.
func (d database) falls(t *testing.T, db *sql.DB, table string) (n int) {
	rows, err := db.QueryContext(context.WithoutCancel(t.Context()), "SELECT resource, token FROM "+table+" ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	greatest := map[string]int64{}
	for rows.Next() {
		var resource string
		var token int64
		if err := rows.Scan(&resource, &token); err != nil {
			t.Fatal(err)
		}
		if token < greatest[resource] {
			n++
		}
		greatest[resource] = max(greatest[resource], token)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}
