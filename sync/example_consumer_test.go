package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

// payment is a message, which its queue may deliver more than once.
type payment struct{ ID, Account, Amount string }

// paymentConsumer books payments, each of them once.
type paymentConsumer struct {
	m  *anteroom.Manager
	db *paymentsDB
	// convert is the slow part: it may take longer than any lease.
	convert func(ctx context.Context, amount string) (cents int, err error)
}

// handle books p unless that was done before. The message may be acknowledged when
// it returns nil; otherwise the queue delivers it again.
func (c *paymentConsumer) handle(ctx context.Context, p payment) error {
	mu, err := c.m.NewMutex(anteroom.LockConfig{Key: "payment:" + p.ID, Name: "payments", Fencing: true})
	if err != nil {
		return err
	}
	hold, err := mu.Acquire(ctx)
	if err != nil {
		return err
	}
	token, ok := hold.Token()
	if !ok {
		err = errors.New("the lock of a payment needs Fencing")
	} else {
		err = c.book(hold.Context(), p, token)
	}
	// Release says ErrLost if the lock did not last: then the message is not
	// acknowledged, whatever book says, and the done-marker decides next time.
	return errors.Join(err, hold.Release(ctx))
}

// book does the work under the lock. The token goes into the database with the
// first step and is compared in the last one, so that a consumer who lost the lock
// and does not know it yet cannot book beside its successor.
func (c *paymentConsumer) book(ctx context.Context, p payment, token int64) error {
	done, err := c.db.begin(p.ID, token)
	if done || err != nil {
		return err
	}
	cents, err := c.convert(ctx, p.Amount)
	if err != nil {
		return err
	}
	return c.db.commit(p, cents, token)
}

// errSuperseded: a consumer with a newer token works on the message.
var errSuperseded = errors.New("superseded by a newer lock")

// paymentsDB stands for a database; its mutex is what a transaction is there.
type paymentsDB struct {
	mu       sync.Mutex
	messages map[string]messageRow
	balance  map[string]int
}

type messageRow struct {
	fence int64 // the newest token that has begun
	done  bool
}

// begin notes who works on the message, and tells whether it was done before.
//
//	UPDATE messages SET fence = :token WHERE id = :id AND fence <= :token
//	SELECT done FROM messages WHERE id = :id
func (db *paymentsDB) begin(id string, token int64) (done bool, err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	row := db.messages[id]
	if token < row.fence {
		return false, errSuperseded
	}
	row.fence = token
	db.messages[id] = row
	return row.done, nil
}

// commit books the amount and sets the done-marker, both or neither.
//
//	BEGIN
//	UPDATE messages SET done = true WHERE id = :id AND fence = :token AND NOT done
//	-- no row changed: ROLLBACK
//	UPDATE accounts SET balance = balance + :cents WHERE id = :account
//	COMMIT
func (db *paymentsDB) commit(p payment, cents int, token int64) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	row := db.messages[p.ID]
	if row.fence != token || row.done {
		return errSuperseded
	}
	row.done = true
	db.messages[p.ID] = row
	db.balance[p.Account] += cents
	return nil
}

func Example_messageConsumer() {
	m := locktest.Start(anteroom.Config{})
	defer m.Stop()
	ctx := context.Background()
	db := &paymentsDB{messages: map[string]messageRow{}, balance: map[string]int{}}
	convert := func(context.Context, string) (int, error) { return 500, nil }
	a := &paymentConsumer{m.Manager, db, convert}
	b := &paymentConsumer{m.Another(anteroom.Config{}).Manager, db, convert}

	p1 := payment{ID: "1", Account: "alice", Amount: "5.00 EUR"}
	fmt.Println("delivered:", a.handle(ctx, p1), "balance:", db.balance["alice"])
	fmt.Println("delivered again:", b.handle(ctx, p1), "balance:", db.balance["alice"])

	// While a converts the second payment it loses the lock, and b is given the
	// message and books it. Then a goes on.
	p2 := payment{ID: "2", Account: "alice", Amount: "5.00 EUR"}
	a.convert = func(ctx context.Context, amount string) (int, error) {
		m.Lose("payment:2")
		fmt.Println("by the other one:", b.handle(context.Background(), p2), "balance:", db.balance["alice"])
		return convert(ctx, amount)
	}
	err := a.handle(ctx, p2)
	fmt.Println("acknowledged:", err == nil, "lost:", errors.Is(err, anteroom.ErrLost), "superseded:", errors.Is(err, errSuperseded))
	fmt.Println("balance:", db.balance["alice"])
	// Output:
	// delivered: <nil> balance: 500
	// delivered again: <nil> balance: 500
	// by the other one: <nil> balance: 1000
	// acknowledged: false lost: true superseded: true
	// balance: 1000
}
