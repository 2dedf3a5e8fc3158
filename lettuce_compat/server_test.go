package lettucecompat_test

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// TestWire_I3_GoneOnlyFromMaster: a read-only replica answers nothing but failures, also
// where the field is really not there, and for keys of another type.
func TestWire_I3_GoneOnlyFromMaster(t *testing.T) {
	master := testredis.Start(t, "--repl-diskless-sync-delay", "0")
	mc := master.Client(t)
	b := onReal(t, nil)
	mc.HSet(ctx, "held", "me:1", "1")
	mc.PExpire(ctx, "held", time.Hour)
	mc.Set(ctx, "string", "x", 0)
	host, port, _ := net.SplitHostPort(master.Addr())
	if err := b.raw.Do(ctx, "replicaof", host, port).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "replicated", func() bool { return b.raw.Exists(ctx, "held", "string").Val() == 2 })
	c := b.client(t)
	for _, key := range []string{"held", "string", "missing"} {
		short := lettucecompat.Renewal{Key: key, Field: "me:1", Lease: time.Second} // below the TTL: nothing to raise
		q := lettucecompat.Query{Key: key, Field: "me:1"}
		for what, got := range map[string]struct {
			o   lettucecompat.Outcome
			err error
		}{
			"renew":   {c.Renew(ctx, []lettucecompat.Renewal{short}, 0)[0].Outcome, c.Renew(ctx, []lettucecompat.Renewal{short}, 0)[0].Err},
			"release": {c.Release(ctx, lettucecompat.ReleaseRequest{Key: key, Field: "me:1"}).Outcome, c.Release(ctx, lettucecompat.ReleaseRequest{Key: key, Field: "me:1"}).Err},
			"keep":    {c.Release(ctx, lettucecompat.ReleaseRequest{Key: key, Field: "me:1", Keep: time.Second}).Outcome, c.Release(ctx, lettucecompat.ReleaseRequest{Key: key, Field: "me:1", Keep: time.Second}).Err},
			"turn":    {c.EndTurn(ctx, lettucecompat.TurnRequest{Key: key, Field: "me:1", Lease: time.Second}).Outcome, c.EndTurn(ctx, lettucecompat.TurnRequest{Key: key, Field: "me:1", Lease: time.Second}).Err},
		} {
			want(t, key+": "+what, got.o, failed)
			want(t, key+": "+what+": class", lettucecompat.Classify(got.err), lettucecompat.ClassTransient)
		}
		if st := c.Status(ctx, []lettucecompat.Query{q}, 0)[0]; st.Outcome == gone {
			t.Fatalf("%s: a replica concluded gone", key)
		}
	}
	want(t, "acquire", c.TryAcquire(ctx, lockRequest("free", "me:2")).Outcome, failed)
	_, err := c.ForceRelease(ctx, "missing")
	want(t, "force", lettucecompat.Classify(err), lettucecompat.ClassTransient)
}

// user makes an ACL user and a client for it.
func (b *bed) user(t *testing.T, rules ...any) *redis.Client {
	t.Helper()
	if slices.Contains(rules, any("resetchannels")) {
		testredis.NeedsChannelRules(t)
	}
	if err := b.raw.Do(ctx, testredis.ACL(t, append([]any{"acl", "setuser", "worker", "reset", "on", ">secret"}, rules...)...)...).Err(); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(options(b.real.Addr(), b.net.Dial, func(o *redis.Options) { o.Username, o.Password = "worker", "secret" }))
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// TestACLWithoutChannels: everything works but the messages, and that is told once.
func TestACLWithoutChannels(t *testing.T) {
	b := onReal(t, nil)
	warnings := make(chan lettucecompat.Warning, 100)
	c := newClient(t, b.user(t, "~*", "+@all", "resetchannels"), func(o *lettucecompat.Options) {
		o.OnWarning = func(w lettucecompat.Warning) { warnings <- w }
	})
	for range 3 {
		want(t, "acquire", c.TryAcquire(ctx, lockRequest("k", "me:1")).Outcome, ok)
		rel := c.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: "me:1"})
		want(t, "release", rel.Outcome, ok)
	}
	b.wantHash(t, "k", hash{})
	want(t, "warning", (<-warnings).Kind, lettucecompat.WarnPublishRefused)
	want(t, "further warnings", len(warnings), 0)

	w := c.Watch("k")
	defer w.Close()
	want(t, "warning", (<-warnings).Kind, lettucecompat.WarnChannelRefused)
	want(t, "confirmed", w.Confirmed(), false)
	if d, err := c.Probe(ctx); d != 0 || err != nil {
		t.Fatalf("probe: %v, %v", d, err)
	}
	want(t, "up", lettucecompat.Up(c), false)
}

// TestACLOneChannelRefused: the refusal of one channel does not keep others from being
// confirmed, though they were asked for together.
func TestACLOneChannelRefused(t *testing.T) {
	b := onReal(t, nil)
	c := newClient(t, b.user(t, "~*", "+@all", "resetchannels", "&lock:release:good*", "&anteroom:client:*"))
	var good []*lettucecompat.Watch
	for _, key := range []string{"good1", "bad1", "good2", "bad2", "good3"} {
		w := c.Watch(key)
		defer w.Close()
		if strings.HasPrefix(key, "good") {
			good = append(good, w)
		}
	}
	for _, w := range good {
		signal(t, "confirmation", w.C())
		want(t, "confirmed", w.Confirmed(), true)
	}
	if _, err := c.Probe(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestACLWithoutPermissions(t *testing.T) {
	b := onReal(t, nil)
	for name, rules := range map[string][]any{
		"without scripts":         {"~*", "&*", "+@all", "-@scripting"},
		"without key":             {"~other", "&*", "+@all"},
		"without PEXPIRE":         {"~*", "&*", "+@all", "-pexpire"},
		"without HSET":            {"~*", "&*", "+@all", "-hset"},
		"without loading scripts": {"~*", "&*", "+@all", "-script"},
	} {
		t.Run(name, func(t *testing.T) {
			b.raw.ScriptFlush(ctx)
			c := newClient(t, b.user(t, rules...))
			got := c.TryAcquire(ctx, lockRequest("k", "me:1"))
			if name == "without loading scripts" { // EVAL does it
				want(t, "outcome", got.Outcome, ok)
				c.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: "me:1"})
				return
			}
			want(t, "outcome", got.Outcome, failed)
			want(t, "class", lettucecompat.Classify(got.Err), lettucecompat.ClassPermanent)
			b.wantHash(t, "k", hash{}) // a lock without end must not stay
		})
	}
}

func TestWrongPassword(t *testing.T) {
	b := onReal(t, nil)
	rdb := redis.NewClient(options(b.real.Addr(), b.net.Dial, func(o *redis.Options) { o.Username, o.Password = "nobody", "wrong" }))
	defer rdb.Close()
	got := newClient(t, rdb).TryAcquire(ctx, lockRequest("k", "me:1"))
	want(t, "outcome", got.Outcome, failed)
	want(t, "permanent", lettucecompat.Permanent(got.Err), true)
}

func TestOutOfMemory(t *testing.T) {
	b := onReal(t, nil)
	c := b.client(t)
	want(t, "acquire", c.TryAcquire(ctx, fenced("held", "me:1")).Outcome, ok)
	b.raw.ConfigSet(ctx, "maxmemory", "1")
	for _, r := range []lettucecompat.AcquireRequest{lockRequest("k", "me:2"), fenced("k", "me:3")} {
		got := c.TryAcquire(ctx, r)
		want(t, "outcome", got.Outcome, failed)
		want(t, "class", lettucecompat.Classify(got.Err), lettucecompat.ClassTransient)
		b.wantHash(t, "k", hash{})
	}
	want(t, "renewals go on", c.Extend(ctx, lettucecompat.Renewal{Key: "held", Field: "me:1", Lease: time.Minute}, 0).Outcome, ok)
	want(t, "releases go on", c.Release(ctx, lettucecompat.ReleaseRequest{Key: "held", Field: "me:1", Fenced: true}).Outcome, ok)
}

func TestReplicas(t *testing.T) {
	b := onReal(t, []string{"--repl-diskless-sync-delay", "0"})
	c := b.client(t)
	r := fenced("k", "me:1")
	r.Replicas, r.ReplicaTimeout = 1, 50*time.Millisecond
	got := c.TryAcquire(ctx, r)
	want(t, "without replica", got.Outcome, refused)
	want(t, "error", errors.Is(got.Err, lettucecompat.ErrReplicas), true)
	b.wantHash(t, "k", hash{})

	// One that is refused has written nothing that could be waited for.
	b.put(t, "taken", hash{"you:1": "1"}, time.Minute)
	b.raw.ConfigResetStat(ctx)
	taken := lockRequest("taken", "me:3")
	taken.Replicas, taken.ReplicaTimeout = 1, 3*time.Second
	want(t, "taken", c.TryAcquire(ctx, taken).Holder, "you:1")
	want(t, "WAIT for an attempt that was refused", b.real.Stats(t)["wait"], int64(0))

	host, port, _ := net.SplitHostPort(b.real.Addr())
	replica := testredis.Start(t, "--replicaof", host, port)
	rc := replica.Client(t)
	r.Field, r.ReplicaTimeout = "me:2", 5*time.Second
	eventually(t, "the replica is connected", func() bool {
		return strings.Contains(rc.Info(ctx, "replication").Val(), "master_link_status:up")
	})
	b.raw.ScriptFlush(ctx) // and the script is loaded on the way
	got = c.TryAcquire(ctx, r)
	want(t, "with replica", got.Outcome, ok)
	want(t, "on the replica", rc.HExists(ctx, "k", "me:2").Val(), true)
}

// Where no script may be loaded an acquire with Replicas goes by EVAL, as others do.
func TestACL_ReplicasWithoutLoadingScripts(t *testing.T) {
	b := onReal(t, nil)
	b.raw.ScriptFlush(ctx)
	c := newClient(t, b.user(t, "~*", "&*", "+@all", "-script"))
	r := lockRequest("k", "me:1")
	r.Replicas, r.ReplicaTimeout = 1, 20*time.Millisecond
	got := c.TryAcquire(ctx, r)
	want(t, "granted, and confirmed by nobody", got.Outcome, refused)
	b.wantHash(t, "k", hash{})
}
