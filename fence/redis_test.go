package fence_test

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/fence"
	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
)

func TestRedis_RefusesASmallerToken(t *testing.T) {
	rdb := testredis.Start(t).Client(t)
	g := fence.Redis{Client: rdb}
	kept := ""
	for _, step := range []struct {
		value string
		token int64
		seen  string // by which it is refused
	}{
		{"first", 9, ""},
		{"again", 9, ""},
		{"longer", 10, ""}, // as text 9 is greater
		{"late", 9, "10"},
		{"2^53", 1 << 53, ""},
		{"2^53 + 1", 1<<53 + 1, ""},
		{"one less", 1 << 53, "9007199254740993"}, // Lua's numbers do not tell these apart
		{"last", math.MaxInt64, ""},
		{"never", math.MaxInt64 - 1, "9223372036854775807"},
	} {
		err := g.Set(t.Context(), "k", step.value, 0, step.token)
		if step.seen == "" {
			kept = step.value
		}
		if errors.Is(err, fence.ErrStale) != (step.seen != "") || err != nil && step.seen == "" {
			t.Errorf("%s: %v", step.value, err)
		}
		if err != nil && !(strings.Contains(err.Error(), `"k"`) && strings.Contains(err.Error(), step.seen)) {
			t.Errorf("the error does not name the key and the token %s: %v", step.seen, err)
		}
		if got := rdb.Get(t.Context(), "k").Val(); got != kept {
			t.Errorf("after %q the value is %q, want %q", step.value, got, kept)
		}
	}
}

// Every type that go-redis sends is set as its Set does.
func TestRedis_SetsWhatGoRedisSets(t *testing.T) {
	rdb := testredis.Start(t).Client(t)
	g := fence.Redis{Client: rdb}
	for _, value := range []any{"text", []byte("a\x00b"), 7, 1.5, true, time.Unix(1, 0).UTC()} {
		if err := errors.Join(g.Set(t.Context(), "ours", value, 0, 1), rdb.Set(t.Context(), "theirs", value, 0).Err()); err != nil {
			t.Error(err)
		}
		if ours, theirs := rdb.Get(t.Context(), "ours").Val(), rdb.Get(t.Context(), "theirs").Val(); ours != theirs {
			t.Errorf("%v: %q, want %q", value, ours, theirs)
		}
	}
}

func TestRedis_TheTokenOutlivesTheValue(t *testing.T) {
	rdb := testredis.Start(t).Client(t)
	const record = "anteroom:seen:{k}"
	left := func(key string, want time.Duration) {
		t.Helper()
		if got := rdb.PTTL(t.Context(), key).Val(); got != want && (want < 0 || got > want || got < want-pace.Hang) {
			t.Errorf("%s has %v left, want %v", key, got, want)
		}
	}
	const forEver = -1 // go-redis' answer
	g, short := fence.Redis{Client: rdb}, fence.Redis{Client: rdb, RecordTime: time.Hour}
	for _, step := range []struct {
		g                 fence.Redis
		ttl, value, token time.Duration
	}{
		{g, 0, forEver, forEver},
		{g, time.Hour, time.Hour, time.Hour + 7*24*time.Hour},
		{short, time.Hour, time.Hour, 2 * time.Hour},
		{short, 0, forEver, forEver},
	} {
		if err := step.g.Set(t.Context(), "k", "v", step.ttl, 8); err != nil {
			t.Fatal(err)
		}
		left("k", step.value)
		left(record, step.token)
	}
	if err := g.Set(t.Context(), "k", "v", time.Millisecond, 8); err != nil {
		t.Fatal(err)
	}
	for rdb.Exists(t.Context(), "k").Val() == 1 {
		time.Sleep(time.Millisecond) // it expires
	}
	if err := g.Set(t.Context(), "k", "late", 0, 7); !errors.Is(err, fence.ErrStale) {
		t.Errorf("a stale token after the value has expired: %v", err)
	}
	if n := rdb.Exists(t.Context(), "k").Val(); n != 0 {
		t.Error("it was set")
	}
}

func TestRedis_LeavesAKeyOfAnotherType(t *testing.T) {
	rdb := testredis.Start(t).Client(t)
	if err := rdb.HSet(t.Context(), "lock", "holder", 1).Err(); err != nil {
		t.Fatal(err)
	}
	if err := (fence.Redis{Client: rdb}).Set(t.Context(), "lock", "v", 0, 7); err == nil || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("Set of a hash: %v", err)
	}
	if keys := rdb.Keys(t.Context(), "*").Val(); len(keys) != 1 || rdb.HLen(t.Context(), "lock").Val() != 1 {
		t.Errorf("it has left %v", keys)
	}
}

func TestRedis_Refuses(t *testing.T) {
	rdb := testredis.Start(t).Client(t)
	for what, err := range map[string]error{
		"token 0":             fence.Redis{Client: rdb}.Set(t.Context(), "k", "v", 0, 0),
		"a negative token":    fence.Redis{Client: rdb}.Set(t.Context(), "k", "v", 0, -1),
		"KeepTTL":             fence.Redis{Client: rdb}.Set(t.Context(), "k", "v", redis.KeepTTL, 1),
		"a ttl of 0.5 ms":     fence.Redis{Client: rdb}.Set(t.Context(), "k", "v", time.Millisecond/2, 1),
		"no RecordTime":       fence.Redis{Client: rdb, RecordTime: -1}.Set(t.Context(), "k", "v", time.Second, 1),
		"a ttl too long":      fence.Redis{Client: rdb}.Set(t.Context(), "k", "v", math.MaxInt64, 1),
		"a value of any type": fence.Redis{Client: rdb}.Set(t.Context(), "k", struct{}{}, 0, 1),
		"a pipeline":          fence.Redis{Client: rdb.Pipeline()}.Set(t.Context(), "k", "v", 0, 1),
	} {
		if err == nil || errors.Is(err, fence.ErrStale) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := rdb.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// A process in which only FIPS 140's algorithms work can use the package: it computes no SHA-1.
func TestRedis_UnderFIPSOnly(t *testing.T) {
	const child = "FENCE_FIPS_REDIS"
	if addr := os.Getenv(child); addr != "" {
		rdb := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})
		defer rdb.Close()
		if err := (fence.Redis{Client: rdb}).Set(t.Context(), "k", "v", 0, 1); err != nil {
			t.Error(err)
		}
		return
	}
	s := testredis.Start(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestRedis_UnderFIPSOnly$")
	cmd.Env = append(os.Environ(), child+"="+s.Addr(), "GODEBUG=fips140=only")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := s.Client(t).Get(t.Context(), "k").Val(); got != "v" {
		t.Errorf("the value is %q", got)
	}
}

// On a Cluster value and token are in one slot, for every key that can be so.
func TestRedis_OnACluster_Lab(t *testing.T) {
	rdb := testredis.StartCluster(t, 3, 0).Client(t)
	g := fence.Redis{Client: rdb}
	for _, key := range []string{"k", "order:1", "order:2", "{order:1}:state", "a{t}b", "tag:x"} {
		if err := errors.Join(g.Set(t.Context(), key, "v", time.Minute, 8), g.Set(t.Context(), key, "v", time.Minute, 9)); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if err := g.Set(t.Context(), key, "v", time.Minute, 8); !errors.Is(err, fence.ErrStale) {
			t.Errorf("%s: %v", key, err)
		}
	}
	for _, key := range []string{"a{b", "x{}y"} {
		if err := g.Set(t.Context(), key, "v", time.Minute, 8); err == nil || !strings.Contains(err.Error(), "CROSSSLOT") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// The rights of the documentation are enough.
func TestRedis_ACL(t *testing.T) {
	s := testredis.Start(t)
	rules := []any{"acl", "setuser", "u", "on", "nopass", "+eval", "+get", "+set", "+type", "~state:*", "~anteroom:seen:{state:*"}
	if err := s.Client(t).Do(t.Context(), rules...).Err(); err != nil {
		t.Fatal(err)
	}
	rdb := s.Client(t, func(o *redis.Options) { o.Username, o.Password = "u", "any" })
	for _, ttl := range []time.Duration{0, time.Hour} {
		if err := (fence.Redis{Client: rdb}).Set(t.Context(), "state:1", "v", ttl, 7); err != nil {
			t.Error(err)
		}
	}
}
