// Package fence makes a resource refuse the late write of a holder that has lost its lock. A lock cannot do that: a
// process can stop after its last check, and write when its lease is over and another holder has written. The resource
// keeps the greatest fencing token that it has seen and refuses smaller ones, in one step with the write.
//
//	hold, err := mu.Acquire(ctx) // of a LockConfig with Fencing
//	...
//	token, _ := hold.Token() // 0 without Fencing, which everything here refuses
//
//	tx, err := db.BeginTx(ctx, nil)
//	if err != nil {
//		return err
//	}
//	defer tx.Rollback()
//	if err := guard.Check(ctx, tx, "account:1", token); err != nil {
//		return err // ErrStale: a newer holder has written
//	}
//	... // the write, by tx
//	return tx.Commit()
//
// [SQL] is for PostgreSQL, MySQL and SQLite, [Redis] for a key of Redis. A resource with conditional writes (HTTP's
// If-Match, S3) keeps the token beside the data: read both with the ETag, give up if the token is greater than yours, write
// data and token under the condition that the ETag is the same, and begin again if it is not.
//
// # What it promises
//
// Once a write with a token was accepted, no write with a smaller one is. Equal tokens are accepted: one holder writes
// several times, and may change places with itself, if it repeats a write whose answer it does not have. Each of three
// conditions is the caller's:
//
//   - Every writer of the resource checks its token, under one name for the resource.
//   - Tokens grow. Those of a lock do, also after FLUSHALL, because they start from the server's clock (docs/guarantees.md,
//     §7). Two locks, or a lock in two dialects, must not guard one resource.
//   - The record of the greatest token lasts as long as an old holder may. SQL keeps it until you delete the row; of
//     Redis.RecordTime that is said there.
//
// A late write that comes before the newer holder's first write is accepted: the resource has seen nothing newer. A holder
// that must exclude even this writes, or checks and commits, before it reads.
package fence

import (
	"errors"
	"fmt"
)

// ErrStale is returned, wrapped, if the resource has seen a greater token. The lock has gone to another holder, which
// has written. Give up, and undo what was done elsewhere: the write was not made, and no repetition will be accepted.
var ErrStale = errors.New("stale fencing token")

// stale is the error of a token that is smaller than one which was seen.
func stale(resource string, token int64, seen any) error {
	return fmt.Errorf("fence: %q has seen token %v, and refuses %d: %w", resource, seen, token, ErrStale)
}

// valid returns an error for what is no token.
func valid(resource string, token int64) error {
	if token > 0 {
		return nil
	}
	return fmt.Errorf("fence: %q: %d is no fencing token: set LockConfig.Fencing", resource, token)
}
