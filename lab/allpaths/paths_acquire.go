package allpaths

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// acquirePaths are ways to acquire a lock, or to fail.
var acquirePaths = []path{
	{"re-entry", []moved{{"acquire_attempts_total", "acquired", "reentry"}, {"releases_total", "nested"}}, func(_ context.Context, s *scene) error {
		mu := s.lock(s.config())
		mu.Lock()
		defer mu.Unlock()
		pass(mu)
		return nil
	}},
	{
		"somebody else has it",
		[]moved{{"acquire_attempts_total", "refused"}, {"acquire_attempts_total", "cancelled"}},
		func(ctx context.Context, s *scene) error {
			h, err := s.other(ctx)
			if err != nil {
				return err
			}
			if _, err := s.lock(s.config()).TryAcquire(ctx); !errors.Is(err, anteroom.ErrNotAcquired) {
				return errors.New("a held lock was not refused")
			}
			if _, err := s.hold(ctx, s.config(), anteroom.Wait(100*time.Millisecond)); !errors.Is(err, anteroom.ErrNotAcquired) {
				return fmt.Errorf("waiting for a held lock did not end without it: %w", err)
			}
			return h.Release(ctx)
		},
	},
	{"hand-offs", []moved{{"acquire_attempts_total", "acquired", "handoff"}, {"releases_total", "handed_off"}}, handOff},
	{"a turn that lets another process in", []moved{{"redis_commands_total", "turn"}}, func(ctx context.Context, s *scene) error {
		cfg := s.config()
		cfg.MaxHandoffs = 1
		h, err := s.hold(ctx, cfg)
		if err != nil {
			return err
		}
		const callers = 3
		done := make(chan error)
		use := func(p *process) {
			done <- p.lock(cfg).Do(ctx, func(ctx context.Context) error {
				pause(ctx, 5*time.Millisecond)
				return nil
			})
		}
		go use(s.run.processes[1])
		err = s.standing(ctx, s.run.processes[1].manager)
		for range callers {
			go use(s.process)
		}
		err = errors.Join(err, s.waiting(ctx), h.Release(ctx))
		for range callers + 1 {
			err = errors.Join(err, <-done)
		}
		return err
	}},
	{"a key of another type", []moved{{"acquire_attempts_total", "failed"}, {"events_total", "misconfigured"}}, func(ctx context.Context, s *scene) error {
		if err := s.run.admin.Set(ctx, s.key, "no lock", time.Minute).Err(); err != nil {
			return err
		}
		if _, err := s.hold(ctx, s.config()); !errors.Is(err, anteroom.ErrConfig) {
			return errors.New("a string was taken for a lock")
		}
		return nil
	}},
	{"too few replicas", []moved{{"acquire_attempts_total", "refused"}, {"redis_commands_total", "extend", "refused"}}, func(ctx context.Context, s *scene) error {
		cfg := s.config()
		cfg.Replicas, cfg.ReplicaTimeout = 1, 10*time.Millisecond
		if _, err := s.lock(cfg).TryAcquire(ctx); !errors.Is(err, anteroom.ErrNotAcquired) {
			return fmt.Errorf("a lock that no replica has was acquired: %w", err)
		}
		return nil
	}},
	{"a goroutine that waits for itself", []moved{{"events_total", "self_deadlock"}}, func(ctx context.Context, s *scene) error {
		mu := s.lock(s.config())
		holds, ended := make(chan *anteroom.Hold, 1), make(chan error, 1)
		go func() {
			h, err := mu.Acquire(ctx)
			if holds <- h; err == nil {
				pass(mu)
			}
			ended <- err
		}()
		h := <-holds
		if h == nil {
			return <-ended
		}
		err := s.await(ctx, moved{"events_total", "self_deadlock"})
		return errors.Join(err, h.Release(ctx), <-ended)
	}},
	{"a fixed lease is made longer", []moved{{"redis_commands_total", "extend", "ok"}}, func(ctx context.Context, s *scene) error {
		h, err := s.hold(ctx, s.config(), anteroom.Lease(5*time.Second))
		if err != nil {
			return err
		}
		return errors.Join(h.Extend(ctx, 10*time.Second), h.Release(ctx))
	}},
	{"an operator's question", []moved{{"redis_commands_total", "inspect"}}, func(ctx context.Context, s *scene) error {
		_, err := s.manager.Inspect(ctx, s.key)
		return err
	}},
	{"a user without channels", []moved{{"events_total", "warning"}}, func(ctx context.Context, s *scene) error {
		m, err := s.withoutChannels(ctx)
		if err != nil {
			return err
		}
		h, err := m.Mutex(s.key).Acquire(ctx)
		if err != nil {
			return err
		}
		return h.Release(ctx)
	}},
}

// withoutChannels returns a Manager of the process that may not use any channel.
func (s *scene) withoutChannels(ctx context.Context) (*anteroom.Manager, error) {
	if err := s.run.admin.Do(ctx, "acl", "setuser", limited, "on", ">"+limited, "~*", "resetchannels", "+@all").Err(); err != nil {
		return nil, err
	}
	return s.newManager(s.run.server.Client(s.run.tb, withUser)), nil
}

// pass locks and unlocks.
func pass(mu *anteroom.Mutex) {
	mu.Lock()
	defer mu.Unlock()
}

// handOff makes two goroutines of the process contend for a lock.
func handOff(ctx context.Context, s *scene) error {
	mu := s.lock(s.config())
	h, err := mu.Acquire(ctx)
	if err != nil {
		return err
	}
	next := make(chan error, 1)
	go func() {
		second, err := mu.Acquire(ctx)
		if err == nil {
			err = second.Release(ctx)
		}
		next <- err
	}()
	if err := s.waiting(ctx); err != nil {
		return err
	}
	return errors.Join(h.Release(ctx), <-next)
}

// waiting waits until the path's lock has a waiter in the first process.
func (s *scene) waiting(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !slices.ContainsFunc(s.manager.Snapshot(), func(st observe.State) bool { return st.Key == s.key && len(st.Waiters) > 0 }) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
