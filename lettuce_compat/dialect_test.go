package lettucecompat_test

import (
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
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
	t.Parallel()
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
	want(t, "ours", lettucecompat.Redisson.Ours(ourUUID+big+":kept"), true)
	want(t, "Java's, whatever its thread is", lettucecompat.Redisson.Ours(javaUUID+big), false)
	want(t, "names", lettucecompat.DesignDocument.String()+" "+lettucecompat.Redisson.String()+" "+lettucecompat.RedissonUnsharded.String(),
		"document redisson redisson-unsharded")
}

// Both exclude each other and wake each other, and neither sees a key of the other's.
func TestDialect_RedissonSharesALock(t *testing.T) {
	t.Parallel()
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
		got := a.waits(0)
		want(t, "holder", got.Holder, java)
		want(t, "ours", a.Ours(java), false)
		want(t, "unlocked", redissonUnlock.Run(ctx, b.raw, []string{"k"}, java).Err(), nil)
		signal(t, "Java's release", w.C())
		a.takes()
		if info, err := a.Inspect(ctx, "k", false); err != nil || info.Subscribers != 2 || info.Holders[0].Client != ourUUID {
			t.Fatalf("%+v, %v", info, err)
		}
		if fields, err := a.ForceRelease(ctx, "k", false); err != nil || !slices.Equal(fields, []string{a.field(a.unit)}) {
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
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a := b.redisson(t, ourUUID)
		for _, key := range []string{"{a}b", "a{b"} {
			w := watchConfirmed(t, a.Client, key)
			want(t, "acquire", a.Do(ctx, asks(key, 0)).Word, has)
			want(t, "release", a.Do(ctx, gives(key, 0)).Word, hasNothing)
			signal(t, "release", w.C())
		}
	})
}

// hears waits for a message.
func hears(t testing.TB, heard <-chan *redis.Message, payload string) {
	t.Helper()
	select {
	case m := <-heard:
		want(t, "message", m.Payload, payload)
	case <-time.After(pace.Hang):
		t.Fatalf("no message %q", payload)
	}
}

func must2[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
