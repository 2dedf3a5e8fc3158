package debug_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/metrics/debug"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

var bg = context.Background()

// patience bounds what must happen in any case; it is waited out only on a failure.
const patience = pace.Hang

// newPage returns a Page without pacing.
func newPage(t testing.TB, cfg debug.Config) *debug.Page {
	t.Helper()
	p := newPaced(t, cfg)
	p.Unpaced()
	return p
}

func newPaced(t testing.TB, cfg debug.Config) *debug.Page {
	t.Helper()
	p, err := debug.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// request returns a request as a browser on this machine makes it.
func request(method, target string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "localhost:6060"
	return r
}

// get requests a target such as "/?format=json" from the page.
func get(t testing.TB, p http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	rec := httptest.NewRecorder()
	p.ServeHTTP(rec, request(http.MethodGet, target))
	if rec.Code != http.StatusOK {
		t.Fatalf("%s: status %d: %s", target, rec.Code, rec.Body)
	}
	return rec
}

// report requests the page's JSON.
func report(t testing.TB, p http.Handler, query string) debug.Report {
	t.Helper()
	var r debug.Report
	if err := json.Unmarshal(get(t, p, "/?format=json&"+query).Body.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// server is an embedded Redis on a port of its own.
func server(t testing.TB) *miniredis.Miniredis {
	t.Helper()
	srv := miniredis.NewMiniRedis()
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return srv
}

// manager returns a Manager on srv that reports to p and is attached to it.
func manager(t testing.TB, srv *miniredis.Miniredis, p *debug.Page, cfg anteroom.Config) *anteroom.Manager {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.OnEvent = p.OnEvent
	m, err := anteroom.NewManager(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(bg, patience)
		defer cancel()
		_ = m.Close(ctx)
		_ = rdb.Close()
	})
	p.Attach(m)
	return m
}

func acquire(t testing.TB, mu *anteroom.Mutex) *anteroom.Hold {
	t.Helper()
	ctx, cancel := context.WithTimeout(bg, patience)
	defer cancel()
	h, err := mu.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// parked are goroutines that wait for a lock, one after the other, and release it immediately.
type parked struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// park makes n goroutines wait for mu, in order, until they get it or end is called.
func park(t testing.TB, m *anteroom.Manager, mu *anteroom.Mutex, n int) *parked {
	t.Helper()
	ctx, cancel := context.WithCancel(bg)
	p := &parked{cancel: cancel}
	t.Cleanup(p.end)
	for i := range n {
		p.wg.Go(func() {
			if h, err := mu.Acquire(ctx); err == nil {
				_ = h.Release(bg)
			}
		})
		eventually(t, "a waiter is queued", func() bool {
			for _, s := range m.Snapshot() {
				if s.Key == mu.Key() {
					return s.Waiting == i+1
				}
			}
			return false
		})
	}
	return p
}

func (p *parked) end() {
	p.cancel()
	p.wg.Wait()
}

func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// fixed is a Source whose Survey never changes.
type fixed struct{ survey observe.Survey }

// Survey applies Match, MaxKeys and MaxWaiters as a Manager's does.
func (f *fixed) Survey(o observe.SurveyOptions) observe.Survey {
	s := f.survey
	s.States, s.Keys = nil, 0
	for _, st := range f.survey.States {
		if o.Match != nil && !o.Match(st.Class, st.Key) {
			continue
		}
		s.Keys++
		if o.MaxKeys == 0 || len(s.States) < o.MaxKeys {
			if o.MaxWaiters > 0 {
				st.Waiters = st.Waiters[:min(o.MaxWaiters, len(st.Waiters))]
			}
			s.States = append(s.States, st)
		}
	}
	return s
}
