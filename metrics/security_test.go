package metrics_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/metrics"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// secret is part of every name that must not be written anywhere: keys, client id, password.
const secret = "s3cr3tMark"

// The key contains characters that JSON, text, URLs and Lua encode differently.
const secretKey = `order:"` + secret + `" {x} /?&=%41` + "\r\n\x00\xff'"

// lockedBuffer is a bytes.Buffer shared by a logger and a test.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// spy collects everything that a program writes about its locks: its log in both of slog's formats, at every level,
// and its metrics.
type spy struct {
	t      *testing.T
	log    lockedBuffer
	c      *metrics.Collector
	r      *prometheus.Registry
	logger *slog.Logger

	mu     sync.Mutex
	kinds  map[observe.EventKind]int
	tokens []int64
}

func newSpy(t *testing.T) *spy {
	t.Helper()
	s := &spy{t: t, kinds: map[observe.EventKind]int{}}
	s.c, s.r = newCollector(t, metrics.Config{})
	all := &slog.HandlerOptions{Level: slog.Level(-100), AddSource: true}
	s.logger = slog.New(slog.NewMultiHandler(slog.NewJSONHandler(&s.log, all), slog.NewTextHandler(&s.log, all)))
	return s
}

// manager returns a Manager whose output is collected, closed with the test.
func (s *spy) manager(rdb anteroom.Redis, id string, locks anteroom.LockConfig) *anteroom.Manager {
	s.t.Helper()
	locks.Name = "orders"
	m, err := anteroom.NewManager(rdb, anteroom.Config{
		ClientID: id + "-" + secret, Logger: s.logger, Observer: s.c.Observer(), Defaults: locks, RecordCallSites: true,
		LongWait: time.Second,
		OnEvent: func(e observe.Event) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.kinds[e.Kind]++
		},
	})
	s.check(err)
	s.c.Attach(m)
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), pace.Hang)
		defer cancel()
		_ = m.Close(ctx)
	})
	return m
}

func (s *spy) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// acquired remembers the hold's token, which is as secret as its key.
func (s *spy) acquired(h *anteroom.Hold, err error) *anteroom.Hold {
	s.t.Helper()
	s.check(err)
	if token, ok := h.Token(); ok {
		s.tokens = append(s.tokens, token)
	}
	return h
}

func (s *spy) seen(kind observe.EventKind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kinds[kind]
}

// waitFor waits for more events of a kind, for a long time because a server process may be slow.
func (s *spy) waitFor(kind observe.EventKind, more int) {
	s.t.Helper()
	s.until(string(kind), func() bool { return s.seen(kind) >= more })
}

func (s *spy) until(what string, f func() bool) {
	s.t.Helper()
	deadline := time.Now().Add(pace.Hang)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		if time.Now().After(deadline) {
			s.t.Fatalf("not within %v: %s; the log so far:\n%s", pace.Hang, what, s.log.String())
		}
		<-tick.C
	}
}

// written fails the test if the log or a scrape contains a secret in any form.
func (s *spy) written() {
	s.t.Helper()
	texts := map[string]string{"log": s.log.String(), "metrics": scrape(s.t, s.r, "")}
	if len(texts["log"]) == 0 || !strings.Contains(texts["metrics"], `class="orders"`) {
		s.t.Fatal("nothing was written, so nothing was tested")
	}
	if strings.Contains(texts["log"], "!BADKEY") {
		s.t.Error("a record is malformed")
	}
	for form := range forms(s.tokens) {
		for where, text := range texts {
			for line := range strings.Lines(text) {
				if strings.Contains(line, form) {
					s.t.Errorf("the %s holds %q:\n%s", where, form, line)
				}
			}
		}
	}
}

// forms returns the forms in which the secrets would appear. The mark consists of letters and digits, which quoting
// and URL encoding leave alone; base64 depends on the offset.
func forms(tokens []int64) map[string]bool {
	all := map[string]bool{secret: true, hex.EncodeToString([]byte(secret)): true, strings.ToUpper(hex.EncodeToString([]byte(secret))): true}
	for _, whole := range []string{secretKey, "order:\""} {
		quoted := strconv.Quote(whole)
		all[quoted[1:len(quoted)-1]] = true
		all[url.QueryEscape(whole)], all[url.PathEscape(whole)] = true, true
	}
	for pad := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", pad) + secret))
		all[text[4:len(text)-4]] = true // without the ends, which depend on their neighbours
	}
	for _, token := range tokens {
		all[strconv.FormatInt(token, 10)], all[strconv.FormatInt(token, 16)] = true, true
	}
	return all
}

// connect returns a client of the user whose password is a secret, from a URL as in a program.
func connect(t *testing.T, addr, userinfo string, n *faultnet.Network) *redis.Client {
	t.Helper()
	opts, err := redis.ParseURL("redis://" + userinfo + "@" + addr + "/0")
	if err != nil {
		t.Fatal(err)
	}
	if n != nil {
		opts.Dialer = n.Dial
	}
	c := redis.NewClient(opts)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// No key, holder, password or token is written, whatever happens to a lock, unless asked for. The kinds of events
// checked at the end prove that it did happen.
func TestSecurity_NothingSecretIsWrittenDown_Lab(t *testing.T) {
	s := newSpy(t)
	server := testredis.Start(t, "--requirepass", secret+"Password")
	admin := connect(t, server.Addr(), ":"+secret+"Password", nil)
	locks := anteroom.LockConfig{LeaseTime: time.Second, WatchdogPeriod: 50 * time.Millisecond, Fencing: true, Reentrant: true}
	network := faultnet.New(nil)
	m := s.manager(connect(t, server.Addr(), ":"+secret+"Password", network), "a", locks)
	other := s.manager(connect(t, server.Addr(), ":"+secret+"Password", nil), "b", locks)

	closed := s.closing(s.manager(connect(t, server.Addr(), ":"+secret+"Password", nil), "d", locks))
	s.removals(admin, m, other)
	s.foreignContent(admin, m)
	s.abandoned(m)
	s.malformed(admin, m)
	s.deadlock(m)
	s.capacities(func(id string) *anteroom.Manager {
		return s.manager(connect(t, server.Addr(), ":"+secret+"Password", nil), id, anteroom.LockConfig{LeaseTime: time.Second})
	})
	s.refusals(admin, server.Addr())
	s.outage(m, network)
	closed()

	for _, kind := range observe.Labels().Events {
		switch kind {
		case observe.EventClockJump, observe.EventSelfLate:
			continue // only after a suspend: TestLog_NoKindOfEventNamesAKey covers them
		}
		if s.seen(kind) == 0 {
			t.Errorf("no event %s", kind)
		}
	}
	s.written()
}

// closing: a Manager is closed while it has a hold, and all else continues. The returned function waits until Close has
// reported that, and lets it end.
func (s *spy) closing(m *anteroom.Manager) (end func()) {
	ctx := context.Background()
	h := s.acquired(m.Mutex(secretKey + "closing").Acquire(ctx))
	closed := make(chan error, 1)
	go func() { closed <- m.Close(ctx) }()
	return func() {
		s.waitFor(observe.EventClosing, 1)
		_ = h.Release(ctx) // lost if the machine stalled for a lease
		if err := <-closed; err != nil {
			s.t.Errorf("Close: %v", err)
		}
	}
}

// removals: locks lost by deletion and by force, and what their owners do next.
func (s *spy) removals(admin *redis.Client, m, other *anteroom.Manager) {
	ctx := context.Background()
	mu, err := m.NewMutex(anteroom.LockConfig{Key: secretKey, Reentrant: true})
	s.check(err)
	mu.Lock()
	s.check(admin.Del(ctx, secretKey).Err())
	s.until("the loss", func() bool { return !mu.Held() })
	enterAgain(mu) // re-enters a lost lock
	mu.Unlock()
	s.waitFor(observe.EventUnlockLost, 1)
	s.waitFor(observe.EventReentryLost, 1)

	mu = m.Mutex(secretKey)
	h := s.acquired(mu.Acquire(ctx))
	if mu.TryLockFor(10 * time.Millisecond) { // waits for itself
		s.t.Error("locked beside the own hold")
	}
	if released, err := other.ForceRelease(ctx, secretKey); err != nil || len(released) != 1 {
		s.t.Errorf("forced: %v, %v", released, err)
	}
	<-h.Context().Done()
	if err := h.Release(ctx); !errors.Is(err, anteroom.ErrLost) {
		s.t.Errorf("release of what was forced: %v", err)
	}
}

func enterAgain(l sync.Locker) {
	l.Lock()
	defer l.Unlock()
}

// foreignContent: a foreign field beside ours, and a key of another type.
func (s *spy) foreignContent(admin *redis.Client, m *anteroom.Manager) {
	ctx, mu := context.Background(), m.Mutex(secretKey)
	h := s.acquired(mu.Acquire(ctx))
	before := s.seen(observe.EventAlert)
	s.check(admin.HSet(ctx, secretKey, secret+"-field", "1").Err())
	s.waitFor(observe.EventAlert, before+1)
	s.check(admin.HDel(ctx, secretKey, secret+"-field").Err())
	s.waitFor(observe.EventAlertCleared, 1)
	lost := s.seen(observe.EventLost)
	refused := s.seen(observe.EventMisconfigured)
	s.check(admin.Set(ctx, secretKey, secret, 0).Err())
	s.waitFor(observe.EventLost, lost+1)
	_ = h.Release(ctx)
	if _, err := mu.Acquire(ctx); !errors.Is(err, anteroom.ErrConfig) {
		s.t.Errorf("a key of another type: %v", err)
	}
	s.waitFor(observe.EventMisconfigured, refused+1)
	s.check(admin.Del(ctx, secretKey).Err())
}

// abandoned: a hold that is no longer reachable.
func (s *spy) abandoned(m *anteroom.Manager) {
	mu, err := m.NewMutex(anteroom.LockConfig{
		Key: secretKey + "dropped", Name: "orders", LeaseTime: time.Second,
		WatchdogPeriod: 50 * time.Millisecond, Recovery: anteroom.RecoverRelease,
	})
	s.check(err)
	func() { s.acquired(mu.Acquire(context.Background())) }()
	s.until("the hold is found abandoned", func() bool {
		runtime.GC()
		return s.seen(observe.EventAbandoned) > 0
	})
	s.waitFor(observe.EventRecovery, 1)
}

// deadlock: two goroutines wait for each other's locks, until both reports have come.
func (s *spy) deadlock(m *anteroom.Manager) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	x, y := m.Mutex(secretKey+"x"), m.Mutex(secretKey+"y")
	var locked, ended sync.WaitGroup
	locked.Add(2)
	for _, order := range [][]*anteroom.Mutex{{x, y}, {y, x}} {
		ended.Go(func() {
			order[0].Lock()
			defer order[0].Unlock()
			locked.Done()
			locked.Wait()
			if h, err := order[1].Acquire(ctx); err == nil {
				s.t.Errorf("both locked both: %v", h.Release(ctx))
			}
		})
	}
	s.waitFor(observe.EventDeadlock, 1)
	s.waitFor(observe.EventLongWait, 1)
	cancel()
	ended.Wait()
}

// capacities: two processes take a Semaphore for different ones.
func (s *spy) capacities(client func(id string) *anteroom.Manager) {
	ctx, key := context.Background(), secretKey+"units"
	few := s.acquired(client("e").Semaphore(key, 2).Acquire(ctx, 1))
	many := s.acquired(client("f").Semaphore(key, 5).Acquire(ctx, 1))
	s.waitFor(observe.EventCapacity, 1)
	s.check(many.Release(ctx))
	s.check(few.Release(ctx))
}

// malformed: messages that quote secrets, on each of our channels.
func (s *spy) malformed(admin *redis.Client, m *anteroom.Manager) {
	ctx := context.Background()
	h := s.acquired(m.Mutex(secretKey).Acquire(ctx))
	own := "anteroom:client:" + m.ClientID()
	s.until("the own channel", func() bool { return admin.PubSubNumSub(ctx, own).Val()[own] == 1 })
	for _, payload := range []string{secret, `{"forced":{"key":"` + secret + `","field":"` + secret + `:1"}}`, `{"probe":"` + secret + `"}`} {
		s.check(admin.Publish(ctx, own, payload).Err())
	}
	s.waitFor(observe.EventWarning, 1)
	s.check(h.Release(ctx))
}

// refusals: a wrong password, a user without permissions, and a server that does not know the commands and repeats
// their arguments in its answer.
func (s *spy) refusals(admin *redis.Client, addr string) {
	ctx := context.Background()
	s.check(admin.Do(ctx, "acl", "setuser", "nobody", "on", ">"+secret, "~other:*", "+@all").Err())
	strange := testredis.Start(s.t, "--rename-command", "EVALSHA", "", "--rename-command", "PUBLISH", "")
	for userinfo, at := range map[string]string{
		":" + secret + "Wrong": addr, "nobody:" + secret: addr, "": strange.Addr(),
	} {
		m := s.manager(connect(s.t, at, userinfo, nil), "c", anteroom.LockConfig{WatchdogPeriod: 50 * time.Millisecond})
		refused, recoveries := s.seen(observe.EventMisconfigured), s.seen(observe.EventRecovery)
		if _, err := m.Mutex(secretKey).Acquire(ctx); !errors.Is(err, anteroom.ErrConfig) {
			s.t.Errorf("%s: %v", userinfo, err)
		}
		s.waitFor(observe.EventMisconfigured, refused+1)
		if at == strange.Addr() {
			s.waitFor(observe.EventRecovery, recoveries+1) // the probe is refused, with its arguments
		}
	}
}

// outage: Redis falls silent during a hold, a release and a wait, and comes back.
func (s *spy) outage(m *anteroom.Manager, network *faultnet.Network) {
	ctx := context.Background()
	// Two renewals of it fail more than a second before it is lost, so that even a process that stalls for as long
	// sees them fail.
	mu, err := m.NewMutex(anteroom.LockConfig{
		Key: secretKey + "renewed", Name: "orders", LeaseTime: 3 * time.Second, RenewalTime: 200 * time.Millisecond, Fencing: true,
	})
	s.check(err)
	h := s.acquired(mu.Acquire(ctx))
	released := s.acquired(m.Mutex(secretKey + "released").Acquire(ctx))
	up, down := s.seen(observe.EventSubscriptionUp), s.seen(observe.EventSubscriptionDown)
	unavailable := s.seen(observe.EventUnavailable)
	network.BlackHole()
	waiting, cancel := context.WithTimeout(ctx, pace.Hang)
	defer cancel()
	var waiter sync.WaitGroup
	waiter.Go(func() {
		if h, err := m.Mutex(secretKey + "waited").Acquire(waiting); err == nil {
			_ = h.Release(ctx)
		} else {
			s.t.Error(err)
		}
	})
	if err := released.Release(ctx); err == nil {
		s.t.Error("released while Redis is silent")
	}
	<-h.Context().Done()
	_ = h.Release(ctx)
	s.waitFor(observe.EventUnavailable, unavailable+1)
	s.waitFor(observe.EventRenewalFailing, 1)
	s.waitFor(observe.EventReleaseFailed, 1)
	s.waitFor(observe.EventReleaseGivenUp, 1)
	s.waitFor(observe.EventSubscriptionDown, down+1)
	network.CloseAll()
	network.Heal()
	waiter.Wait()
	s.waitFor(observe.EventAvailable, 1)
	s.waitFor(observe.EventSubscriptionUp, up+1)
}

// With LogKeys the log names keys, but still no password and no holder.
func TestSecurity_LogKeysNamesKeysOnly(t *testing.T) {
	server := testredis.Start(t, "--requirepass", secret+"Password")
	var log lockedBuffer
	m, err := anteroom.NewManager(connect(t, server.Addr(), ":"+secret+"Password", nil), anteroom.Config{
		ClientID: "a-" + secret, LogKeys: true, Logger: slog.New(slog.NewJSONHandler(&log, nil)),
		Defaults: anteroom.LockConfig{LeaseTime: time.Second, WatchdogPeriod: 50 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := m.Mutex("order:42").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.ForceRelease(t.Context(), "order:42"); err != nil {
		t.Fatal(err)
	}
	<-h.Context().Done()
	_ = h.Release(t.Context())
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), `"key":"order:42"`) {
		t.Errorf("the key is missing:\n%s", log.String())
	}
	if strings.Contains(log.String(), secret) {
		t.Errorf("a secret is there:\n%s", log.String())
	}
}
