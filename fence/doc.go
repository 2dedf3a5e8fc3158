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
// [SQL] is for PostgreSQL, MySQL and SQLite, [Redis] for a key of Redis. For HTTP's If-Match and S3 there is an example
// in examples/example_conditional_test.go.
//
// # What it promises
//
// Once a write with a token was accepted, no write with a smaller one is, if
//
//   - every writer of the resource checks its token, under one name of the resource;
//   - tokens grow: the resource has one lock, whose tokens grow as docs/guarantees.md, §7 says, also after FLUSHALL;
//   - the record of the greatest token lasts longer than a holder may stop and then write. In SQL it stays until you
//     delete the row, in Redis for [Redis].RecordTime.
//
// Equal tokens are accepted, because a holder may write several times. Nothing here orders the writes of one holder.
//
// A late write is accepted if it comes before the newer holder's first one: the resource has seen nothing newer. So a
// holder that reads, works and then writes should check and commit once before it reads.
package fence

import (
	"errors"
	"fmt"
)

// ErrStale is wrapped by the error of a write whose resource has seen a greater token: another holder has the lock and
// has written. Give up, and undo what was done elsewhere: no repetition will be accepted.
var ErrStale = errors.New("stale fencing token")

// stale is the error of a token that is smaller than one which was seen.
func stale(resource string, token int64, seen any) error {
	return fmt.Errorf("fence: %q: token %d refused, %v was seen: %w", resource, token, seen, ErrStale)
}

// valid returns an error for what is no token.
func valid(resource string, token int64) error {
	if token > 0 {
		return nil
	}
	return fmt.Errorf("fence: %q: %d is no fencing token: set LockConfig.Fencing", resource, token)
}
