// Package redislock has redislock's API over Anteroom. retry.go is redislock's own.
package redislock

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	anteroom "github.com/anteroom/anteroom/sync"
)

var (
	ErrNotObtained = errors.New("redislock: not obtained")
	ErrLockNotHeld = errors.New("redislock: lock not held")
)

// RedisClient is what Anteroom and redislock need of a client.
type RedisClient interface {
	anteroom.Redis
	redis.Scripter
}

// scripter sends scripts as redislock does.
type scripter struct{ RedisClient }

func (s scripter) Process(ctx context.Context, cmd redis.Cmder) error {
	args := cmd.Args()
	if cmd.Name() != "evalsha" {
		return s.RedisClient.Process(ctx, cmd)
	}
	keys := make([]string, args[2].(int))
	for i := range keys {
		keys[i] = args[3+i].(string)
	}
	answer, err := s.EvalSha(ctx, args[1].(string), keys, args[3+len(keys):]...).Result()
	cmd.(interface{ SetVal(any) }).SetVal(answer)
	cmd.SetErr(err)
	return err
}

var (
	mu       sync.Mutex
	managers = map[RedisClient]*anteroom.Manager{} // one for each client, since New is called for each lock; guarded by mu
)

type Client struct{ m *anteroom.Manager }

func New(client RedisClient) *Client {
	mu.Lock()
	defer mu.Unlock()
	m := managers[client]
	if m == nil {
		var err error
		if m, err = anteroom.NewManager(scripter{client}, anteroom.Config{
			Logger: slog.New(slog.DiscardHandler), Defaults: anteroom.LockConfig{StringHolders: true},
		}); err != nil {
			panic(err)
		}
		managers[client] = m
	}
	return &Client{m}
}

type Options struct {
	RetryStrategy   RetryStrategy
	Metadata, Token string
}

// lease is the lease of a ttl: Anteroom's shortest is longer than redislock's.
func lease(ttl time.Duration) time.Duration { return max(ttl, 100*time.Millisecond) }

// repeat calls try while again says so, the strategy has a pause and ctx has not ended, for ttl where ctx has no deadline.
func repeat(ctx context.Context, ttl time.Duration, opt *Options, again func(error) bool, try func(context.Context) error) error {
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, ttl)
		defer cancel()
	}
	for {
		err := try(ctx)
		if err == nil || !again(err) {
			return err
		}
		pause := time.Duration(0)
		if s := cmp.Or(opt, &Options{}).RetryStrategy; s != nil {
			pause = s.NextBackoff()
		}
		if pause < 1 {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(pause):
		}
	}
}

type Lock struct {
	*Client
	keys            []string
	token, metadata string
	holds           []*anteroom.Hold
}

func Obtain(ctx context.Context, client RedisClient, key string, ttl time.Duration, opt *Options) (*Lock, error) {
	return New(client).Obtain(ctx, key, ttl, opt)
}

func ObtainMulti(ctx context.Context, client RedisClient, keys []string, ttl time.Duration, opt *Options) (*Lock, error) {
	return New(client).ObtainMulti(ctx, keys, ttl, opt)
}

func (c *Client) Obtain(ctx context.Context, key string, ttl time.Duration, opt *Options) (*Lock, error) {
	return c.ObtainMulti(ctx, []string{key}, ttl, opt)
}

func (c *Client) ObtainMulti(ctx context.Context, keys []string, ttl time.Duration, opt *Options) (*Lock, error) {
	o := cmp.Or(opt, &Options{})
	l := &Lock{Client: c, keys: keys, token: cmp.Or(o.Token, rand.Text()[:22]), metadata: o.Metadata}
	err := repeat(ctx, ttl, o, func(err error) bool { return errors.Is(err, ErrNotObtained) }, func(ctx context.Context) error {
		for _, key := range keys {
			options := []anteroom.AcquireOption{anteroom.Lease(lease(ttl))}
			if o.Metadata != "" {
				options = append(options, anteroom.Note(o.Metadata))
			}
			hold, err := c.m.Mutex(key).TryAcquire(ctx, options...)
			if err == nil {
				l.holds = append(l.holds, hold)
				continue
			}
			_ = l.Release(context.WithoutCancel(ctx))
			l.holds = nil
			if errors.Is(err, anteroom.ErrNotAcquired) || ctx.Err() != nil {
				return ErrNotObtained
			}
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (l *Lock) Key() string      { return l.keys[0] }
func (l *Lock) Keys() []string   { return l.keys }
func (l *Lock) Token() string    { return l.token }
func (l *Lock) Metadata() string { return l.metadata }

// TTL asks Redis: a hold's own TTL is less by its margin.
func (l *Lock) TTL(ctx context.Context) (ttl time.Duration, err error) {
	if l == nil {
		return 0, ErrLockNotHeld
	}
	for i, hold := range l.holds {
		info, err := l.m.Inspect(ctx, l.keys[i])
		if err != nil || !hold.Held() {
			return 0, err
		}
		if i == 0 || info.TTL < ttl {
			ttl = info.TTL
		}
	}
	return ttl, nil
}

func (l *Lock) Refresh(ctx context.Context, ttl time.Duration, opt *Options) error {
	if l == nil {
		return ErrNotObtained
	}
	return repeat(ctx, ttl, opt, func(err error) bool { return !errors.Is(err, ErrNotObtained) }, func(ctx context.Context) error {
		for i := range l.holds {
			if err := l.refresh(ctx, i, lease(ttl)); errors.Is(err, anteroom.ErrLost) || errors.Is(err, anteroom.ErrNotHeld) {
				return ErrNotObtained
			} else if err != nil {
				return err
			}
		}
		return nil
	})
}

// refresh extends a hold. Since that shortens no lease, a longer one is left to a ticket, and taken up anew.
func (l *Lock) refresh(ctx context.Context, i int, lease time.Duration) error {
	hold := l.holds[i]
	if err := hold.Extend(ctx, lease); err != nil || hold.TTL() <= lease {
		return err
	}
	ticket, err := hold.Detach(ctx, lease)
	if err != nil {
		return err
	}
	hold, err = l.m.Mutex(l.keys[i]).Resume(ctx, ticket, anteroom.Lease(lease))
	if err == nil {
		l.holds[i] = hold
	}
	return err
}

func (l *Lock) Release(ctx context.Context) (err error) {
	if l == nil {
		return ErrLockNotHeld
	}
	for _, hold := range l.holds {
		err = errors.Join(err, hold.Release(ctx))
	}
	if errors.Is(err, anteroom.ErrLost) || errors.Is(err, anteroom.ErrNotHeld) {
		return ErrLockNotHeld
	}
	return err
}
