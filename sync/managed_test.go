package anteroom_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// TestManaged_WhatAServiceForbids: managed services differ in the commands that they refuse. A user who may not call
// them stands for such a service. Each row of docs/compatibility.md, "Managed services", is one here.
func TestManaged_WhatAServiceForbids(t *testing.T) {
	for name, c := range map[string]struct {
		without  string // what the user may not call
		replicas int
		err      string // of Ping and of an acquire; without one locks work between two Managers
		warns    string // what Ping's event names, if there is one
	}{
		"administration":     {without: "-@admin -config -info -client -keys -flushall -flushdb -acl -debug"},
		"WAIT":               {without: "-wait"},
		"WAIT with Replicas": {without: "-wait", replicas: 1, err: "wait"},
		"SCRIPT":             {without: "-script"},
		"EVAL":               {without: "-eval"},
		"SCRIPT and EVAL":    {without: "-script -eval", err: "eval"},
		"EVALSHA":            {without: "-evalsha", err: "evalsha"},
		"PUBLISH":            {without: "-publish", warns: "PUBLISH"},
		"SUBSCRIBE":          {without: "-subscribe", warns: "SUBSCRIBE"},
		"PUBSUB":             {without: "-pubsub", warns: "PUBSUB NUMSUB"},
		"channels":           {without: "resetchannels", warns: "PUBLISH"},
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
			cfg := anteroom.Config{Defaults: anteroom.LockConfig{
				LeaseTime: 2 * time.Second, Fencing: true, Replicas: c.replicas, ReplicaTimeout: 10 * time.Millisecond,
			}}
			a, events := manager(t, s.Client(t, user), cfg)
			b, _ := manager(t, s.Client(t, user), cfg)
			err := a.Ping(bg, "k")
			if c.err == "" {
				ok(t, err)
			} else if !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), c.err) {
				t.Errorf("Ping: %v", err)
			}
			warned := func() bool { return len(events.of(anteroom.EventWarning)) > 0 }
			if c.warns != "" {
				eventually(t, patience, "a warning", warned)
				if text := events.of(anteroom.EventWarning)[0].Text; !strings.Contains(text, c.warns) {
					t.Errorf("warning: %s", text)
				}
			}
			if c.err != "" {
				if _, err := a.Mutex("k").TryAcquire(bg); !errors.Is(err, anteroom.ErrConfig) {
					t.Errorf("TryAcquire: %v", err)
				}
				return
			}
			h := acquire(t, a.Mutex("k"))
			got := make(chan *anteroom.Hold, 1)
			go func() {
				h, err := b.Mutex("k").Acquire(bg)
				if err != nil {
					t.Error(err)
				}
				got <- h
			}()
			eventually(t, patience, "it waits", func() bool { return b.Counts()["default"].Waiting == 1 })
			ok(t, h.Release(bg))
			next := <-got
			if next == nil || tokenOf(next) <= tokenOf(h) {
				t.Fatalf("the waiter has %v", next)
			}
			ok(t, next.Release(bg))
			if c.warns == "" && warned() {
				t.Errorf("warnings: %v", events.of(anteroom.EventWarning))
			}
		})
	}
}
