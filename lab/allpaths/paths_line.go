package allpaths

import (
	"context"
	"errors"
	"slices"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// linePaths are ways to be called in line.
var linePaths = []path{
	{"a call", []moved{{"calls_total", "entered"}, {"redis_commands_total", "confirm", "ok"}}, func(ctx context.Context, s *scene) error {
		return s.called(ctx, s.manager, s.config(), func() error { return s.await(ctx, moved{"redis_commands_total", "confirm", "ok"}) })
	}},
	{"a place that is left", []moved{{"redis_commands_total", "leave", "ok"}}, func(ctx context.Context, s *scene) error {
		h, err := s.other(ctx)
		if err != nil {
			return err
		}
		waiting, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			_, err := s.lock(s.config()).Acquire(waiting)
			ended <- err
		}()
		err = s.standing(ctx, s.manager)
		cancel()
		if own := <-ended; !errors.Is(own, context.Canceled) {
			err = errors.Join(err, errors.New("a wait that was cancelled did not end so"))
		}
		return errors.Join(err, h.Release(ctx))
	}},
}

// called makes m wait in line for the path's key, which another process releases after then.
func (s *scene) called(ctx context.Context, m *anteroom.Manager, cfg anteroom.LockConfig, then func() error) error {
	h, err := s.other(ctx)
	if err != nil {
		return err
	}
	mu, err := m.NewMutex(cfg)
	if err != nil {
		return errors.Join(err, h.Release(ctx))
	}
	come := make(chan error, 1)
	go func() { come <- mu.Do(ctx, func(context.Context) error { return nil }) }()
	err = s.standing(ctx, m)
	if err == nil && then != nil {
		err = then()
	}
	return errors.Join(err, h.Release(ctx), <-come)
}

// standing waits until m stands in line for the path's key.
func (s *scene) standing(ctx context.Context, m *anteroom.Manager) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !slices.ContainsFunc(m.Snapshot(), func(st observe.State) bool { return st.Key == s.key && st.Standing }) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
