package main

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/sync/observe"
)

func startEmbedded(t *testing.T) *embedded {
	t.Helper()
	e, err := newEmbedded()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.close()
		if _, err := os.Stat(e.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("its directory is still there: %v", err)
		}
	})
	return e
}

func TestEmbeddedServerGoesAwayAndKeepsItsKeys(t *testing.T) {
	ctx := t.Context()
	e := startEmbedded(t)
	c := redis.NewClient(e.options())
	defer c.Close()
	if err := c.Set(ctx, "kept", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.Set(ctx, "short", "1", 50*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	e.goAway()
	if err := c.Get(ctx, "kept").Err(); !errors.Is(err, faultnet.ErrRefused) { // an open connection was cut
		t.Errorf("a command while it is away: %v", err)
	}
	// Its clock runs, even while it is away.
	for e.mini.Exists("short") {
		time.Sleep(time.Millisecond)
	}
	if err := e.outage(time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Get(ctx, "kept").Result(); err != nil || v != "1" {
		t.Errorf("after the outage: %q, %v", v, err)
	}
}

// checked is a resource that checks that the lock exists when it is entered, written and left.
type checked struct {
	t    *testing.T
	e    *embedded
	key  string
	seen int
}

func (c *checked) look(when string) {
	c.t.Helper()
	c.seen++
	if !c.e.mini.Exists(c.key) {
		c.t.Errorf("%s: nobody holds %s", when, c.key)
	}
}

func (c *checked) enter(key string, _ int64) Pass {
	c.key = key
	c.look("enter")
	return Pass{Visit: 1, Admitted: true}
}

func (c *checked) write(_, _ int64) bool { c.look("write"); return true }
func (c *checked) leave(int64)           { c.look("leave") }

func TestDemo_I1_SectionLiesInsideThePossession(t *testing.T) {
	for _, k := range demoLocks() {
		t.Run(k.name, func(t *testing.T) {
			e := startEmbedded(t)
			res := &checked{t: t, e: e}
			w, err := newWorker(plan{Process: 1, Prefix: "test:"}, redis.NewClient(e.options()), res, func(r Report) {
				if r.Kind == observe.EventLost {
					t.Errorf("lost: %+v", r)
				}
			}, newDemo(options{}, io.Discard).page)
			if err != nil {
				t.Fatal(err)
			}
			round, err := w.rounds(k)
			if err != nil {
				t.Fatal(err)
			}
			// Alone, so that a lock that is released before the visit ends leaves no key.
			if err := round(); err != nil {
				t.Fatal(err)
			}
			if res.seen != 3 && (k.shared == nil || res.seen != 2) { // who reads does not write
				t.Errorf("%d looks, want enter, write and leave", res.seen)
			}
			if k.linger == 0 && e.mini.Exists("test:"+k.name) {
				t.Error("the lock was not released")
			}
			ctx, cancel := context.WithTimeout(context.Background(), pace.Hang)
			defer cancel()
			if _, err := w.stop(ctx); err != nil {
				t.Error(err)
			}
			if e.mini.Exists("test:" + k.name) {
				t.Error("the lock outlasts its process")
			}
		})
	}
}
