package allpaths

import (
	"context"
	"errors"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// watchdogPaths are changes by a stranger to a held lock that only the watchdog sees.
var watchdogPaths = []path{
	{
		"another field",
		[]moved{{"watchdog_findings_total", "foreign_field"}, {"recoveries_total", "tell", "told"}, {"events_total", "alert"}, {"events_total", "alert_cleared"}},
		func(ctx context.Context, s *scene) error {
			return s.tampered(ctx, anteroom.RecoverDefault, "foreign_field", func(string) error {
				return s.run.admin.HSet(ctx, s.key, "stranger", 1).Err()
			}, func(string) error { return s.run.admin.HDel(ctx, s.key, "stranger").Err() })
		},
	},
	{"another count", []moved{{"watchdog_findings_total", "wrong_count"}}, func(ctx context.Context, s *scene) error {
		return s.tampered(ctx, anteroom.RecoverDefault, "wrong_count", func(field string) error {
			return s.run.admin.HSet(ctx, s.key, field, 2).Err()
		}, func(field string) error { return s.run.admin.HSet(ctx, s.key, field, 1).Err() })
	}},
	{"a key that somebody keeps from expiring", []moved{{"watchdog_findings_total", "ttl_missing"}, {"recoveries_total", "hurry_renewal", "gave_up"}}, persisted},
	{"a key that lives too long", []moved{{"watchdog_findings_total", "ttl_too_long"}}, func(ctx context.Context, s *scene) error {
		return s.tampered(ctx, anteroom.RecoverNotify, "ttl_too_long", func(string) error {
			return s.run.admin.PExpire(ctx, s.key, time.Hour).Err()
		}, nil)
	}},
}

// persisted removes the key's time to live as often as the watchdog restores it, until the watchdog gives up.
func persisted(ctx context.Context, s *scene) error {
	h, err := s.hold(ctx, s.config())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := s.run.admin.Persist(ctx, s.key).Err(); err != nil && ctx.Err() == nil {
				ended <- err
				return
			}
			pause(ctx, 5*time.Millisecond)
		}
		ended <- nil
	}()
	err = s.await(ctx, moved{"recoveries_total", "hurry_renewal", "gave_up"})
	cancel()
	return errors.Join(err, <-ended, h.Release(context.WithoutCancel(ctx)))
}

// tampered changes a held lock, waits until that is found, and undoes it.
func (s *scene) tampered(ctx context.Context, r anteroom.Recovery, finding string, do, undo func(field string) error) error {
	cfg := s.config()
	cfg.Recovery = r
	h, err := s.hold(ctx, cfg)
	if err != nil {
		return err
	}
	info, err := s.manager.Inspect(ctx, s.key)
	if err != nil {
		return err
	}
	if len(info.Holders) != 1 {
		return errors.New("the lock has not one holder")
	}
	field := info.Holders[0].Field
	if err := do(field); err != nil {
		return err
	}
	if err := s.await(ctx, moved{"watchdog_findings_total", finding}); err != nil {
		return err
	}
	if undo != nil {
		if err := undo(field); err != nil {
			return err
		}
	}
	return h.Release(ctx)
}
