package anteroom_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/foreign"
	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

func TestAForeignClientSharesLocksBothWays_Lab(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t)
	rdb := server.Client(t)
	m, _ := manager(t, server.Client(t), anteroom.Config{})
	for _, key := range []string{"user:profile:1001", "{tag}x", "stray}{brace"} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			s := foreign.Client{RDB: rdb, Holder: "server1-thread-123"}
			lease := pace.Scale(2 * time.Second)
			run := func(script string, lease time.Duration) bool {
				return must[bool](t)(s.Run(bg, script, key, lease))
			}
			mu := mutex(t, m, anteroom.LockConfig{Key: key, LeaseTime: lease})

			// Exclusion: the foreign client holds, twice over.
			for range 2 {
				if !run(foreign.Lock, time.Hour) {
					t.Fatal("the foreign client did not get a free lock")
				}
			}
			if _, err := mu.TryAcquire(bg); !errors.Is(err, anteroom.ErrNotAcquired) {
				t.Fatalf("acquired beside the foreign client: %v", err)
			}
			// Wake-up by its message, not by its TTL of an hour.
			got := make(chan *anteroom.Hold, 1)
			go func() { got <- must[*anteroom.Hold](t)(mu.Acquire(bg)) }()
			eventually(t, "we listen", func() bool {
				n, err := rdb.PubSubNumSub(bg, "lock:release:"+key).Result()
				return err == nil && n["lock:release:"+key] == 1
			})
			if !run(foreign.Unlock, time.Hour) {
				t.Fatal("unlock")
			}
			select {
			case <-got:
				t.Fatal("acquired although the foreign client still holds it once")
			default:
			}
			if !run(foreign.Unlock, time.Hour) {
				t.Fatal("unlock")
			}
			ok(t, s.Publish(bg, key))
			var h *anteroom.Hold
			select {
			case h = <-got:
			case <-time.After(pace.Hang):
				t.Fatal("not woken")
			}

			// Exclusion the other way, and renewal: our TTL stays up beyond the lease.
			if run(foreign.Lock, time.Minute) || run(foreign.Renew, time.Minute) || run(foreign.Check, 0) || run(foreign.Unlock, time.Minute) {
				t.Fatal("the foreign client got at our lock")
			}
			time.Sleep(lease * 5 / 4)
			if ttl, err := rdb.PTTL(bg, key).Result(); err != nil || ttl < lease/4 || !h.Held() {
				t.Fatalf("TTL %v, %v", ttl, err)
			}
			// Our release reaches the foreign client's subscription, in the document's format.
			sub := rdb.Subscribe(bg, "lock:release:"+key)
			defer sub.Close()
			must[any](t)(sub.Receive(bg))
			ok(t, h.Release(bg))
			ctx, cancel := context.WithTimeout(bg, pace.Hang)
			defer cancel()
			msg, err := sub.ReceiveMessage(ctx)
			ok(t, err)
			var fields map[string]any
			ok(t, json.Unmarshal([]byte(msg.Payload), &fields))
			released, isNumber := fields["releaseTime"].(float64)
			if len(fields) != 3 || fields["lockKey"] != key || fields["holder"] != h.Holder() || !isNumber || time.Since(time.UnixMilli(int64(released))) > time.Minute {
				t.Fatalf("message %s", msg.Payload)
			}

			// Expiry: the foreign client forgets its lock, and its TTL ends it.
			const ttl = 300 * time.Millisecond
			begin := time.Now()
			if !run(foreign.Lock, ttl) {
				t.Fatal("the foreign client did not get the released lock")
			}
			h = acquire(t, mu)
			if took := time.Since(begin); took < ttl-time.Millisecond || !pace.Within(took, 3*ttl) {
				t.Fatalf("acquired after %v, want the foreign client's TTL", took)
			}
			ok(t, h.Release(bg))
			if n, err := rdb.Exists(bg, key).Result(); err != nil || n != 0 {
				t.Fatalf("left behind: %d, %v", n, err)
			}
		})
	}
}

// Messages of any form are wake-ups and never a crash.
func TestMalformedMessagesWakeAndDoNoHarm(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t)
	rdb := server.Client(t)
	a, _ := manager(t, server.Client(t), anteroom.Config{})
	b, _ := manager(t, server.Client(t), anteroom.Config{})
	h := acquire(t, a.Mutex("k"))
	got := make(chan *anteroom.Hold, 1)
	go func() { got <- must[*anteroom.Hold](t)(b.Mutex("k").Acquire(bg)) }()
	own := "anteroom:client:" + b.ClientID()
	eventually(t, "it waits in line, and listens", func() bool {
		n, err := rdb.PubSubNumSub(bg, own).Result()
		return err == nil && n[own] == 1 && rdb.Exists(bg, lineOf("k")).Val() == 1
	})
	for _, payload := range []string{
		"", "{", "null", "[]", `{"lockKey":7}`, `{"holder":"` + h.Holder() + `"}`, "\x00\xff", `{"forced":{"key":"aw==","field":""}}`,
		`{"called":null}`, `{"called":{}}`, `{"called":{"field":"` + h.Holder() + `","attempt":-1,"lease":9e99}}`,
		`{"called":{"field":"` + b.ClientID() + `:1","attempt":1,"lease":-2000,"token":"x"}}`, `{"look":{"field":7}}`, `{"look":{"in":-1}}`,
	} {
		ok(t, rdb.Publish(bg, "lock:release:k", payload).Err())
		ok(t, rdb.Publish(bg, "anteroom:client:"+a.ClientID(), payload).Err())
		ok(t, rdb.Publish(bg, "anteroom:client:"+b.ClientID(), payload).Err())
	}
	if _, err := a.Inspect(bg, "k"); err != nil || !h.Held() {
		t.Fatalf("held %v, %v", h.Held(), err)
	}
	select {
	case <-got:
		t.Fatal("a message let somebody in")
	default:
	}
	ok(t, h.Release(bg))
	ok(t, (<-got).Release(bg))
}

// TestRefusalsOfTheServer: what only an operator can mend is one clear error, immediately.
func TestRefusalsOfTheServer(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t)
	admin := server.Client(t)
	for name, rules := range map[string][]any{
		"wrong password": nil,
		"no scripts":     {"acl", "setuser", "noscripts", "on", ">p", "~*", "&*", "+@all", "-evalsha", "-eval"},
		"no keys":        {"acl", "setuser", "nokeys", "on", ">p", "resetkeys", "&*", "+@all"},
	} {
		t.Run(name, func(t *testing.T) {
			user, password := "default", "wrong"
			if rules == nil {
				ok(t, admin.ConfigSet(bg, "requirepass", "right").Err())
				defer func() {
					right := server.Client(t, func(o *redis.Options) { o.Password = "right" })
					ok(t, right.ConfigSet(bg, "requirepass", "").Err())
				}()
			} else {
				ok(t, admin.Do(bg, rules...).Err())
				user, password = rules[2].(string), "p"
			}
			m, _ := manager(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = user, password }), anteroom.Config{})
			begin := time.Now()
			_, err := m.Mutex("k").Acquire(bg)
			if !errors.Is(err, anteroom.ErrConfig) || time.Since(begin) > 2*time.Second {
				t.Fatalf("after %v: %v", time.Since(begin), err)
			}
			if m.Mutex("k").TryLock() {
				t.Fatal("locked")
			}
			t.Log(err)
		})
	}
}

// TestRefusalsOfTheServer_Channels: who may not publish on the channels of others cannot call them, and so does not wait in line.
func TestRefusalsOfTheServer_Channels(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t)
	admin := server.Client(t)
	ok(t, admin.Do(bg, "acl", "setuser", "nochannels", "on", ">p", "~*", "resetchannels", "+@all").Err())
	quiet := server.Client(t, func(o *redis.Options) { o.Username, o.Password = "nochannels", "p" })
	a, _ := manager(t, server.Client(t), anteroom.Config{})
	b, rec := manager(t, quiet, anteroom.Config{})
	h := acquire(t, a.Mutex("k"))
	_, err := b.Mutex("k").Acquire(bg, anteroom.Wait(time.Second))
	switch {
	case !testredis.AtLeast("7.0"): // there a script cannot ask what it may do, and b gets in line
		if !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("%v", err)
		}
	// The script refuses to make a place, or the refused subscription is reported first.
	case !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "anteroom:client:") || !strings.Contains(err.Error(), "docs/operations.md"):
		t.Errorf("%v", err)
	}
	ok(t, h.Release(bg))
	eventually(t, "the refusal is reported", func() bool { return len(rec.of(observe.EventWarning)) > 0 })
}
