package handover

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/bench/child"
	"github.com/anteroom/anteroom/bench/library"
	"github.com/anteroom/anteroom/internal/history"
)

// RoleName is one of the two processes among the roles of a program's children.
const RoleName = "handover"

// The orders of a parent.
const (
	lock   = "lock"
	unlock = "unlock"
	ping   = "ping"
)

// answer is what a process did.
type answer struct {
	At   int64         // lock: after its return; unlock: before its call
	Took time.Duration // ping
}

// Role is one of the two processes.
func Role(ctx context.Context, l *child.Link, raw json.RawMessage) error {
	var plan Plan
	if err := json.Unmarshal(raw, &plan); err != nil {
		return err
	}
	lib, err := library.For(plan.Library, plan.Kind)
	if err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{Addr: plan.Addr})
	defer rdb.Close()
	if err := rdb.Ping(ctx).Err(); err != nil {
		return err
	}
	c, err := lib.Open(plan.Addr)
	if err != nil {
		return err
	}
	h := c.Handle(plan.Key)
	for {
		var order string
		if l.Receive(&order) != nil {
			return c.Close() // no more orders
		}
		a, err := obey(ctx, order, h, rdb)
		if err != nil {
			return fmt.Errorf("%s: %w", order, err)
		}
		if err := l.Send(a); err != nil {
			return err
		}
	}
}

func obey(ctx context.Context, order string, h library.Handle, rdb *redis.Client) (a answer, err error) {
	switch order {
	case lock:
		err = h.Lock(ctx)
		a.At = history.Now()
	case unlock:
		a.At = history.Now()
		err = h.Unlock()
	case ping:
		before := time.Now()
		err = rdb.Ping(ctx).Err()
		a.Took = time.Since(before)
	}
	return a, err
}
