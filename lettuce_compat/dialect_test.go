package lettucecompat_test

import (
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// Ids of clients in Redisson's dialect: one of ours, and one of Redisson's own.
const (
	ourUUID  = "01234567-89ab-8cde-8123-456789abcdef"
	javaUUID = "01234567-89ab-4cde-8123-456789abcdef"
)

// redisson makes a peer in that dialect.
func (b *bed) redisson(t testing.TB, id string) *peer {
	t.Helper()
	return b.peer(t, id, func(o *lettucecompat.Options) { o.Dialect = lettucecompat.Redisson })
}

// redissonLock and redissonUnlock do to the lock of a name without a brace what Redisson's scripts do.
var (
	redissonLock = redis.NewScript(`if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
	redis.call('hincrby', KEYS[1], ARGV[2], 1)
	redis.call('pexpire', KEYS[1], ARGV[1])
	return false
end
return redis.call('pttl', KEYS[1])`)
	redissonUnlock = redis.NewScript(`if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return false end
if redis.call('hincrby', KEYS[1], ARGV[1], -1) == 0 then
	redis.call('del', KEYS[1])
	redis.call('publish', 'redisson_lock__channel:{' .. KEYS[1] .. '}', '0')
end
return 1`)
)

func TestDialect_Names(t *testing.T) {
	for key, channel := range map[string]string{
		"order:42": "redisson_lock__channel:{order:42}", "{a}b": "redisson_lock__channel:{a}b", "a{b}": "redisson_lock__channel:a{b}",
		"a{b": "redisson_lock__channel:a{b", "a}b": "redisson_lock__channel:{a}b}",
	} {
		want(t, "channel of "+key, lettucecompat.Channel(lettucecompat.Redisson, key), channel)
		a, valid := lettucecompat.Redisson.ParseRelease(channel, "0")
		want(t, "release of "+key, valid && a.Key == key && a.Holder == "" && a.At.IsZero(), true)
		_, valid = lettucecompat.Redisson.ParseRelease(channel, `{"lockKey":"k"}`)
		want(t, "a message of the other dialect", valid, false)
		patterns := lettucecompat.Redisson.ReleasePatterns(lettucecompat.QuotePattern(key))
		n := 0
		for i, p := range patterns {
			if regexp.MustCompile("^"+regexp.QuoteMeta(p)+"$").MatchString(channel) && lettucecompat.Redisson.Covers(i, a.Key) {
				n++
			}
		}
		want(t, "patterns for "+key, n, 1)
	}
	if _, valid := lettucecompat.Redisson.ParseRelease("lock:release:k", "0"); valid {
		t.Error("a channel of the other dialect")
	}
	for _, d := range []lettucecompat.Dialect{lettucecompat.Redisson, lettucecompat.RedissonUnsharded} {
		id := d.NewClientID("web")
		want(t, id, regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(id), true)
		want(t, "another", d.NewClientID("") != id, true)
		prefix, reserved := d.Reserved("redisson_lock_token:{k}")
		want(t, prefix, reserved, true)
	}
	_, reserved := lettucecompat.DesignDocument.Reserved("redisson_lock_token:{k}")
	want(t, "a prefix of the other dialect", reserved, false)
	big := ":" + strconv.FormatUint(first, 10)
	want(t, "ours", lettucecompat.Redisson.Calls(ourUUID+big+":kept"), true)
	want(t, "Java's, whatever its thread is", lettucecompat.Redisson.Calls(javaUUID+big), false)
	want(t, "names", lettucecompat.DesignDocument.String()+" "+lettucecompat.Redisson.String()+" "+lettucecompat.RedissonUnsharded.String(),
		"document redisson redisson-unsharded")
}

// Both exclude each other and wake each other, and neither sees a key of the other's.
func TestDialect_RedissonSharesALock(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a := b.redisson(t, ourUUID)
		java := javaUUID + ":57"
		ps := b.raw.Subscribe(ctx, "redisson_lock__channel:{k}")
		defer ps.Close()
		if _, err := ps.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		heard := ps.Channel()
		a.takes()
		b.holds(t, a)
		if pttl, err := redissonLock.Run(ctx, b.raw, []string{"k"}, 10000, java).Int64(); err != nil || pttl <= 0 {
			t.Fatal(pttl, err)
		}
		a.releases()
		hears(t, heard, "0")
		if err := redissonLock.Run(ctx, b.raw, []string{"k"}, 10000, java).Err(); err != redis.Nil {
			t.Fatal(err)
		}
		w := watchConfirmed(t, a.Client, "k")
		got := a.stands(0)
		want(t, "holder", got.Holder, java)
		want(t, "calls", a.Calls(java), false)
		want(t, "unlocked", redissonUnlock.Run(ctx, b.raw, []string{"k"}, java).Err(), nil)
		signal(t, "Java's release", w.C())
		a.takes()
		if info, err := a.Inspect(ctx, "k"); err != nil || info.Subscribers != 2 || info.Holders[0].Client != ourUUID {
			t.Fatalf("%+v, %v", info, err)
		}
		if fields, err := a.ForceRelease(ctx, "k"); err != nil || !slices.Equal(fields, []string{a.field()}) {
			t.Fatal(fields, err)
		}
		for range 2 { // Java's own, and the forced release
			hears(t, heard, "0")
		}
		select {
		case w := <-a.warns:
			t.Fatalf("%+v", w)
		default:
		}
	})
}

// A name that has a hash tag keeps it, in the scripts as in the client.
func TestDialect_ANameWithATag(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a := b.redisson(t, ourUUID)
		for _, key := range []string{"{a}b", "a{b"} {
			w := watchConfirmed(t, a.Client, key)
			field := lettucecompat.NewField(ourUUID, first)
			want(t, "acquire", a.TryAcquire(ctx, lockRequest(key, field)).Outcome, ok)
			want(t, "release", a.Release(ctx, lettucecompat.ReleaseRequest{Key: key, Field: field}).Outcome, ok)
			signal(t, "release", w.C())
		}
	})
}

// The tokens are RFencedLock's: one counter for both, without a time to live, that only grows.
func TestDialect_RedissonSharesTheCounter(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		const counter = "redisson_lock_token:{k}"
		a := b.redisson(t, ourUUID)
		incr := func() int64 { return b.raw.Incr(ctx, counter).Val() }
		grant := func(tokens int64) (first int64) {
			t.Helper()
			a.n++
			r := a.request()
			r.Tokens = tokens
			got := a.TryAcquire(ctx, r)
			want(t, "acquire", got.Outcome, ok)
			return got.Token
		}
		settle := func(last, reserved int64) lettucecompat.Outcome {
			return a.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: a.field(), Fenced: true, LastToken: last, ReservedUpTo: reserved}).Outcome
		}
		want(t, "Java's", incr(), int64(1))
		want(t, "ours", grant(5), int64(2))
		want(t, "TTL", b.raw.PTTL(ctx, counter).Val(), time.Duration(-1))
		want(t, "newest", must2(a.Inspect(ctx, "k")).Token, int64(6))
		want(t, "release", settle(3, 6), ok)
		want(t, "what was not used goes back", incr(), int64(4))
		want(t, "ours", grant(2), int64(5)) // 5 and 6: the counter is what the release before said
		want(t, "a repeat", a.Release(ctx, lettucecompat.ReleaseRequest{
			Key: "k", Field: lettucecompat.NewField(ourUUID, a.n-1), Fenced: true, LastToken: 3, ReservedUpTo: 6,
		}).Outcome, gone)
		want(t, "gives nothing back", b.raw.Get(ctx, counter).Val(), "6")
		turn := a.EndTurn(ctx, lettucecompat.TurnRequest{
			Key: "k", Field: a.field(), Lease: 10 * time.Second, Fenced: true, Tokens: 3, LastToken: 5, ReservedUpTo: 6,
		})
		want(t, "kept", turn.Kept, true)
		want(t, "the turn's", turn.Token, int64(6))
		burnt := a.field()
		a.n++
		r := a.request()
		r.Tokens, r.Drop, r.GiveBack = 1, []string{burnt}, lettucecompat.GiveBack{Field: burnt, LastToken: 6, ReservedUpTo: 8}
		want(t, "after a burnt field", a.TryAcquire(ctx, r).Token, int64(7))
		want(t, "a forced one", len(must2(a.ForceRelease(ctx, "k"))), 1)
		want(t, "the counter stays", incr(), int64(8))
		for _, fenced := range []bool{true, false} {
			if without, err := a.Rehearse(ctx, lettucecompat.RehearseRequest{Key: "k", Fenced: fenced}); err != nil || len(without) > 0 && b.mini == nil {
				t.Fatal(without, err)
			}
		}
		want(t, "a rehearsal leaves it", b.raw.Get(ctx, counter).Val(), "8")
		b.raw.FlushAll(ctx)
		if _, err := a.Rehearse(ctx, lettucecompat.RehearseRequest{Key: "k", Fenced: true}); err != nil {
			t.Fatal(err)
		}
		b.nothingLeft(t)
		b.raw.HSet(ctx, counter, "counter", "1")
		r = a.request()
		r.Tokens = 1
		if got := a.TryAcquire(ctx, r); got.Outcome != failed || !lettucecompat.Permanent(got.Err) {
			t.Fatalf("on a counter of another type: %+v", got)
		}
		want(t, "left", b.raw.Exists(ctx, "k").Val(), int64(0))
	})
}

// A Java waiter that listens gets its turn of a lock that one process takes again and again, also
// where nobody has ever stood in line; a monitor, which listens by a pattern, costs nothing there.
func TestLine_WhoListensGetsATurnOfALockWithoutALine(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		for _, pattern := range []bool{false, true} {
			b.raw.FlushAll(ctx)
			ps := b.listener(t, pattern)
			a := b.peer(t, "a")
			a.takes()
			a.releases()
			got := a.acquire()
			want(t, "left open", got.Outcome == refused && got.Holder == "" && got.TTL > 0, !pattern)
			_ = ps.Close()
			a.Close()
		}
	})
}

// Whoever was let in has used its chance: the lock is not left open for the rest of the time.
func TestLine_AnOpenTurnEndsWithTheFirstStranger(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x := b.peer(t, "a"), b.peer(t, "x")
		a.takes()
		x.stands(0)
		b.raw.HSet(ctx, lineOfK, "open", b.raw.Time(ctx).Val().Add(900*time.Millisecond).UnixMilli())
		b.raw.Del(ctx, "k")
		b.put(t, "k", hash{"server1-thread-1": "1"}, time.Minute)
		want(t, "refused", x.confirm().Holder, "server1-thread-1")
		b.raw.Del(ctx, "k")
		want(t, "called", x.confirm().Called, true)
	})
}

// The count of turns since a stranger had one outlasts the last place, and whoever releases counts
// in the round: of two processes and one stranger, each second turn of ours ends open.
func TestLine_TheCountStays(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		b.listener(t, false)
		a, x := b.peer(t, "a"), b.peer(t, "x")
		a.takes()
		x.stands(0)
		a.releases() // the first of two turns: x is called, and the line has no place any more
		x.called()
		a.stands(0)
		x.releases() // the second
		want(t, "left open", b.raw.Exists(ctx, "k").Val(), int64(0))
		want(t, "for us", a.looked() > 0, true)
	})
}

// hears waits for a message.
func hears(t testing.TB, heard <-chan *redis.Message, payload string) {
	t.Helper()
	select {
	case m := <-heard:
		want(t, "message", m.Payload, payload)
	case <-time.After(10 * time.Second):
		t.Fatalf("no message %q", payload)
	}
}

func must2[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Holds that outlast the count of turns do not keep a stranger out: where nothing is known of the
// turns before, the first one ends open. A busy lock still counts from there.
func TestLine_WhoListensGetsATurnOfLongHolds(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		b.listener(t, false)
		a := b.peer(t, "a")
		before := ""
		open := func() bool {
			t.Helper()
			a.takes()
			a.releases()
			until := b.raw.HGet(ctx, lineOfK, "open").Val()
			if until == before || until == "0" {
				return false
			}
			before = strconv.FormatInt(b.raw.Time(ctx).Val().UnixMilli()-1, 10)
			b.raw.HSet(ctx, lineOfK, "open", before) // nobody came
			return true
		}
		for range 3 {
			want(t, "after a long hold", open(), true)
			b.raw.Del(ctx, lineOfK) // its time was over
			before = ""
		}
		want(t, "the first", open(), true)
		want(t, "one that follows soon", open(), false)
		want(t, "the second of those", open(), true)
	})
}
