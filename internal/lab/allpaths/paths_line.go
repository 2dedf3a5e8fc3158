package allpaths

import (
	"context"
	"errors"
	"slices"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// linePaths are ways to be called in line.
var linePaths = []path{
	{"a call", []moved{{"calls_total", "entered"}, {"redis_commands_total", "confirm", "ok"}}, func(ctx context.Context, s *scene) error {
		return s.called(ctx, s.manager, s.config(), func() error { return s.await(ctx, moved{"redis_commands_total", "confirm", "ok"}) })
	}},
	{"a call that has to be asked about", []moved{{"calls_total", "asked"}}, func(ctx context.Context, s *scene) error {
		cfg := s.config()
		cfg.MinHold = time.Millisecond
		return s.called(ctx, s.manager, cfg, nil)
	}},
	{"a call that nobody hears", []moved{{"calls_total", "found"}}, func(ctx context.Context, s *scene) error {
		m, err := s.withoutChannels(ctx)
		if err != nil {
			return err
		}
		return s.called(ctx, m, s.config(), nil)
	}},
	{"a dead place", []moved{{"dead_places_total"}}, func(ctx context.Context, s *scene) error {
		return s.called(ctx, s.manager, s.config(), func() error {
			line := "anteroom:line:{" + s.key + "}"
			return s.run.admin.HSet(ctx, line, "head", 0, "p0", "dead:1700000000000001 1 1000 0 0 0", "cdead", 0).Err()
		})
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
	for !slices.ContainsFunc(m.Snapshot(), func(st anteroom.State) bool { return st.Key == s.key && st.Standing }) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
