package redsync

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4/redis"

	anteroom "github.com/anteroom/anteroom/sync"
)

type DelayFunc func(tries int) time.Duration

// Mutex has redsync's API over Anteroom, with a lock at each pool, which must be of a go-redis 9 client. The value is a
// hold's note. The rest of the package is redsync's own.
type Mutex struct {
	name          string
	expiry        time.Duration
	tries         int
	delayFunc     DelayFunc
	driftFactor   float64 // not used: Anteroom has a margin
	timeoutFactor float64 // not used: Anteroom has a CommandTimeout
	quorum        int
	genValueFunc  func() (string, error)
	value         string
	until         time.Time
	shuffle       bool
	failFast      bool // not used
	setNXOnExtend bool
	pools         []redis.Pool

	holds []*anteroom.Hold // by pool; nil: none there
}

func genValue() (string, error) { return rand.Text(), nil }

func (m *Mutex) Name() string                               { return m.name }
func (m *Mutex) Value() string                              { return m.value }
func (m *Mutex) Until() time.Time                           { return m.until }
func (m *Mutex) Lock() error                                { return m.LockContext(context.Background()) }
func (m *Mutex) LockContext(ctx context.Context) error      { return m.lock(ctx, m.tries) }
func (m *Mutex) TryLock() error                             { return m.TryLockContext(context.Background()) }
func (m *Mutex) TryLockContext(ctx context.Context) error   { return m.lock(ctx, 1) }
func (m *Mutex) Unlock() (bool, error)                      { return m.UnlockContext(context.Background()) }
func (m *Mutex) Extend() (bool, error)                      { return m.ExtendContext(context.Background()) }
func (m *Mutex) Valid() (bool, error)                       { return time.Now().Before(m.deadline()), nil }
func (m *Mutex) ValidContext(context.Context) (bool, error) { return m.Valid() }

// each calls f for each pool, and returns for how many it returned nil.
func (m *Mutex) each(f func(node int, am *anteroom.Manager, mu *anteroom.Mutex) error) (n int, err error) {
	var all sync.WaitGroup
	errs := make([]error, len(m.pools))
	for i, pool := range m.pools {
		all.Go(func() {
			am := pool.(interface{ Manager() *anteroom.Manager }).Manager()
			mu, err := am.NewMutex(anteroom.LockConfig{Key: m.name, LeaseTime: m.expiry, RenewalTime: -1, StringHolders: true})
			if err == nil {
				err = f(i, am, mu)
			}
			switch {
			case errors.Is(err, anteroom.ErrNotAcquired):
				err = &ErrNodeTaken{Node: i}
			case errors.Is(err, anteroom.ErrLost), errors.Is(err, anteroom.ErrNotHeld):
				err = ErrLockAlreadyExpired
			case err != nil:
				err = &RedisError{Node: i, Err: err}
			}
			errs[i] = err
		})
	}
	all.Wait()
	var taken []int
	for i, err := range errs {
		if err == nil {
			n++
		} else if _, is := errors.AsType[*ErrNodeTaken](err); is {
			taken = append(taken, i)
		}
	}
	if len(taken) >= m.quorum {
		return n, &ErrTaken{Nodes: taken}
	}
	return n, errors.Join(errs...)
}

func (m *Mutex) lock(ctx context.Context, tries int) error {
	value, err := m.genValueFunc()
	if err != nil {
		return err
	}
	for i := range tries {
		if i > 0 {
			select {
			case <-ctx.Done():
				return ErrFailed
			case <-time.After(m.delayFunc(i)):
			}
		}
		holds := make([]*anteroom.Hold, len(m.pools))
		n, err := m.each(func(node int, _ *anteroom.Manager, mu *anteroom.Mutex) (err error) {
			holds[node], err = mu.TryAcquire(ctx, anteroom.Note(value))
			return err
		})
		attempt := *m
		attempt.holds, attempt.value = holds, value
		if attempt.until = attempt.deadline(); n >= m.quorum && time.Now().Before(attempt.until) {
			*m = attempt
			return nil
		}
		_, _ = attempt.UnlockContext(ctx)
		if i == tries-1 && err != nil {
			return err
		}
	}
	return ErrFailed
}

// deadline is until when a quorum is held, as far as this Mutex has locked it.
func (m *Mutex) deadline() time.Time {
	var all []time.Time
	for _, hold := range m.holds {
		if hold.Held() {
			all = append(all, hold.Deadline())
		}
	}
	if len(all) < m.quorum {
		return time.Time{}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all[len(all)-m.quorum]
}

// UnlockContext releases what this Mutex has locked, and with WithValue what has that note.
func (m *Mutex) UnlockContext(ctx context.Context) (bool, error) {
	n, err := m.each(func(node int, am *anteroom.Manager, mu *anteroom.Mutex) error {
		if m.holds != nil {
			return m.holds[node].Release(ctx)
		}
		info, err := am.Inspect(ctx, m.name)
		if err == nil && !info.Locked {
			err = anteroom.ErrNotHeld
		} else if err == nil && (len(info.Holders) != 1 || info.Holders[0].Note != m.value) {
			err = anteroom.ErrNotAcquired
		}
		if err == nil {
			_, err = am.ForceRelease(ctx, m.name)
		}
		return err
	})
	if n < m.quorum {
		return false, err
	}
	return true, nil
}

func (m *Mutex) ExtendContext(ctx context.Context) (bool, error) {
	n, err := m.each(func(node int, _ *anteroom.Manager, mu *anteroom.Mutex) error {
		err := m.holds[node].Extend(ctx, m.expiry)
		if errors.Is(err, anteroom.ErrLost) && m.setNXOnExtend {
			m.holds[node], err = mu.TryAcquire(ctx, anteroom.Note(m.value))
		}
		return err
	})
	if n < m.quorum {
		return false, err
	}
	m.until = m.deadline()
	return true, nil
}
