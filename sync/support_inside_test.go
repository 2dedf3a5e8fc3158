package anteroom

import (
	"log/slog"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/anteroom/anteroom/internal/faultnet"
)

func insideManager(t *testing.T, cfg Config) *Manager {
	t.Helper()
	m, _ := insideServer(t, cfg)
	return m
}

func insideServer(t testing.TB, cfg Config) (*Manager, *miniredis.Miniredis) {
	t.Helper()
	s := miniredis.NewMiniRedis()
	gate := faultnet.NewGate(s)
	t.Cleanup(gate.Close)
	rdb := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:6379", DisableIdentity: true, ReadTimeout: 5 * time.Second,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		Dialer:                   gate.Dial,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	m, err := NewManager(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m, s
}
