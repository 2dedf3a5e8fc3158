package fence_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/fence"
	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/pace"
	anteroom "github.com/anteroom/anteroom/sync"
)

const holderRole = "holder"

// What the test and the process of holders say to each other.
type (
	plan struct {
		Redis    string
		Database *database // nil: the resource is in Redis
	}
	order struct {
		Do   string // acquire, write, release
		Keys []string
	}
	reply struct {
		Tokens  []int64 // of acquire, in the order of the keys
		Refused int     // of write: how many guarded writes were ErrStale
	}
)

// lease of the holders. No verdict depends on it: a holder that loses its lock before it is stopped has lost it, too.
const lease = time.Second

// write writes a token to a key in the table "guarded" and in the table "control". It returns the error of the first.
type write func(ctx context.Context, key string, token int64) (guarded, control error)

// holder is a process that holds many locks, and writes under each whatever has become of it.
func holder(ctx context.Context, l *child.Link, text json.RawMessage) error {
	var p plan
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	m, err := anteroom.Open(ctx, p.Redis, anteroom.Config{Defaults: anteroom.LockConfig{Fencing: true, LeaseTime: lease}})
	if err != nil {
		return err
	}
	defer m.CloseWithin(pace.Hang)
	writes, stop, err := p.resource()
	if err != nil {
		return err
	}
	defer stop()
	held := map[string]*anteroom.Hold{}
	for {
		var o order
		if err := l.Receive(&o); err != nil {
			return nil // the test ends
		}
		var r reply
		switch o.Do {
		case "acquire":
			r, err = acquire(ctx, m, o.Keys, held)
		case "write":
			r, err = writeAll(ctx, writes, o.Keys, held)
		case "release":
			for _, key := range o.Keys {
				_ = held[key].Release(ctx) // most of one process are lost
				delete(held, key)
			}
		}
		if err := errors.Join(err, l.Send(r)); err != nil {
			return err
		}
	}
}

func acquire(ctx context.Context, m *anteroom.Manager, keys []string, held map[string]*anteroom.Hold) (reply, error) {
	all, errs := make([]*anteroom.Hold, len(keys)), make([]error, len(keys))
	each(keys, func(i int) { all[i], errs[i] = m.Mutex(keys[i]).Acquire(ctx, anteroom.Wait(pace.Hang)) })
	var r reply
	for i, hold := range all {
		token, _ := hold.Token()
		r.Tokens, held[keys[i]] = append(r.Tokens, token), hold
	}
	return r, errors.Join(errs...)
}

func writeAll(ctx context.Context, w write, keys []string, held map[string]*anteroom.Hold) (r reply, err error) {
	guarded, control := make([]error, len(keys)), make([]error, len(keys))
	each(keys, func(i int) {
		token, _ := held[keys[i]].Token()
		guarded[i], control[i] = w(ctx, keys[i], token)
	})
	for _, e := range guarded {
		if errors.Is(e, fence.ErrStale) {
			r.Refused++
		} else {
			err = errors.Join(err, e)
		}
	}
	return r, errors.Join(err, errors.Join(control...))
}

func each(keys []string, f func(i int)) {
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// resource connects to where the writes go.
func (p plan) resource() (write, func() error, error) {
	if p.Database == nil {
		options, err := redis.ParseURL(p.Redis)
		if err != nil {
			return nil, nil, err
		}
		rdb := redis.NewClient(options)
		g := fence.Redis{Client: rdb}
		return func(ctx context.Context, key string, token int64) (guarded, control error) {
			guarded = g.Set(ctx, "guarded:"+key, token, time.Hour, token)
			return guarded, rdb.Set(ctx, "control:"+key, token, time.Hour).Err()
		}, rdb.Close, nil
	}
	db, err := sql.Open(p.Database.Driver, p.Database.DSN)
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(4)
	update := func(table, key string, token int64) string {
		return fmt.Sprintf("UPDATE %s SET writer = %d WHERE resource = '%s'", table, token, key)
	}
	return func(ctx context.Context, key string, token int64) (guarded, control error) {
		guarded = func() error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if err := p.Database.Guard.Check(ctx, tx, key, token); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, update("guarded", key, token)); err != nil {
				return err
			}
			return tx.Commit()
		}()
		_, control = db.ExecContext(ctx, update("control", key, token))
		return guarded, control
	}, db.Close, nil
}
