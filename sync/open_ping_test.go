package anteroom_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// everything is what a Manager's Defaults can need.
var everything = anteroom.Config{Defaults: anteroom.LockConfig{
	Fencing: true, Replicas: 1, ReplicaTimeout: 10 * time.Millisecond,
}}

// TestPing_LeavesNothing: neither a free key nor one that is held changes, and no event
// reports anything. On both servers.
func TestPing_LeavesNothing(t *testing.T) {
	check := func(t *testing.T, rdb *redis.Client) {
		m, rec := manager(t, rdb, everything)
		other, _ := manager(t, rdb, anteroom.Config{Defaults: anteroom.LockConfig{Fencing: true, RenewalTime: -1}})
		ok(t, m.Ping(bg))
		ok(t, m.Ping(bg, "a", "{b}", "c{"))
		if keys := rdb.Keys(bg, "*").Val(); len(keys) != 0 {
			t.Errorf("left: %q", keys)
		}
		h := acquire(t, other.Mutex("a"))
		record := must[string](t)(rdb.Get(bg, "anteroom:fence:{a}").Result())
		ttl := rdb.PTTL(bg, "a").Val()
		ok(t, m.Ping(bg, "a"))
		if fields := rdb.HGetAll(bg, "a").Val(); len(fields) != 1 || fields[h.Holder()] != "1" {
			t.Errorf("the lock has become %v", fields)
		}
		if after := rdb.Get(bg, "anteroom:fence:{a}").Val(); after != record || rdb.PTTL(bg, "anteroom:fence:{a}").Val() <= time.Hour {
			t.Errorf("the record has become %q, or has no end", after)
		}
		if after := rdb.PTTL(bg, "a").Val(); after > ttl {
			t.Errorf("the lease has become longer: %v, was %v", after, ttl)
		}
		ok(t, h.Release(bg))
		if n := len(rec.of(observe.EventWarning)); n != 0 {
			t.Errorf("%d warnings", n)
		}
	}
	t.Run("miniredis", func(t *testing.T) { bubble(t, func(t *testing.T, s *embedded) { check(t, s.client()) }) })
	t.Run("redis", func(t *testing.T) { check(t, testredis.Start(t).Client(t)) })
}

// TestPing_TheACLOfTheDocument: the smallest ACL is enough for Ping, too, and nothing of it
// shows in the server's log of refusals.
func TestPing_TheACLOfTheDocument(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	admin := s.Client(t)
	applyACL(t, admin, aclBlocks(t)[0])
	applyACL(t, admin, aclBlocks(t)[1])
	m, rec := manager(t, s.Client(t, func(o *redis.Options) { o.Username, o.Password = "anteroom", "change-me" }), everything)
	ok(t, m.Ping(bg, "order:1"))
	locks, _ := manager(t, s.Client(t, func(o *redis.Options) { o.Username, o.Password = "anteroom", "change-me" }),
		anteroom.Config{Defaults: anteroom.LockConfig{Fencing: true}}) // no replica could confirm a grant
	h := acquire(t, locks.Mutex("order:2"))
	ok(t, m.Ping(bg, "order:2"))
	ok(t, h.Release(bg))
	wantNoRefusals(t, admin)
	if n := len(rec.of(observe.EventWarning)); n != 0 {
		t.Errorf("%d warnings", n)
	}
	err := m.Ping(bg, "order:1", "invoice:1")
	if !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "invoice:1") || !strings.Contains(err.Error(), "docs/operations.md") {
		t.Errorf("a key that the ACL does not allow: %v", err)
	}
	err = m.Ping(bg)
	if !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "give it one that it allows") {
		t.Errorf("without a key: %v", err)
	}
}

// TestPing_EveryRightIsAskedFor: without any one of the commands that an Acquire, its
// renewal or its release needs, or the line, Ping is ErrConfig and names it, whether the key is free or
// held.
func TestPing_EveryRightIsAskedFor(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	admin := s.Client(t)
	asks := testredis.AtLeast("7.0") // redis.acl_check_cmd; without it Ping knows what it can try
	holder, _ := manager(t, admin, anteroom.Config{Defaults: anteroom.LockConfig{Fencing: true}})
	for _, name := range []string{
		"evalsha", "hlen", "hexists", "hget", "pttl", "hdel", "hset", "pexpire", "hkeys", "hgetall", "time", "hmget", "exists", "wait",
		"publish", "subscribe", "pubsub|numsub",
	} {
		t.Run(name, func(t *testing.T) {
			taken := name
			if !asks { // nor are there rules that remove one subcommand
				taken, _, _ = strings.Cut(name, "|")
			}
			ok(t, admin.Do(bg, "acl", "setuser", "less", "reset", "on", ">pw", "~*", "&*", "+@all", "-"+taken).Err())
			if !asks && slices.Contains([]string{"publish", "subscribe", "wait"}, name) {
				t.Skip("before Redis 7.0 a script cannot ask about " + name)
			}
			m, _ := manager(t, s.Client(t, func(o *redis.Options) { o.Username, o.Password = "less", "pw" }), everything)
			h := acquire(t, holder.Mutex("held"))
			defer func() { ok(t, h.Release(bg)) }()
			for _, key := range []string{"free", "held"} {
				err := m.Ping(bg, key)
				if key == "held" && !asks && slices.Contains([]string{"hset", "pexpire", "hkeys"}, name) {
					continue // they can be tried on a free key only
				}
				if !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "docs/operations.md") {
					t.Errorf("%s: %v", key, err)
				}
			}
			if admin.Exists(bg, "free").Val() != 0 {
				t.Error("something is left")
			}
		})
	}
	if !asks {
		return
	}
	ok(t, admin.Do(bg, "acl", "setuser", "less", "reset", "on", ">pw", "~*", "&*", "+@all", "-eval", "-script").Err())
	m, _ := manager(t, s.Client(t, func(o *redis.Options) { o.Username, o.Password = "less", "pw" }), everything)
	if err := m.Ping(bg, "free"); !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "eval") {
		t.Errorf("without EVAL and SCRIPT LOAD: %v", err)
	}
}

// TestPing_WhatTheServerCannotDoNow: what passes by itself is ErrUnavailable, what does not
// is ErrConfig.
func TestPing_WhatTheServerCannotDoNow(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	admin := s.Client(t)
	m, _ := manager(t, s.Client(t), anteroom.Config{})
	is := func(what string, want error, words string, keys ...string) {
		t.Helper()
		err := m.Ping(bg, keys...)
		if want == nil && err == nil {
			return
		}
		if !errors.Is(err, want) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", what, err)
		}
	}
	is("well", nil, "")
	ok(t, admin.Set(bg, "text", "v", 0).Err())
	is("another type", anteroom.ErrConfig, "not a lock", "text")
	is("no key", anteroom.ErrConfig, "Key is empty", "k", "")
	is("a reserved key", anteroom.ErrConfig, "anteroom:fence:", "anteroom:fence:x")
	ok(t, admin.ConfigSet(bg, "maxmemory", "1").Err())
	is("full", anteroom.ErrUnavailable, "OOM")
	ok(t, admin.ConfigSet(bg, "maxmemory", "0").Err())
	ok(t, admin.ConfigSet(bg, "min-replicas-to-write", "1").Err())
	is("too few replicas", anteroom.ErrUnavailable, "NOREPLICAS")
	ok(t, admin.ConfigSet(bg, "min-replicas-to-write", "0").Err())
	ok(t, admin.Do(bg, "replicaof", "127.0.0.1", "1").Err())
	is("a replica", anteroom.ErrUnavailable, "READONLY")
	ok(t, admin.Do(bg, "replicaof", "no", "one").Err())
	is("well again", nil, "")
	ended, cancel := context.WithCancel(bg)
	cancel()
	if err := m.Ping(ended); !errors.Is(err, anteroom.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("its context has ended: %v", err)
	}
	ok(t, m.Close(bg))
	is("closed", anteroom.ErrClosed, "")
}
