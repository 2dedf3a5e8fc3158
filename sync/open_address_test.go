package anteroom_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// quiet is a configuration that logs nothing.
func quiet(cfg anteroom.Config) anteroom.Config {
	cfg.Logger = slog.New(slog.DiscardHandler)
	return cfg
}

// opened opens url, has a lock and closes. It returns what is at the key meanwhile, as
// reader sees it.
func opened(t *testing.T, url string, reader redis.UniversalClient) {
	t.Helper()
	var log bytes.Buffer
	cfg := anteroom.Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), Defaults: anteroom.LockConfig{Fencing: true}}
	m, err := anteroom.Open(bg, url, cfg)
	ok(t, err)
	ok(t, m.Ping(bg, "order:1"))
	h := acquire(t, m.Mutex("order:1"))
	if n := reader.Exists(bg, "order:1").Val(); n != 1 {
		t.Error("the lock is not where it should be")
	}
	ok(t, h.Release(bg))
	ok(t, m.Close(bg))
	if strings.Contains(log.String(), "redis client") {
		t.Errorf("the client of Open costs something: %s", &log)
	}
}

func TestOpen_OneServer(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	s := testredis.Start(t, "--requirepass", "pw/1", "--unixsocket", socket)
	two := s.Client(t, func(o *redis.Options) { o.Password, o.DB = "pw/1", 2 })
	opened(t, "redis://:pw%2F1@"+s.Addr()+"/2", two)
	opened(t, "unix://:pw%2F1@"+socket+"?db=2", two)
	// Immediately: a client that is only forgotten is closed by the garbage collector, some time.
	eventually(t, "nobody is connected any more but the test", func() bool { return clients(t, two) == 1 })
}

// clients is how many connections the server has.
func clients(t *testing.T, rdb *redis.Client) int {
	t.Helper()
	list, err := rdb.ClientList(bg).Result()
	ok(t, err)
	return strings.Count(list, "id=")
}

func TestOpen_Sentinel_Lab(t *testing.T) {
	t.Parallel()
	s := testredis.StartSentinel(t)
	opened(t, s.URL()+"/3", s.Client(t, func(o *redis.FailoverOptions) { o.DB = 3 }))
}

func TestOpen_Cluster_Lab(t *testing.T) {
	t.Parallel()
	c := testredis.StartCluster(t, 3, 0)
	opened(t, c.URL(), c.Client(t))
}

// TestOpen_TLS: with certificates of both sides, and what is reported if one is wrong.
func TestOpen_TLS(t *testing.T) {
	t.Parallel()
	authority, other := testredis.NewAuthority(t), testredis.NewAuthority(t)
	s := testredis.StartTLS(authority, true)
	ca, cert, key := authority.Files("client")
	_, otherCert, otherKey := other.Files("client")
	admin := s.Client(t, overTLS(authority.TLSConfig("admin")))
	url := "rediss://" + s.Addr()
	opened(t, url+"?ca_file="+ca+"&cert_file="+cert+"&key_file="+key, admin)
	for query, words := range map[string]string{
		"":               "certificate",
		"?ca_file=" + ca: "certificate",
		"?cert_file=" + cert + "&key_file=" + key:                              "certificate",
		"?ca_file=" + ca + "&cert_file=" + otherCert + "&key_file=" + otherKey: "TLS",
	} {
		m, err := anteroom.Open(bg, url+query, quiet(anteroom.Config{}))
		if m != nil || !errors.Is(err, anteroom.ErrUnavailable) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", query, err)
		}
	}
	_, err := anteroom.Open(bg, "redis://"+s.Addr(), quiet(anteroom.Config{}))
	if !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "the URL must begin with rediss") {
		t.Errorf("without TLS: %v", err)
	}
}

// TestOpen_ACertificateIsRenewed: the client shows the certificate that is in the file when
// it connects, not the one that was there when the program began.
func TestOpen_ACertificateIsRenewed(t *testing.T) {
	t.Parallel()
	authority, other := testredis.NewAuthority(t), testredis.NewAuthority(t)
	s := testredis.StartTLS(authority, true)
	ca, cert, key := authority.Files("client")
	m, err := anteroom.Open(bg, "rediss://"+s.Addr()+"?ca_file="+ca+"&cert_file="+cert+"&key_file="+key, quiet(anteroom.Config{}))
	ok(t, err)
	t.Cleanup(func() { ok(t, m.Close(bg)) })
	_, otherCert, otherKey := other.Files("client")
	replace(t, otherCert, cert)
	replace(t, otherKey, key)
	admin := s.Client(t, overTLS(authority.TLSConfig("admin")))
	ok(t, admin.ClientKillByFilter(bg, "type", "normal", "skipme", "yes").Err())
	eventually(t, "the new certificate, which the server does not trust, is shown", func() bool {
		for range 5 { // the connections that were killed fail but once each
			if !errors.Is(m.Ping(bg), anteroom.ErrUnavailable) {
				return false
			}
		}
		return true
	})
	_, good, goodKey := authority.Files("renewed")
	replace(t, good, cert)
	replace(t, goodKey, key)
	eventually(t, "the renewed one is shown", func() bool { return m.Ping(bg) == nil })
}

func replace(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	ok(t, err)
	ok(t, os.WriteFile(to, data, 0o600))
}

// TestOpen_SaysWhatIsWrong: immediately, whose fault it is, without a password.
func TestOpen_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t, "--requirepass", "hunter1")
	url := func(user string) string { return "redis://" + user + "@" + s.Addr() }
	ended, end := context.WithCancel(bg)
	end()
	for _, c := range []struct {
		ctx   context.Context
		url   string
		cfg   anteroom.Config
		err   error
		words string
	}{
		{bg, url(":hunter2"), anteroom.Config{}, anteroom.ErrConfig, "password"},
		{bg, url(""), anteroom.Config{}, anteroom.ErrConfig, "password"},
		{bg, "http://:hunter2@host", anteroom.Config{}, anteroom.ErrConfig, "must begin with"},
		{bg, "redis://:hunter2@host:port", anteroom.Config{}, anteroom.ErrConfig, "not a URL such as"},
		{bg, url(":hunter1"), anteroom.Config{MaxInFlight: -1}, anteroom.ErrConfig, "MaxInFlight"},
		{bg, url(":hunter1") + "/99", anteroom.Config{}, anteroom.ErrConfig, "DB index"},
		{bg, "redis://:hunter2@127.0.0.1:1", anteroom.Config{}, anteroom.ErrUnavailable, "check host and port"},
		{bg, "redis+sentinel://:hunter2@127.0.0.1:1/mine", anteroom.Config{}, anteroom.ErrUnavailable, "check host and port"},
		{bg, "redis+cluster://:hunter2@127.0.0.1:1", anteroom.Config{}, anteroom.ErrUnavailable, "check host and port"},
		{ended, url(":hunter1"), anteroom.Config{}, anteroom.ErrUnavailable, "canceled"},
	} {
		began := time.Now()
		m, err := anteroom.Open(c.ctx, c.url, quiet(c.cfg))
		var e *anteroom.Error
		if m != nil || !errors.Is(err, c.err) || !errors.As(err, &e) || e.Op != "open" || !strings.Contains(err.Error(), c.words) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v", c.url, err)
		}
		if took := time.Since(began); !pace.Within(took, 4*time.Second) {
			t.Errorf("%s: it took %v", c.url, took)
		}
	}
}

// TestOpen_ASilentServer: Open and Ping end with their context, whatever the server does.
func TestOpen_ASilentServer(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	m, err := anteroom.Open(bg, s.URL(), quiet(anteroom.Config{}))
	ok(t, err)
	s.Pause()
	defer s.Resume()
	ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
	defer cancel()
	_, openErr := anteroom.Open(ctx, s.URL(), quiet(anteroom.Config{}))
	for _, err := range []error{openErr, m.Ping(ctx)} {
		if !errors.Is(err, anteroom.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	}
	ok(t, m.Close(bg))
}

// TestOpen_CloseWithALockStillHeld_Lab: the late release is sent, by the client that Open has
// made, and that client is closed when the lease is over.
func TestOpen_CloseWithALockStillHeld_Lab(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	admin := s.Client(t)
	const lease = 2 * time.Second
	m, err := anteroom.Open(bg, s.URL(), quiet(anteroom.Config{Defaults: anteroom.LockConfig{LeaseTime: lease}}))
	ok(t, err)
	began := time.Now() // of all leases
	late := acquire(t, m.Mutex("late"))
	acquire(t, m.Mutex("never")) // released
	ended, cancel := context.WithCancel(bg)
	cancel()
	if err := m.Close(ended); !errors.Is(err, anteroom.ErrClosed) {
		t.Fatalf("%v", err)
	}
	if err := late.Release(bg); !errors.Is(err, anteroom.ErrLost) {
		t.Errorf("%v", err)
	}
	eventually(t, "the late release took effect, or its lease ended", func() bool { return admin.Exists(bg, "late").Val() == 0 })
	if took := time.Since(began); took > lease/2 {
		t.Logf("the release was seen after %v only", took)
	} else if admin.Exists(bg, "never").Val() == 0 && time.Since(began) < lease/2 {
		t.Error("the other lock is gone, too")
	}
	if calls := s.Stats(t)["hdel"]; calls == 0 {
		t.Error("no late release was sent")
	}
	eventually(t, "the client is closed", func() bool { return clients(t, admin) == 1 })
	if took := time.Since(began); took < lease/2 {
		t.Errorf("closed after %v, while a lease ran", took)
	}
}

// TestOpen_CloseWithUnitsStillHeld_Lab: the same of an RWMutex.
func TestOpen_CloseWithUnitsStillHeld_Lab(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	admin := s.Client(t)
	m, err := anteroom.Open(bg, s.URL(), quiet(anteroom.Config{Defaults: anteroom.LockConfig{LeaseTime: 4 * time.Second}}))
	ok(t, err)
	late := must[*anteroom.Hold](t)(m.RWMutex("late").RAcquire(bg))
	ended, cancel := context.WithCancel(bg)
	cancel()
	if err := m.Close(ended); !errors.Is(err, anteroom.ErrClosed) {
		t.Fatalf("%v", err)
	}
	before := s.Stats(t)["evalsha"]
	if err := late.Release(bg); !errors.Is(err, anteroom.ErrLost) {
		t.Errorf("%v", err)
	}
	eventually(t, "a late release is sent", func() bool { return s.Stats(t)["evalsha"] > before })
	eventually(t, "the client is closed", func() bool { return clients(t, admin) == 1 })
}

// TestNewManager_SaysWhatTheClientCosts: once, at Debug, what to set, and nothing where nothing costs.
func TestNewManager_SaysWhatTheClientCosts(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		for _, c := range []struct {
			pool    int
			bounded bool
			cfg     anteroom.Config
			words   []string
		}{
			{24, true, anteroom.Config{}, nil},
			{24, false, anteroom.Config{}, []string{"set ContextTimeoutEnabled "}},
			{23, true, anteroom.Config{}, []string{"set PoolSize on the client to 24 "}},
			{23, true, anteroom.Config{MaxInFlight: 8}, nil},
			{31, true, anteroom.Config{Defaults: anteroom.LockConfig{Replicas: 1}}, []string{"set PoolSize on the client to 32 "}},
			{1, false, anteroom.Config{}, []string{"set ContextTimeoutEnabled ", "set PoolSize "}},
		} {
			rdb := redis.NewClusterClient(&redis.ClusterOptions{PoolSize: c.pool, ContextTimeoutEnabled: c.bounded, Addrs: []string{"127.0.0.1:6379"}, Dialer: s.net.Dial})
			t.Cleanup(func() { _ = rdb.Close() })
			var log bytes.Buffer
			c.cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			m, err := anteroom.NewManager(rdb, c.cfg)
			ok(t, err)
			ok(t, m.Close(bg))
			records := strings.Count(log.String(), "\n")
			if records != len(c.words) || strings.Count(log.String(), "level=DEBUG") != records {
				t.Errorf("pool of %d: %s", c.pool, &log)
			}
			for _, words := range c.words {
				if !strings.Contains(log.String(), `text="`+words) {
					t.Errorf("pool of %d: %s", c.pool, &log)
				}
			}
		}
	})
}

// What was started has ended when a failed Open returns.
func TestOpen_FailureLeavesNothing(t *testing.T) {
	runs := func() bool {
		buf := make([]byte, 1<<20)
		stacks := string(buf[:runtime.Stack(buf, true)])
		return strings.Contains(stacks, "anteroom/renewal.") || strings.Contains(stacks, "anteroom/watchdog.") || strings.Contains(stacks, "(*Manager).tearDown")
	}
	for runs() { // a Manager of the test before this one
		runtime.Gosched()
	}
	left := 0
	for range 20 {
		_, err := anteroom.Open(bg, "redis://127.0.0.1:1", anteroom.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if !errors.Is(err, anteroom.ErrUnavailable) {
			t.Fatal(err)
		}
		if runs() {
			left++
		}
	}
	if left > 0 {
		t.Errorf("%d of 20 times goroutines of a Manager run after Open has returned its error", left)
	}
}

// A forgotten or mistyped @ makes the password a part of the host.
func TestOpen_APasswordInPlaceOfTheHost(t *testing.T) {
	for _, url := range []string{"redis://:s3cret:6379", "redis://user:s3cret:6379", "redis://user:s3cret,127.0.0.1:6379", "redis://user:s3cret:127.0.0.1:6379", "rediss://user:s3cret:6379", "redis://s3cret:6379@"} {
		ctx, cancel := context.WithTimeout(context.Background(), pace.Hang)
		m, err := anteroom.Open(ctx, url, anteroom.Config{})
		cancel()
		if err == nil {
			_ = m.Close(context.Background())
			t.Errorf("%s: opened", url)
			continue
		}
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
