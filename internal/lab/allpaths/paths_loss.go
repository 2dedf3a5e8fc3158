package allpaths

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	anteroom "github.com/anteroom/anteroom/sync"
)

// limited is a Redis user, and its password, without permission for channels.
const limited = "limited"

func withUser(o *redis.Options) { o.Username, o.Password = limited, limited }

// lossPaths are ways to lose a lock.
var lossPaths = []path{
	{
		"deleted, found by the watchdog",
		[]moved{{"lost_total", "gone"}, {"watchdog_findings_total", "field_gone"}, {"recoveries_total", "lose", "helped"}, {"releases_total", "lost"}},
		func(ctx context.Context, s *scene) error { return s.deleted(ctx, s.config()) },
	},
	{
		"deleted, found by a renewal",
		[]moved{{"lost_total", "gone"}, {"renewals_total", "refused"}, {"redis_commands_total", "renew", "gone"}},
		func(ctx context.Context, s *scene) error {
			cfg := s.config()
			cfg.RenewalTime, cfg.WatchdogPeriod = 100*time.Millisecond, time.Hour
			return s.deleted(ctx, cfg)
		},
	},
	{"a fixed lease ends", []moved{{"lost_total", "fixed"}}, func(ctx context.Context, s *scene) error {
		h, err := s.hold(ctx, s.config(), anteroom.Lease(200*time.Millisecond))
		if err != nil {
			return err
		}
		return lost(ctx, h)
	}},
	{"released by force", []moved{{"lost_total", "forced"}, {"redis_commands_total", "force"}}, func(ctx context.Context, s *scene) error {
		h, err := s.hold(ctx, s.config())
		if err != nil {
			return err
		}
		if _, err := s.manager.ForceRelease(ctx, s.key); err != nil {
			return err
		}
		return lost(ctx, h)
	}},
	{"a lost lock is locked again and unlocked", []moved{{"events_total", "reentry_lost"}, {"events_total", "unlock_lost"}}, func(ctx context.Context, s *scene) error {
		mu := s.lock(s.config())
		mu.Lock()
		if _, err := s.manager.ForceRelease(ctx, s.key); err != nil {
			return err
		}
		for mu.Held() && ctx.Err() == nil {
			pause(ctx, 10*time.Millisecond)
		}
		pass(mu)
		mu.Unlock()
		return nil
	}},
	{"held for too long", []moved{{"lost_total", "watchdog"}, {"watchdog_findings_total", "over_max_hold"}, {"recoveries_total", "cancel"}}, func(ctx context.Context, s *scene) error {
		cfg := s.config()
		cfg.MaxHold, cfg.Recovery = 200*time.Millisecond, anteroom.RecoverRelease
		h, err := s.hold(ctx, cfg)
		if err != nil {
			return err
		}
		return lost(ctx, h)
	}},
	{"the Manager closes", []moved{{"lost_total", "closed"}}, func(ctx context.Context, s *scene) error {
		m := s.newManager(s.rdb)
		h, err := m.Mutex(s.key).Acquire(ctx)
		if err != nil {
			return err
		}
		over, cancel := context.WithCancel(ctx)
		cancel()
		_ = m.Close(over) // it reports that a lock was held
		return lost(ctx, h)
	}},
	{"the Manager waits for a holder", []moved{{"events_total", "closing"}}, func(ctx context.Context, s *scene) error {
		m := s.newManager(s.rdb)
		h, err := m.Mutex(s.key).Acquire(ctx)
		if err != nil {
			return err
		}
		closed := make(chan error, 1)
		go func() { closed <- m.Close(ctx) }()
		err = s.await(ctx, moved{"events_total", "closing"})
		return errors.Join(err, h.Release(ctx), <-closed)
	}},
	{
		"a goroutine ends without Unlock",
		[]moved{{"watchdog_findings_total", "holder_gone"}, {"recoveries_total", "stop_renewing"}},
		func(_ context.Context, s *scene) error { return s.forgotten(anteroom.RecoverDefault) },
	},
	{
		"the same, and the lock is deleted",
		[]moved{{"recoveries_total", "delete"}},
		func(_ context.Context, s *scene) error { return s.forgotten(anteroom.RecoverRelease) },
	},
	{"a Hold is dropped", []moved{{"watchdog_findings_total", "holder_unreachable"}, {"events_total", "abandoned"}}, func(ctx context.Context, s *scene) error {
		cfg := s.config()
		cfg.Recovery = anteroom.RecoverRelease
		if _, err := s.hold(ctx, cfg); err != nil {
			return err
		}
		return s.collecting(ctx, moved{"events_total", "abandoned"})
	}},
}

// deleted acquires a lock and makes a stranger delete it.
func (s *scene) deleted(ctx context.Context, cfg anteroom.LockConfig) error {
	h, err := s.hold(ctx, cfg)
	if err != nil {
		return err
	}
	if err := s.run.admin.Del(ctx, s.key).Err(); err != nil {
		return err
	}
	return lost(ctx, h)
}

// forgotten locks in a goroutine that ends. The watchdog looks at goroutines once a lease has passed, so the lease is
// short, and at most once in 30 s, so each path has a Manager of its own.
func (s *scene) forgotten(r anteroom.Recovery) error {
	cfg := s.config()
	cfg.Recovery, cfg.LeaseTime, cfg.RenewalTime = r, time.Second, 300*time.Millisecond
	mu, err := s.newManager(s.rdb).NewMutex(cfg)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	wg.Go(mu.Lock)
	wg.Wait()
	return nil
}

// collecting runs the garbage collector until m has moved: only that finds what is unreachable.
func (s *scene) collecting(ctx context.Context, m moved) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			runtime.GC()
			pause(ctx, 100*time.Millisecond)
		}
	})
	err := s.await(ctx, m)
	cancel()
	wg.Wait()
	return err
}
