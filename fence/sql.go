package fence

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// Dialect is a kind of database.
type Dialect int

// The dialects. MySQL is also MariaDB's, with InnoDB.
const (
	PostgreSQL Dialect = iota
	MySQL
	SQLite // 3.35 or newer
)

// SQL checks tokens in a table that has a row for each resource, in the database of the resource. The zero value is for
// PostgreSQL. Safe for concurrent use.
type SQL struct {
	Dialect Dialect

	// Table is part of the statements as it is, so quote it if it needs that. Defaults to anteroom_fence.
	Table string
}

// Tx is the transaction of a write: a *sql.Tx, or a *sql.Conn between BEGIN and COMMIT.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

var schemas = [...]string{
	PostgreSQL: `CREATE TABLE IF NOT EXISTS TABLE_NAME (
	resource TEXT PRIMARY KEY, token BIGINT NOT NULL)`,
	MySQL: `CREATE TABLE IF NOT EXISTS TABLE_NAME (
	resource VARBINARY(255) PRIMARY KEY, token BIGINT NOT NULL) ENGINE=InnoDB`, // a collation would make A and a one resource
	SQLite: `CREATE TABLE IF NOT EXISTS TABLE_NAME (
	resource TEXT NOT NULL PRIMARY KEY, token INTEGER NOT NULL)`,
}

// Each locks the row, raises it to the token unless it has a greater one, and answers with the greatest. MySQL's answer is
// the insert id: the rows affected are the same for an equal token and a smaller one, and depend on the driver's
// clientFoundRows.
var checks = [...]string{
	PostgreSQL: `INSERT INTO TABLE_NAME AS f (resource, token) VALUES ($1, $2)
	ON CONFLICT (resource) DO UPDATE SET token = greatest(f.token, excluded.token) RETURNING token`,
	MySQL: `INSERT INTO TABLE_NAME (resource, token) VALUES (?, LAST_INSERT_ID(?))
	ON DUPLICATE KEY UPDATE token = LAST_INSERT_ID(GREATEST(token, ?))`,
	SQLite: `INSERT INTO TABLE_NAME AS f (resource, token) VALUES (?, ?)
	ON CONFLICT (resource) DO UPDATE SET token = max(f.token, excluded.token) RETURNING token`,
}

func (g SQL) fill(statement string) string {
	return strings.ReplaceAll(statement, "TABLE_NAME", cmp.Or(g.Table, "anteroom_fence"))
}

// Schema returns the statement that makes the table, if there is none. In MySQL a resource has at most 255 bytes.
//
// Rows stay. One may be deleted once no older holder can be running; tokens of a lock are microseconds since 1970, or a
// little more, so `token < …` selects by age.
func (g SQL) Schema() string { return g.fill(schemas[g.Dialect]) }

// Check returns nil if the resource has seen no token greater than this one, and makes it the greatest; the caller then
// writes in the same transaction, and commits. It returns an error that wraps ErrStale, and names the greater token, if
// there is one. After any error roll back.
//
// It is one statement, which locks the resource's row until the transaction ends. Others that check the same resource
// wait for that, and then see the token if it was committed. This holds in every isolation level. Call it first in the
// transaction: what is read after it is what the holder before has written. If two meet in PostgreSQL's REPEATABLE READ
// or SERIALIZABLE, or in a deadlock, one gets the database's error (errors.As), which says nothing about the token: roll
// back and repeat.
//
// A holder that stops inside its transaction keeps the row. Its successor waits until it continues, or until the
// database ends its session (PostgreSQL: idle_in_transaction_session_timeout; MySQL: wait_timeout; SQLite, where all
// writers wait: never).
//
// A *sql.DB is refused, because it would unlock the row before the write and so protect nothing. A *sql.Conn without a
// transaction protects nothing either, and passes. A token below 1 is refused.
func (g SQL) Check(ctx context.Context, tx Tx, resource string, token int64) error {
	if _, is := tx.(*sql.DB); is {
		return errors.New("fence: a *sql.DB is no transaction")
	}
	if err := valid(resource, token); err != nil {
		return err
	}
	statement, seen := g.fill(checks[g.Dialect]), int64(0)
	var err error
	if g.Dialect == MySQL {
		var done sql.Result
		if done, err = tx.ExecContext(ctx, statement, resource, token, token); err == nil {
			seen, err = done.LastInsertId()
		}
	} else {
		err = tx.QueryRowContext(ctx, statement, resource, token).Scan(&seen)
	}
	switch {
	case err != nil:
		return fmt.Errorf("fence: %q: %w", resource, err)
	case seen < token:
		return fmt.Errorf("fence: %q: the database has answered %d to token %d", resource, seen, token)
	case seen > token:
		return stale(resource, token, seen)
	}
	return nil
}
