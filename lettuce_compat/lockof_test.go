package lettucecompat_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// TestState_P15_WhatALockIs: every script refuses the same values, and leaves them as they are. Only who says that it has
// the lock, or gives back what it may have, learns that there is nothing of it.
func TestState_P15_WhatALockIs(t *testing.T) {
	t.Parallel()
	many := func(n int) hash {
		h := hash{}
		for i := range n {
			h[fmt.Sprint("f", i)] = "1"
		}
		return h
	}
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		for _, tc := range []struct {
			name    string
			put     func(key string)
			lock    bool // it is one
			strings bool // it is one where strings are
			says    string
		}{
			{"nothing", func(string) {}, true, true, ""},
			{"a count", func(key string) { b.put(t, key, hash{"server1-thread-1": "1"}, 0) }, true, true, ""},
			{"counts", func(key string) { b.put(t, key, hash{"server1-thread-1": "3", "other": "12", "": "0"}, 0) }, true, true, ""},
			{"a mark", func(key string) { b.put(t, key, hash{"you:1700000000000000:kept": "1"}, 0) }, true, true, ""},
			{"64 counts", func(key string) { b.put(t, key, many(64), 0) }, true, true, ""},
			{"65 counts", func(key string) { b.put(t, key, many(65), 0) }, false, false, "a hash that is no lock"},
			{"a session", func(key string) { b.put(t, key, hash{"user": "anna", "visits": "7"}, 0) }, false, false, "a hash that is no lock"},
			{"a price", func(key string) { b.put(t, key, hash{"price": "7.5"}, 0) }, false, false, "a hash that is no lock"},
			{"a debt", func(key string) { b.put(t, key, hash{"debt": "-7"}, 0) }, false, false, "a hash that is no lock"},
			{"an empty value", func(key string) { b.put(t, key, hash{"name": ""}, 0) }, false, false, "a hash that is no lock"},
			{"another kind", func(key string) { b.put(t, key, hash{":": "later", "you": "1 1 1 0 1"}, 0) }, false, false, "a lock of another kind"},
			{"a string", func(key string) { b.raw.Set(ctx, key, "theirs", 0) }, false, true, "a value of type string"},
			{"a list", func(key string) { b.raw.RPush(ctx, key, "1") }, false, false, "a value of type list"},
			{"a set", func(key string) { b.raw.SAdd(ctx, key, "1") }, false, false, "a value of type set"},
			{"a sorted set", func(key string) { b.raw.ZAdd(ctx, key) }, true, true, ""}, // empty: nothing
		} {
			for _, stringsAreLocks := range []bool{false, true} {
				b.raw.FlushAll(ctx)
				tc.put("k")
				before := b.dump("k")
				terms := terms
				if stringsAreLocks {
					terms = stringTerms
				}
				state := func(s lettucecompat.Command) error {
					s.Terms = terms
					return c.Do(ctx, s).Err
				}
				try, leave := asks("k", 1), asks("k", 2)
				try.Try = true
				leave.Want = 0
				confirm := asks("k", 3)
				confirm.Have, confirm.Keep = place, 1
				renew := gives("k", 4)
				renew.Keep, renew.Want = 1, 1
				answers := map[string]error{"confirm": state(confirm)}
				for what, s := range map[lettucecompat.Word]lettucecompat.Command{
					lettucecompat.WordNothing: leave, lettucecompat.WordLost: gives("k", 4),
				} {
					s.Terms = terms
					a := c.Do(ctx, s)
					want(t, tc.name+": gives back", a.Err, nil)
					want(t, tc.name+": gives back", a.Word, what)
				}
				renew.Terms = terms
				want(t, tc.name+": renews", c.Do(ctx, renew).Word, lettucecompat.WordLost)
				_, answers["inspect"] = c.Inspect(ctx, "k", stringsAreLocks)
				answers["rehearse"] = c.Rehearse(ctx, lettucecompat.RehearseRequest{Key: "k", Strings: stringsAreLocks})
				isLock := tc.lock || stringsAreLocks && tc.strings
				if !isLock {
					answers["acquire"], answers["try"] = state(asks("k", 5)), state(try)
					_, answers["force"] = c.ForceRelease(ctx, "k", stringsAreLocks)
				}
				for what, err := range answers {
					switch {
					case isLock && err != nil:
						t.Errorf("%s: %s: %v", tc.name, what, err)
					case !isLock && (!lettucecompat.Permanent(err) || !strings.Contains(err.Error(), "WRONGTYPE the key holds "+tc.says)):
						t.Errorf("%s: %s: %v, want %q", tc.name, what, err, tc.says)
					}
				}
				want(t, tc.name+": renewal of a batch", c.Renew(ctx, []lettucecompat.Renewal{renews("k", 1)}, 0)[0].Outcome, gone)
				want(t, tc.name+": status", c.Status(ctx, []lettucecompat.Query{{Key: "k", Field: me(1)}}, 0)[0].Outcome, gone)
				want(t, tc.name+": value", b.dump("k"), before)
				want(t, tc.name+": line", b.raw.Exists(ctx, lineOfK).Val(), int64(0))
				if isLock {
					free := b.raw.Exists(ctx, "k").Val() == 0
					fields, err := c.ForceRelease(ctx, "k", stringsAreLocks)
					want(t, tc.name+": forced", err, nil)
					want(t, tc.name+": something was there", len(fields) > 0, !free)
					want(t, tc.name+": gone", b.raw.Exists(ctx, "k").Val(), int64(0))
				}
			}
		}
	})
}

// dump is the value of a key, as far as the tests above need it.
func (b *bed) dump(key string) string {
	switch b.raw.Type(ctx, key).Val() {
	case "hash":
		return fmt.Sprint(b.raw.HGetAll(ctx, key).Val())
	case "string":
		return b.raw.Get(ctx, key).Val()
	case "list":
		return fmt.Sprint(b.raw.LRange(ctx, key, 0, -1).Val())
	}
	return fmt.Sprint(b.raw.SMembers(ctx, key).Val())
}

// TestInspectAndForce: who holds the lock, and that nobody does afterwards.
func TestInspectAndForce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x, y, z := b.fencedPeer(t, "a"), b.peer(t, "x"), b.peer(t, "y"), b.peer(t, "z")
		info, err := a.Inspect(ctx, "k", false)
		if err != nil || info.Exists || info.Type != "none" || info.InLine != 0 || info.First != "" || info.Token != 0 {
			t.Fatalf("free key: %+v, %v", info, err)
		}
		got := a.takes()
		for i, p := range []*peer{x, y, z} {
			p.waits(i)
		}
		a.contended()
		b.put(t, "k", hash{"server1-thread-1": "2"}, time.Minute)
		info, err = a.Inspect(ctx, "k", false)
		if err != nil {
			t.Fatal(err)
		}
		want(t, "type", info.Type, "hash")
		want(t, "token", info.Token, got.Token)
		want(t, "in line", info.InLine, 3)
		want(t, "first", info.First, "x")
		want(t, "holders", len(info.Holders), 2)
		for _, h := range info.Holders {
			want(t, "client of "+h.Field, h.Client, map[string]string{a.field(a.unit): "a", "server1-thread-1": ""}[h.Field])
			want(t, "count of "+h.Field, h.Count, map[string]int64{a.field(a.unit): 1, "server1-thread-1": 2}[h.Field])
		}
		released, err := z.ForceRelease(ctx, "k", false)
		if err != nil || len(released) != 2 {
			t.Fatalf("force: %v, %v", released, err)
		}
		want(t, "forced", a.message(lettucecompat.MessageForced).N, a.unit)
		want(t, "retries", x.retries(), time.Duration(0))
		want(t, "retries", y.retries(), time.Duration(0))
		z.silent()
		want(t, "exists", b.raw.Exists(ctx, "k").Val(), int64(0))
		r := lettucecompat.Renewal{Key: "k", Field: a.field(a.unit), Lease: time.Second}
		want(t, "renewed", a.Extend(ctx, r, 0).Outcome, gone)
		y.wantWord("confirm", y.confirm(), waits)
		x.called()
		x.releases()
		y.called()
		y.releases()
		z.called()
		z.releases()
		released, err = a.ForceRelease(ctx, "k", false)
		if err != nil || len(released) != 0 {
			t.Fatalf("force on a free key: %v, %v", released, err)
		}
	})
}

// TestRenewAndStatus: a batch of keys in every state. One bad key fails no other, and no time to live is lowered.
func TestRenewAndStatus(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		b.put(t, "mine", hash{me(1): "1"}, lease/2)
		b.put(t, "long", hash{me(2): "1"}, 2*lease)
		b.put(t, "endless", hash{me(3): "1"}, 0)
		b.put(t, "theirs", hash{"you:1": "1"}, lease/2)
		b.raw.Set(ctx, "string", "x", 0)
		var items []lettucecompat.Renewal
		var queries []lettucecompat.Query
		outcomes := []lettucecompat.Outcome{ok, gone, ok, ok, gone, gone}
		for i, key := range []string{"mine", "string", "long", "endless", "theirs", "missing"} {
			field := me([]int{1, 9, 2, 3, 4, 5}[i])
			items = append(items, lettucecompat.Renewal{Key: key, Field: field, Lease: lease})
			queries = append(queries, lettucecompat.Query{Key: key, Field: field})
		}
		for i, got := range c.Renew(ctx, items, 0) {
			want(t, items[i].Key+": renewal", got.Outcome, outcomes[i])
			want(t, items[i].Key+": error", got.Err, nil)
		}
		b.wantTTL(t, "mine", lease-margin, lease)
		b.wantTTL(t, "long", 2*lease-margin, 2*lease+time.Millisecond)
		b.wantTTL(t, "endless", lease-margin, lease)
		b.wantTTL(t, "theirs", lease/2-margin, lease/2)
		want(t, "missing exists", b.raw.Exists(ctx, "missing").Val(), int64(0))
		for i, got := range c.Status(ctx, queries, 0) {
			want(t, items[i].Key+": status", got.Outcome, outcomes[i])
			if got.Outcome == ok && (got.Count != 1 || got.Fields != 1 || got.TTL <= 0) {
				t.Fatalf("%s: %+v", items[i].Key, got)
			}
		}
		more := renews("mine", 1)
		more.Lease = 3 * lease
		want(t, "extend", c.Extend(ctx, more, 0).Outcome, ok)
		b.wantTTL(t, "mine", 3*lease-margin, 3*lease)
	})
}

// TestWire_I6_OthersStay: no command, whatever it says, deletes what others have.
func TestWire_I6_OthersStay(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		others := hash{"you:1700000000000001": "1", "me2:1700000000000001": "1", "server1": "2", me(1) + ":kept": "1"}
		b.put(t, "k", others, time.Minute)
		c := b.client(t)
		for what := range int64(12) {
			s := gives("k", 1)
			s.N += uint64(what)
			s.Have, s.Units, s.Keep, s.Want, s.Mark = lettucecompat.Have(what/4), what/8, what/2%2, what%2, time.Second
			if s.Have == nothing {
				s.Keep = 0
			}
			if got := c.Do(ctx, s); got.Outcome != ok {
				t.Fatalf("%+v: %+v", s, got)
			}
			b.wantHash(t, "k", others)
		}
	})
}
