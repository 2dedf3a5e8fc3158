package lettucecompat_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

const (
	ok      = lettucecompat.OutcomeOK
	refused = lettucecompat.OutcomeRefused
	gone    = lettucecompat.OutcomeGone
	failed  = lettucecompat.OutcomeFailed
	unknown = lettucecompat.OutcomeUnknown
)

type hash = map[string]string

// put sets the state before a script: a hash with a TTL (0: none), or a string.
func (b *bed) put(t testing.TB, key string, fields hash, ttl time.Duration) {
	t.Helper()
	for f, v := range fields {
		if err := b.raw.HSet(ctx, key, f, v).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if ttl > 0 {
		b.raw.PExpire(ctx, key, ttl)
	}
}

// TestWire_I5_CountStaysOne goes through every state that an attempt may find.
func TestWire_I5_CountStaysOne(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		for _, tc := range []struct {
			name           string
			before         hash
			ttl            time.Duration
			request        lettucecompat.AcquireRequest
			outcome        lettucecompat.Outcome
			holder         string
			after          hash
			ttlMin, ttlMax time.Duration
		}{
			{"free", nil, 0, lettucecompat.AcquireRequest{}, ok, "", hash{"me:1": "1"}, 9 * time.Second, 10 * time.Second},
			{"held", hash{"you:1": "1"}, 5 * time.Second, lettucecompat.AcquireRequest{}, refused, "you:1", hash{"you:1": "1"}, 4 * time.Second, 5 * time.Second},
			{"held without end", hash{"you:1": "1"}, 0, lettucecompat.AcquireRequest{}, refused, "you:1", hash{"you:1": "1"}, -1, -1},
			{"first attempt finds its field", hash{"me:1": "1"}, 5 * time.Second, lettucecompat.AcquireRequest{}, failed, "", hash{"me:1": "1"}, 4 * time.Second, 5 * time.Second},
			{"marked repeat", hash{"me:1": "1"}, 5 * time.Second, lettucecompat.AcquireRequest{Repeat: true}, ok, "", hash{"me:1": "1"}, 9 * time.Second, 10 * time.Second},
			{"repeat repairs the count", hash{"me:1": "3"}, 5 * time.Second, lettucecompat.AcquireRequest{Repeat: true}, ok, "", hash{"me:1": "1"}, 9 * time.Second, 10 * time.Second},
			{"repeat never shortens", hash{"me:1": "1"}, time.Minute, lettucecompat.AcquireRequest{Repeat: true}, ok, "", hash{"me:1": "1"}, 59 * time.Second, time.Minute},
			{"repeat on a free key", nil, 0, lettucecompat.AcquireRequest{Repeat: true}, ok, "", hash{"me:1": "1"}, 9 * time.Second, 10 * time.Second},
			{"drops a burnt field", hash{"me:0": "1"}, time.Minute, lettucecompat.AcquireRequest{Drop: []string{"me:7", "me:0"}}, ok, "", hash{"me:1": "1"}, 9 * time.Second, 10 * time.Second},
			{"drops beside another holder", hash{"me:0": "1", "you:1": "1"}, time.Minute, lettucecompat.AcquireRequest{Drop: []string{"me:0"}}, refused, "you:1", hash{"you:1": "1"}, 59 * time.Second, time.Minute},
			{"a mark of MinHold refuses", hash{"me:0:kept": "1"}, 5 * time.Second, lettucecompat.AcquireRequest{Drop: []string{"me:0"}}, refused, "me:0:kept", hash{"me:0:kept": "1"}, 4 * time.Second, 5 * time.Second},
		} {
			t.Run(tc.name, func(t *testing.T) {
				b.raw.FlushAll(ctx)
				b.put(t, "k", tc.before, tc.ttl)
				r := tc.request
				r.Key, r.Field, r.Lease = "k", "me:1", 10*time.Second
				got := c.TryAcquire(ctx, r)
				want(t, "outcome", got.Outcome, tc.outcome)
				want(t, "holder", got.Holder, tc.holder)
				want(t, "error", got.Err != nil, tc.outcome == failed)
				want(t, "permanent", lettucecompat.Permanent(got.Err), tc.outcome == failed)
				if got.SentAt.IsZero() {
					t.Fatal("SentAt is zero though the command was answered")
				}
				b.wantHash(t, "k", tc.after)
				b.wantTTL(t, "k", tc.ttlMin, tc.ttlMax)
				if tc.outcome == refused {
					want(t, "refused TTL without end", got.TTL < 0, tc.ttl == 0)
				}
			})
		}
	})
}

func TestScriptRelease(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		for _, tc := range []struct {
			name    string
			before  hash
			keep    time.Duration
			outcome lettucecompat.Outcome
			after   hash
		}{
			{"held", hash{"me:1": "1"}, 0, ok, hash{}},
			{"gone", nil, 0, gone, hash{}},
			{"held by another", hash{"you:1": "1"}, 0, gone, hash{"you:1": "1"}},
			{"beside another", hash{"me:1": "1", "you:1": "1"}, 0, ok, hash{"you:1": "1"}},
			{"kept", hash{"me:1": "1"}, 3 * time.Second, ok, hash{"me:1:kept": "1"}},
			{"kept, repeated", hash{"me:1:kept": "1"}, 3 * time.Second, ok, hash{"me:1:kept": "1"}},
			{"kept, but gone", nil, 3 * time.Second, gone, hash{}},
			{"an older mark is not ours", hash{"me:0:kept": "1"}, 0, gone, hash{"me:0:kept": "1"}},
		} {
			t.Run(tc.name, func(t *testing.T) {
				b.raw.FlushAll(ctx)
				b.put(t, "k", tc.before, 10*time.Second)
				got := c.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: "me:1", Keep: tc.keep})
				want(t, "outcome", got.Outcome, tc.outcome)
				want(t, "error", got.Err, nil)
				b.wantHash(t, "k", tc.after)
				if tc.keep > 0 && tc.before["me:1"] != "" {
					b.wantTTL(t, "k", 2*time.Second, 3*time.Second)
				}
			})
		}
	})
}

func TestScriptRenewAndStatus(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		b.put(t, "mine", hash{"me:1": "1"}, 5*time.Second)
		b.put(t, "long", hash{"me:2": "1"}, time.Minute)
		b.put(t, "endless", hash{"me:3": "1"}, 0)
		b.put(t, "theirs", hash{"you:1": "1"}, 5*time.Second)
		b.raw.Set(ctx, "string", "x", 0)
		items := []lettucecompat.Renewal{
			{Key: "mine", Field: "me:1"},
			{Key: "string", Field: "me:9"},
			{Key: "long", Field: "me:2"},
			{Key: "endless", Field: "me:3"},
			{Key: "theirs", Field: "me:4"},
			{Key: "missing", Field: "me:5"},
		}
		outcomes := []lettucecompat.Outcome{ok, gone, ok, ok, gone, gone}
		var queries []lettucecompat.Query
		for i := range items {
			items[i].Lease = 10 * time.Second
			queries = append(queries, lettucecompat.Query{Key: items[i].Key, Field: items[i].Field})
		}
		for i, got := range c.Renew(ctx, items, 0) {
			want(t, items[i].Key+": renewal", got.Outcome, outcomes[i])
			want(t, items[i].Key+": error", got.Err, nil)
		}
		b.wantTTL(t, "mine", 9*time.Second, 10*time.Second)
		b.wantTTL(t, "long", 59*time.Second, time.Minute)
		b.wantTTL(t, "endless", 9*time.Second, 10*time.Second)
		b.wantTTL(t, "theirs", 4*time.Second, 5*time.Second)
		want(t, "missing exists", b.raw.Exists(ctx, "missing").Val(), int64(0))
		for i, got := range c.Status(ctx, queries, 0) {
			want(t, items[i].Key+": status", got.Outcome, outcomes[i])
			if got.Outcome == ok && (got.Count != 1 || got.Fields != 1 || got.TTL <= 0) {
				t.Fatalf("%s: %+v", items[i].Key, got)
			}
		}
		want(t, "extend", c.Extend(ctx, lettucecompat.Renewal{Key: "mine", Field: "me:1", Lease: time.Hour}, 0).Outcome, ok)
		b.wantTTL(t, "mine", 59*time.Minute, time.Hour)
	})
}

func TestScriptAcquireOnOtherType(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		b.raw.Set(ctx, "k", "x", 0)
		got := c.TryAcquire(ctx, lettucecompat.AcquireRequest{Key: "k", Field: "me:1", Lease: time.Second})
		want(t, "outcome", got.Outcome, failed)
		want(t, "permanent", lettucecompat.Permanent(got.Err), true)
		if !strings.Contains(got.Err.Error(), "type string") {
			t.Fatalf("the error does not name the key's type: %v", got.Err)
		}
		want(t, "value", b.raw.Get(ctx, "k").Val(), "x")
		want(t, "release", c.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: "me:1"}).Outcome, gone)
		want(t, "turn", c.EndTurn(ctx, lettucecompat.TurnRequest{Key: "k", Field: "me:1", Lease: time.Second}).Outcome, gone)
		_, err := c.ForceRelease(ctx, "k")
		want(t, "force is permanent", lettucecompat.Permanent(err), true)
	})
}

func TestScriptTurn(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		b.put(t, "k", hash{"me:1": "1"}, 5*time.Second)
		r := lettucecompat.TurnRequest{Key: "k", Field: "me:1", Lease: 10 * time.Second}
		kept := c.EndTurn(ctx, r)
		want(t, "kept", kept.Outcome == ok && kept.Kept, true)
		b.wantTTL(t, "k", 9*time.Second, 10*time.Second)

		own := c.Watch("k") // our own subscription does not count
		defer own.Close()
		eventually(t, "own subscription", own.Confirmed)
		want(t, "kept though subscribed ourselves", c.EndTurn(ctx, r).Kept, true)

		ps := b.raw.Subscribe(ctx, "lock:release:k")
		defer ps.Close()
		if _, err := ps.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		released := c.EndTurn(ctx, r)
		want(t, "outcome", released.Outcome, ok)
		want(t, "kept", released.Kept, false)
		b.wantHash(t, "k", hash{})
		if _, err := ps.ReceiveMessage(ctx); err != nil {
			t.Fatal(err)
		}
		want(t, "repeated", c.EndTurn(ctx, r).Outcome, gone)
	})
}

func TestScriptInspectAndForce(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		info, err := c.Inspect(ctx, "k")
		if err != nil || info.Exists || info.Type != "none" {
			t.Fatalf("free key: %+v, %v", info, err)
		}
		got := c.TryAcquire(ctx, lettucecompat.AcquireRequest{Key: "k", Field: "me:1", Lease: 10 * time.Second, Tokens: 5})
		want(t, "acquire", got.Outcome, ok)
		b.put(t, "k", hash{"server1-thread-1": "2"}, 0)
		info, err = c.Inspect(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		want(t, "type", info.Type, "hash")
		want(t, "token", info.Token, got.Token+4)
		want(t, "holders", len(info.Holders), 2)
		for _, h := range info.Holders {
			want(t, "client of "+h.Field, h.Client, map[string]string{"me:1": "me", "server1-thread-1": ""}[h.Field])
			want(t, "count of "+h.Field, strconv.FormatInt(h.Count, 10), map[string]string{"me:1": "1", "server1-thread-1": "2"}[h.Field])
		}
		released, err := c.ForceRelease(ctx, "k")
		if err != nil || len(released) != 2 {
			t.Fatalf("force: %v, %v", released, err)
		}
		want(t, "exists", b.raw.Exists(ctx, "k").Val(), int64(0))
		want(t, "taken again", c.Extend(ctx, lettucecompat.Renewal{Key: "k", Field: "me:1", Lease: time.Second, Reacquire: true}, 0).Outcome, gone)
		released, err = c.ForceRelease(ctx, "k")
		if err != nil || len(released) != 0 {
			t.Fatalf("force on a free key: %v, %v", released, err)
		}
	})
}

// TestWire_I4_OnlyRaises: a late renewal, a repeat and a kept turn leave a longer lease
// alone; a release with Keep sets it, and no late renewal undoes that.
func TestWire_I4_OnlyRaises(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		b.put(t, "k", hash{"me:1": "1"}, time.Hour)
		want(t, "renew", c.Extend(ctx, lettucecompat.Renewal{Key: "k", Field: "me:1", Lease: time.Second}, 0).Outcome, ok)
		want(t, "turn", c.EndTurn(ctx, lettucecompat.TurnRequest{Key: "k", Field: "me:1", Lease: time.Second}).Kept, true)
		repeat := lockRequest("k", "me:1")
		repeat.Repeat = true
		want(t, "repeat", c.TryAcquire(ctx, repeat).Outcome, ok)
		b.wantTTL(t, "k", 59*time.Minute, time.Hour)

		want(t, "keep", c.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: "me:1", Keep: 5 * time.Second}).Outcome, ok)
		want(t, "late renewal", c.Extend(ctx, lettucecompat.Renewal{Key: "k", Field: "me:1", Lease: time.Hour}, 0).Outcome, gone)
		b.wantTTL(t, "k", 4*time.Second, 5*time.Second)
	})
}

// TestWire_I6_OthersStay: whatever we ask about our field, a stranger's stays.
func TestWire_I6_OthersStay(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		theirs := hash{"server1-thread-1": "2"}
		b.put(t, "k", theirs, time.Hour)
		c.TryAcquire(ctx, lettucecompat.AcquireRequest{Key: "k", Field: "me:1", Lease: time.Second, Repeat: true, Drop: []string{"me:0"}})
		c.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: "me:1", Keep: time.Second, Fenced: true})
		c.EndTurn(ctx, lettucecompat.TurnRequest{Key: "k", Field: "me:1", Lease: time.Second, Fenced: true})
		c.Renew(ctx, []lettucecompat.Renewal{{Key: "k", Field: "me:1", Lease: time.Second, Reacquire: true}}, 0)
		b.wantHash(t, "k", theirs)
		b.wantTTL(t, "k", 59*time.Minute, time.Hour)
	})
}

// A grant says which of the burnt fields was there: by that a release that got no usable
// answer is known to have been carried out by the attempt, or not.
func TestWire_AGrantSaysWhatItDropped(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		for name, before := range map[string]hash{"me:0": {"me:0": "1"}, "": nil} {
			b.raw.Del(ctx, "k")
			b.put(t, "k", before, time.Minute)
			r := c.TryAcquire(ctx, lettucecompat.AcquireRequest{Key: "k", Field: "me:1", Lease: 10 * time.Second, Drop: []string{"me:7", "me:0"}})
			if r.Outcome != ok || r.Dropped != name {
				t.Errorf("with %v there: %+v", before, r)
			}
		}
	})
}
