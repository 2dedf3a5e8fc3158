package allpaths

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
)

// networkPaths are faults between the process and Redis. They come last: the process needs some time to recover from
// them.
var networkPaths = []path{
	{"a subscription is reset", []moved{{"events_total", "subscription_down"}, {"events_total", "subscription_up"}}, func(ctx context.Context, s *scene) error {
		return s.subscribed(ctx, func() { s.net.Reset(faultnet.PubSub) })
	}},
	{"a call that nobody hears", []moved{{"calls_total", "found"}}, func(ctx context.Context, s *scene) error {
		return s.called(ctx, s.manager, s.config(), func() error {
			s.net.HalfOpen(faultnet.PubSub)
			return nil
		})
	}},
	{"a subscription hears nothing", []moved{{"watchdog_findings_total", "delivery_dead"}, {"recoveries_total", "reconnect"}}, func(ctx context.Context, s *scene) error {
		return s.subscribed(ctx, func() {
			// If the connection is just being re-established there is none to cut off.
			dead := moved{"watchdog_findings_total", "delivery_dead"}
			for range 4 {
				s.net.HalfOpen(faultnet.PubSub)
				if s.within(ctx, dead, s.before[dead.String()], 15*watchdogPeriod) == nil {
					return
				}
			}
		})
	}},
	{"a renewal is late", []moved{{"watchdog_findings_total", "renewal_late"}, {"recoveries_total", "hurry_renewal"}}, func(ctx context.Context, s *scene) error {
		h, err := s.hold(ctx, s.often())
		if err != nil {
			return err
		}
		s.net.HoldReplies() // for less than the command time limit
		err = s.await(ctx, moved{"watchdog_findings_total", "renewal_late"})
		s.net.Heal()
		return errors.Join(err, h.Release(ctx))
	}},
	{"the network swallows everything", []moved{
		{"acquire_attempts_total", "unknown"},
		{"releases_total", "unknown"},
		{"renewals_total", "failed"},
		{"watchdog_findings_total", "renewal_failing"},
		{"watchdog_findings_total", "redis_unreachable"},
		{"watchdog_findings_total", "recovery_failed"},
		{"watchdog_checks_total", "lock_status", "unknown"},
		{"recoveries_total", "reconnect", "not_helped"},
		{"events_total", "renewal_failing"},
		{"events_total", "release_failed"},
		{"events_total", "release_given_up"},
		{"events_total", "unavailable"},
		{"events_total", "available"},
	}, swallowed},
	{"connections are refused", []moved{{"acquire_attempts_total", "unavailable"}, {"lost_total", "deadline"}, {"releases_total", "unavailable"}, {"redis_commands_total", "ask", "failed"}}, refused},
}

// often is a lock that is renewed often and checked rarely.
func (s *scene) often() anteroom.LockConfig {
	cfg := s.config()
	cfg.RenewalTime = 100 * time.Millisecond
	return cfg
}

// short is a lock with a short lease.
func (s *scene) short() anteroom.LockConfig {
	cfg := s.config()
	cfg.LeaseTime, cfg.RenewalTime = time.Second, 100*time.Millisecond
	return cfg
}

// subscribed makes the process wait for a lock of another one, so that it subscribes, and then injects a fault into
// its subscription.
func (s *scene) subscribed(ctx context.Context, do func()) error {
	h, err := s.other(ctx)
	if err != nil {
		return err
	}
	got := make(chan error, 1)
	go func() {
		own, err := s.lock(s.config()).Acquire(ctx)
		if err == nil {
			err = own.Release(ctx)
		}
		got <- err
	}()
	err = errors.Join(s.waiting(ctx), s.above(ctx, moved{"subscriptions_up"}, 0))
	do()
	return errors.Join(err, h.Release(ctx), <-got)
}

// swallowed releases, acquires and keeps locks while nothing arrives.
func swallowed(ctx context.Context, s *scene) error {
	kept, err := s.hold(ctx, s.often())
	if err != nil {
		return err
	}
	short := s.short()
	short.Key = s.key + ":short"
	released, err := s.hold(ctx, short)
	if err != nil {
		return err
	}
	s.net.BlackHole()
	var wg sync.WaitGroup
	wg.Go(func() {
		limit, cancel := context.WithTimeout(ctx, 2*commandTimeout)
		defer cancel()
		_ = released.Release(limit) // unknown; its lease then expires
	})
	// Lock waits until the server is back, which the event available is about.
	patient := s.lock(anteroom.LockConfig{Key: s.key + ":patient", Name: "payments", LeaseTime: 10 * time.Second})
	wg.Go(func() { pass(patient) })
	impatient := s.short()
	impatient.Key = s.key + ":impatient"
	wg.Go(func() { _, _ = s.hold(ctx, impatient, anteroom.Wait(2*commandTimeout)) })
	for _, m := range []moved{
		{"acquire_attempts_total", "unknown"},
		{"releases_total", "unknown"},
		{"events_total", "release_given_up"},
		{"events_total", "renewal_failing"},
		{"events_total", "unavailable"},
		{"watchdog_findings_total", "redis_unreachable"},
		{"watchdog_findings_total", "recovery_failed"},
		{"recoveries_total", "reconnect", "not_helped"},
		{"watchdog_findings_total", "renewal_failing"},
		{"watchdog_checks_total", "lock_status", "unknown"},
		{"renewals_total", "failed"},
	} {
		err = errors.Join(err, s.await(ctx, m))
	}
	s.net.CloseAll() // what was swallowed stays lost
	s.net.Heal()
	wg.Wait()
	_ = kept.Release(ctx) // it may have been lost on a slow machine
	return err
}

// refused releases, acquires and loses locks while connections are refused.
func refused(ctx context.Context, s *scene) error {
	cfg := s.short() // what cannot be cleaned up ends with its lease
	h, err := s.hold(ctx, cfg)
	if err != nil {
		return err
	}
	cfg.Key = s.key + ":kept"
	kept, err := s.hold(ctx, cfg)
	if err != nil {
		return err
	}
	s.net.Refuse()
	s.net.CloseAll()
	limit, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	_ = h.Release(limit)
	cfg.Key = s.key + ":new"
	_, _ = s.hold(ctx, cfg, anteroom.Wait(commandTimeout))
	return errors.Join(
		s.await(ctx, moved{"acquire_attempts_total", "unavailable"}), s.await(ctx, moved{"releases_total", "unavailable"}),
		s.await(ctx, moved{"lost_total", "deadline"}), lost(ctx, kept),
	)
}
