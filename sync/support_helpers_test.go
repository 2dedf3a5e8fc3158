package anteroom_test

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

var bg = context.Background()

// bubble runs f in virtual time with an embedded server.
func bubble(t *testing.T, f func(t *testing.T, s *embedded)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(2 * time.Second) }) // a dial that the end has cut off is repeated for a while
		s := newEmbedded(t)
		f(t, s)
	})
}

// embedded is a miniredis reached over in-memory connections, with faults.
type embedded struct {
	*miniredis.Miniredis
	t    testing.TB
	gate *faultnet.Gate
	net  *faultnet.Network // of all clients
}

func newEmbedded(t testing.TB) *embedded {
	m := miniredis.NewMiniRedis() // never started: connections are made by Dial
	m.ClockTTL(true)
	s := &embedded{Miniredis: m, t: t, gate: faultnet.NewGate(m)}
	t.Cleanup(s.gate.Close)
	s.net = s.network()
	return s
}

// network returns another network to s, which has its own faults.
func (s *embedded) network() *faultnet.Network { return faultnet.New(s.gate.Dial) }

// client returns a go-redis client over in-memory connections, closed with the test.
func (s *embedded) client() *redis.Client { return s.clientOver(s.net) }

// clientOver does the same over a network of its own, which has its own faults.
func (s *embedded) clientOver(n *faultnet.Network) *redis.Client { return s.clientDialing(n.Dial) }

// overNetwork makes a real server's client use n.
func overNetwork(n *faultnet.Network) func(*redis.Options) {
	return func(o *redis.Options) { o.Dialer = n.Dial }
}

// clientDialing is clientOver with any dialer.
func (s *embedded) clientDialing(dial faultnet.DialFunc) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr:                     "127.0.0.1:6379",
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		ReadTimeout:              5 * time.Second,
		Dialer:                   dial,
	})
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// recorder keeps the events of a Manager.
type recorder struct {
	mu     sync.Mutex
	events []observe.Event
}

func (r *recorder) add(e observe.Event) {
	r.mu.Lock()
	r.events = append(r.events, e)
	r.mu.Unlock()
}

func (r *recorder) of(kind observe.EventKind) []observe.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []observe.Event
	for _, e := range r.events {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

// manager returns a Manager on rdb that is closed with the test, and its events.
func manager(t testing.TB, rdb anteroom.Redis, cfg anteroom.Config) (*anteroom.Manager, *recorder) {
	t.Helper()
	rec := &recorder{}
	if cfg.OnEvent == nil {
		cfg.OnEvent = rec.add
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	m, err := anteroom.NewManager(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(bg, 5*time.Second)
		defer cancel()
		_ = m.Close(ctx)
	})
	return m, rec
}

// mutex returns a lock of m with cfg.
func mutex(t testing.TB, m *anteroom.Manager, cfg anteroom.LockConfig) *anteroom.Mutex {
	t.Helper()
	mu, err := m.NewMutex(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return mu
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pass locks and unlocks mu.
func pass(mu sync.Locker) {
	mu.Lock()
	defer mu.Unlock()
}

// acquire acquires mu, or ends the test.
func acquire(t testing.TB, mu *anteroom.Mutex, opts ...anteroom.AcquireOption) *anteroom.Hold {
	t.Helper()
	return must[*anteroom.Hold](t)(mu.Acquire(bg, opts...))
}

// tokenOf returns the token of a hold, 0 where there is none.
func tokenOf(h *anteroom.Hold) int64 {
	token, _ := h.Token()
	return token
}

// keys is how many keys TestSync_I8_KeysUsedOnceLeaveNothing uses: ANTEROOM_KEYS, or a
// number that the race detector gets through in seconds.
func keys(t testing.TB) int {
	text := os.Getenv("ANTEROOM_KEYS")
	if text == "" {
		return 5000
	}
	n, err := strconv.Atoi(text)
	ok(t, err)
	return n
}
