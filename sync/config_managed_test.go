package anteroom_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// TestManaged_WhatAServiceForbids: managed services differ in the commands that they refuse. A user who may not call
// them represents such a service. Each row of docs/compatibility.md, "Managed services", is one here.
func TestManaged_WhatAServiceForbids(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		without  string // what the user may not call
		replicas int
		ping     string // what Ping says; "": nothing
		acquire  string // what an acquire says of a free key
		wait     string // what it says of a key that another Manager holds
		warns    bool   // there is an event
	}{
		"administration":     {without: "-@admin -config -info -client -keys -flushall -flushdb -acl -debug"},
		"WAIT":               {without: "-wait"},
		"WAIT with Replicas": {without: "-wait", replicas: 1, ping: "wait", acquire: "wait"},
		"SCRIPT":             {without: "-script"},
		"EVAL":               {without: "-eval"},
		"SCRIPT and EVAL":    {without: "-script -eval", ping: "eval", acquire: "eval"},
		"EVALSHA":            {without: "-evalsha", ping: "evalsha", acquire: "evalsha"},
		"PUBLISH":            {without: "-publish", ping: "publish", wait: "publish", warns: true},
		"SUBSCRIBE":          {without: "-subscribe", ping: "subscribe", acquire: "subscribe", warns: true},
		"PUBSUB":             {without: "-pubsub", ping: "pubsub"},
		"channels":           {without: "resetchannels", ping: "publish", wait: "anteroom:client:", warns: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testredis.Needs(t, "7.0", "what Ping can ask about")
			s := testredis.Start(t)
			admin := s.Client(t)
			rules := []any{"acl", "setuser", "app", "reset", "on", ">pw", "~*", "&*", "+@all"}
			for word := range strings.FieldsSeq(c.without) {
				rules = append(rules, word)
			}
			ok(t, admin.Do(bg, rules...).Err())
			user := func(o *redis.Options) { o.Username, o.Password = "app", "pw" }
			cfg := anteroom.Config{CommandTimeout: pace.Scale(time.Second), Defaults: anteroom.LockConfig{
				LeaseTime: time.Minute, Fencing: true, Replicas: c.replicas, ReplicaTimeout: 10 * time.Millisecond,
			}}
			a, events := manager(t, s.Client(t, user), cfg)
			b, _ := manager(t, s.Client(t, user), cfg)
			says := func(what string, err error, words string) {
				t.Helper()
				if words == "" {
					ok(t, err)
				} else if !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), words) {
					t.Errorf("%s: %v", what, err)
				}
			}
			says("Ping", a.Ping(bg, "k"), c.ping)
			h, err := a.Mutex("k").TryAcquire(bg)
			for ; name == "SUBSCRIBE" && err == nil; h, err = a.Mutex("k").TryAcquire(bg) { // until the refusal is known
				ok(t, h.Release(bg))
			}
			says("TryAcquire", err, c.acquire)
			warned := func() bool { return len(events.of(observe.EventWarning)) > 0 }
			if err != nil {
				if c.warns {
					eventually(t, "a warning", warned)
				}
				return
			}
			if c.wait != "" {
				_, err := b.Mutex("k").Acquire(bg)
				says("Acquire", err, c.wait)
				ok(t, h.Release(bg))
				eventually(t, "a warning", warned)
				return
			}
			got := make(chan *anteroom.Hold, 1)
			go func() {
				h, err := b.Mutex("k").Acquire(bg)
				if err != nil {
					t.Error(err)
				}
				got <- h
			}()
			eventually(t, "it waits", func() bool { return b.Counts()["default"].Waiting == 1 })
			ok(t, h.Release(bg))
			next := <-got
			if next == nil || tokenOf(next) <= tokenOf(h) {
				t.Fatalf("the waiter has %v", next)
			}
			ok(t, next.Release(bg))
			if c.warns {
				eventually(t, "a warning", warned)
			} else {
				for _, e := range events.of(observe.EventWarning) {
					if !strings.Contains(e.String(), "CLIENT TRACKING") { // which a hold asks for that lasts long enough
						t.Errorf("a warning: %v", e)
					}
				}
			}
		})
	}
}
