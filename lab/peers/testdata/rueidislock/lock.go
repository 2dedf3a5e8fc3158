// Package rueidislock has rueidislock's API over Anteroom: one key for a lock, and no client-side caching.
package rueidislock

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	anteroom "github.com/anteroom/anteroom/sync"
)

var (
	ErrNotLocked    = errors.New("not locked")
	ErrLockerClosed = errors.New("locker closed")
)

type LockerOption struct {
	ClientBuilder  func(option rueidis.ClientOption) (rueidis.Client, error)
	KeyPrefix      string
	ClientOption   rueidis.ClientOption
	KeyValidity    time.Duration
	ExtendInterval time.Duration
	TryNextAfter   time.Duration
	KeyMajority    int32
	NoLoopTracking bool
	FallbackSETPX  bool
}

type Locker interface {
	WithContext(ctx context.Context, name string) (context.Context, context.CancelFunc, error)
	TryWithContext(ctx context.Context, name string) (context.Context, context.CancelFunc, error)
	ForceWithContext(ctx context.Context, name string) (context.Context, context.CancelFunc, error)
	Client() rueidis.Client
	Close()
}

// locker has the fields that rueidislock's has and its tests set. What says "not used" has no meaning here.
type locker struct {
	client                      rueidis.Client
	rdb                         *redis.Client
	m                           *anteroom.Manager
	prefix                      string
	validity, interval, timeout time.Duration    // timeout: not used
	majority, totalcnt          int32            // not used
	forcing, mu                 sync.RWMutex     // forcing is read-locked while a lock is forced; mu: not used
	gates                       map[string]*gate // not used
}

// gate is rueidislock's queue for a name.
type gate struct {
	ch chan struct{}
	w  int
}

func NewLocker(o LockerOption) (Locker, error) {
	if o.ClientBuilder == nil {
		o.ClientBuilder = rueidis.NewClient
	}
	client, err := o.ClientBuilder(o.ClientOption)
	if err != nil {
		return nil, err
	}
	l := &locker{
		client: client, prefix: cmp.Or(o.KeyPrefix, "rueidislock"), validity: cmp.Or(o.KeyValidity, 5*time.Second),
		timeout: cmp.Or(o.TryNextAfter, 20*time.Millisecond), majority: cmp.Or(o.KeyMajority, 2),
	}
	l.interval, l.totalcnt = cmp.Or(o.ExtendInterval, l.validity/2), 2*l.majority-1
	l.rdb = redis.NewClient(&redis.Options{
		Addr: o.ClientOption.InitAddress[0], Username: o.ClientOption.Username, Password: o.ClientOption.Password, DB: o.ClientOption.SelectDB,
	})
	l.m, err = anteroom.NewManager(l.rdb, anteroom.Config{Logger: slog.New(slog.DiscardHandler)})
	return l, err
}

func keyname(prefix, name string, i int32) string {
	return prefix + ":" + strconv.Itoa(int(i)) + ":" + name
}

// with acquires, and returns a context that ends with ctx and with the lock.
func (l *locker) with(ctx context.Context, name string, acquire func(*anteroom.Mutex, context.Context, ...anteroom.AcquireOption) (*anteroom.Hold, error)) (context.Context, context.CancelFunc, error) {
	mu, err := l.m.NewMutex(anteroom.LockConfig{
		Key: keyname(l.prefix, name, 0), LeaseTime: l.validity, RenewalTime: min(l.interval, l.validity/2), WatchdogPeriod: l.validity / 10,
	})
	if err != nil {
		return nil, nil, err
	}
	hold, err := acquire(mu, ctx)
	if err == nil && ctx.Err() != nil {
		err = errors.Join(ctx.Err(), hold.Release(ctx))
	}
	switch {
	case errors.Is(err, anteroom.ErrClosed):
		return nil, nil, ErrLockerClosed
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case errors.Is(err, anteroom.ErrNotAcquired):
		return nil, nil, errors.Join(ErrNotLocked, err)
	case err != nil:
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(hold.Context(), cancel)
	release := sync.OnceFunc(func() {
		cancel()
		_ = hold.Release(context.Background())
	})
	context.AfterFunc(ctx, release)
	return ctx, release, nil
}

func (l *locker) WithContext(ctx context.Context, name string) (context.Context, context.CancelFunc, error) {
	return l.with(ctx, name, (*anteroom.Mutex).Acquire)
}

func (l *locker) TryWithContext(ctx context.Context, name string) (context.Context, context.CancelFunc, error) {
	return l.with(ctx, name, (*anteroom.Mutex).TryAcquire)
}

func (l *locker) ForceWithContext(ctx context.Context, name string) (context.Context, context.CancelFunc, error) {
	l.forcing.RLock()
	defer l.forcing.RUnlock()
	return l.with(ctx, name, (*anteroom.Mutex).Seize)
}

func (l *locker) Client() rueidis.Client { return l.client }

// onInvalidations is called by a client with client-side caching, which there is none of here.
func (l *locker) onInvalidations([]rueidis.RedisMessage) {}

// Close ends what waits, and what is held at once. Who forces a lock comes first: its holder may be the one that closes.
func (l *locker) Close() {
	l.forcing.Lock()
	defer l.forcing.Unlock()
	_ = l.m.CloseWithin(time.Millisecond)
	_ = l.rdb.Close()
	l.client.Close()
}
