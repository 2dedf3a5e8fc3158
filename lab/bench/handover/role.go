package handover

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/history"
)

// RoleName is the child role of the two processes.
const RoleName = "handover"

// The orders of a parent.
const (
	lock   = "lock"
	unlock = "unlock"
	ping   = "ping"   // a PING of go-redis
	script = "script" // the cheapest way to lock and unlock another key
)

// answer is the result of an order.
type answer struct {
	At   int64         // lock: after its return; unlock: before its call
	Took time.Duration // ping; script: half of both
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
	bare, err := library.For(library.Evalsha, library.Alone)
	if err != nil {
		return err
	}
	scripts, err := bare.Open(plan.Addr)
	if err != nil {
		return err
	}
	defer scripts.Close()
	c, err := lib.Open(plan.Addr)
	if err != nil {
		return err
	}
	p := party{rdb, c.Handle(plan.Key), scripts.Handle(fmt.Sprint(plan.Key, ":", os.Getpid()))}
	if err := l.Send("ready"); err != nil {
		return err
	}
	for {
		var order string
		if l.Receive(&order) != nil {
			return c.Close() // no more orders
		}
		a, err := p.obey(ctx, order)
		if err != nil {
			return fmt.Errorf("%s: %w", order, err)
		}
		if err := l.Send(a); err != nil {
			return err
		}
	}
}

// party is one of the two.
type party struct {
	rdb    *redis.Client
	lock   library.Handle
	script library.Handle // of an uncontended key
}

func (p party) obey(ctx context.Context, order string) (a answer, err error) {
	before := time.Now()
	switch order {
	case lock:
		err = p.lock.Lock(ctx)
		a.At = history.Now()
	case unlock:
		a.At = history.Now()
		err = p.lock.Unlock()
	case ping:
		err = p.rdb.Ping(ctx).Err()
		a.Took = time.Since(before)
	case script:
		if err = p.script.Lock(ctx); err == nil {
			err = p.script.Unlock()
		}
		a.Took = time.Since(before) / 2
	}
	return a, err
}
