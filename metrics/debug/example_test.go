package debug_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/metrics/debug"
	anteroom "github.com/anteroom/anteroom/sync"
)

// A Page gets the Manager's events, reads the Manager on each request, and is mounted by the program, here on a
// server of its own.
func Example() {
	srv := miniredis.NewMiniRedis()
	if err := srv.Start(); err != nil {
		panic(err)
	}
	defer srv.Close()
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer rdb.Close()
	ctx := context.Background()

	page, err := debug.New(debug.Config{})
	if err != nil {
		panic(err)
	}
	m, err := anteroom.NewManager(rdb, anteroom.Config{
		OnEvent:         page.OnEvent, // or a function of yours that calls it
		RecordCallSites: true,
		Logger:          slog.New(slog.DiscardHandler),
		Defaults:        anteroom.LockConfig{Name: "orders"},
	})
	if err != nil {
		panic(err)
	}
	defer m.CloseWithin(5 * time.Second)
	page.Attach(m)
	mux := http.NewServeMux() // on the listener that serves pprof, which only operators can reach
	mux.Handle("/debug/anteroom/", page)
	web := httptest.NewServer(mux)
	defer web.Close()

	hold, err := m.Mutex("order:42").Acquire(ctx)
	if err != nil {
		panic(err)
	}
	resp, err := http.Get(web.URL + "/debug/anteroom/?format=json&key=order:42")
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(text)) {
		for _, field := range []string{"key", "status", "kind", "count"} {
			if strings.HasPrefix(strings.TrimSpace(line), `"`+field+`":`) {
				fmt.Println(strings.TrimSpace(line))
			}
		}
	}
	if err := hold.Release(ctx); err != nil {
		panic(err)
	}

	// Output:
	// "key": "order:42",
	// "status": "owned",
	// "kind": "hold",
	// "count": 1,
}
