package lettucecompat_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// TestWire_I3_GoneOnlyFromMaster: a read-only replica answers nothing but failures, also
// where the field is really not there, and for keys of another type.
func TestWire_I3_GoneOnlyFromMaster(t *testing.T) {
	t.Parallel()
	master := testredis.Start(t, "--repl-diskless-sync-delay", "0")
	mc := master.Client(t)
	b := onReal(t, nil)
	mc.HSet(ctx, "held", me(1), "1")
	mc.PExpire(ctx, "held", 2*lease)
	mc.Set(ctx, "string", "x", 0)
	host, port, _ := net.SplitHostPort(master.Addr())
	if err := b.raw.Do(ctx, "replicaof", host, port).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "replicated", func() bool { return b.raw.Exists(ctx, "held", "string").Val() == 2 })
	c := b.client(t)
	for _, key := range []string{"held", "string", "missing"} {
		short := lettucecompat.Renewal{Key: key, Field: me(1), Lease: time.Second} // below the TTL: nothing to raise
		keep, turn, confirm, renew, mark := gives(key, 1), gives(key, 1), gives(key, 1), gives(key, 1), gives(key, 1)
		keep.Terms, turn.Want = fencedTerms, 1
		confirm.Have, confirm.Units, confirm.Keep, confirm.Want = place, 0, 1, 1
		renew.Keep, renew.Want = 1, 1
		mark.Mark = time.Second
		leave := asks(key, 2)
		leave.Want = 0
		for what, s := range map[string]lettucecompat.Command{
			"release": gives(key, 1), "fenced release": keep, "mark": mark, "yield": turn, "confirm": confirm, "renew": renew, "cancel": leave,
		} {
			if key == "string" && (what == "cancel" || s.Have == place || s.Keep > 0) {
				continue // no lock: that is an error of its own
			}
			got := c.Do(ctx, s)
			want(t, key+": "+what, got.Outcome, failed)
			if key != "string" {
				want(t, key+": "+what+": class", lettucecompat.Classify(got.Err), lettucecompat.ClassTransient)
			}
		}
		want(t, key+": batch", c.Renew(ctx, []lettucecompat.Renewal{short}, 0)[0].Outcome, failed)
		if st := c.Status(ctx, []lettucecompat.Query{{Key: key, Field: me(1)}}, 0)[0]; st.Outcome == gone {
			t.Fatalf("%s: a replica concluded gone", key)
		}
	}
	want(t, "acquire", c.Do(ctx, asks("free", 2)).Outcome, failed)
	_, err := c.ForceRelease(ctx, "missing", false)
	want(t, "force", lettucecompat.Classify(err), lettucecompat.ClassTransient)
}

// user makes an ACL user and a client for it.
func (b *bed) user(t *testing.T, rules ...any) *redis.Client {
	t.Helper()
	if err := b.raw.Do(ctx, append([]any{"acl", "setuser", "worker", "reset", "on", ">secret"}, rules...)...).Err(); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(options(b.real.Addr(), b.net.Dial, func(o *redis.Options) { o.Username, o.Password = "worker", "secret" }))
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// TestACLOneChannelRefused: the refusal of one channel does not keep others from being
// confirmed, though they were asked for together.
func TestACLOneChannelRefused(t *testing.T) {
	t.Parallel()
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
	if err := c.Probe(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestACLWithoutPermissions(t *testing.T) {
	t.Parallel()
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
			got := c.Do(ctx, asks("k", 1))
			if name == "without loading scripts" { // EVAL does it
				want(t, "outcome", got.Outcome, ok)
				c.Do(ctx, gives("k", 1))
				return
			}
			want(t, "outcome", got.Outcome, failed)
			want(t, "class", lettucecompat.Classify(got.Err), lettucecompat.ClassPermanent)
			b.wantHash(t, "k", hash{}) // a lock without end must not stay
		})
	}
}

func TestWrongPassword(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	rdb := redis.NewClient(options(b.real.Addr(), b.net.Dial, func(o *redis.Options) { o.Username, o.Password = "nobody", "wrong" }))
	defer rdb.Close()
	got := newClient(t, rdb).Do(ctx, asks("k", 1))
	want(t, "outcome", got.Outcome, failed)
	want(t, "permanent", lettucecompat.Permanent(got.Err), true)
}

func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	c := b.client(t)
	want(t, "acquire", c.Do(ctx, fenced("held", 1)).Outcome, ok)
	b.raw.ConfigSet(ctx, "maxmemory", "1")
	for _, r := range []lettucecompat.Command{asks("k", 2), fenced("k", 3), asks("held", 4)} {
		got := c.Do(ctx, r)
		want(t, "outcome", got.Outcome, failed)
		want(t, "class", lettucecompat.Classify(got.Err), lettucecompat.ClassTransient)
		b.wantHash(t, "k", hash{})
	}
	want(t, "renewals go on", c.Extend(ctx, lettucecompat.Renewal{Key: "held", Field: me(1), Lease: time.Minute}, 0).Outcome, ok)
	want(t, "releases go on", c.Do(ctx, givesFenced("held", 1)).Outcome, ok)
}

// TestReplicas: Extend says how many have confirmed, and gives nothing back.
func TestReplicas(t *testing.T) {
	t.Parallel()
	b := onReal(t, []string{"--repl-diskless-sync-delay", "0"})
	c := b.client(t)
	want(t, "acquire", c.Do(ctx, fenced("k", 1)).Word, has)
	r := synced("k", 1)
	r.ReplicaTimeout = 50 * time.Millisecond
	got := c.Extend(ctx, r, 0)
	want(t, "without replica", got.Outcome, refused)
	want(t, "error", errors.Is(got.Err, lettucecompat.ErrReplicas), true)
	b.wantHash(t, "k", hash{me(1): "1"})
	b.wantTTL(t, "k", lease-margin, lease)

	// A renewal that finds nothing has written nothing that could be waited for.
	b.raw.ConfigResetStat(ctx)
	missing := synced("missing", 3)
	missing.ReplicaTimeout = 3 * time.Second
	want(t, "gone", c.Extend(ctx, missing, 0).Outcome, gone)
	want(t, "WAIT for what is gone", b.real.Stats(t)["wait"], int64(0))

	host, port, _ := net.SplitHostPort(b.real.Addr())
	replica := testredis.Start(t, "--replicaof", host, port)
	rc := replica.Client(t)
	r.ReplicaTimeout = pace.Hang
	eventually(t, "the replica is connected", func() bool {
		return strings.Contains(rc.Info(ctx, "replication").Val(), "master_link_status:up")
	})
	b.raw.ScriptFlush(ctx) // and the script is loaded on the way
	got = c.Extend(ctx, r, 0)
	want(t, "with replica", got.Outcome, ok)
	want(t, "sent", got.SentAt.IsZero(), false)
	want(t, "on the replica", rc.HExists(ctx, "k", me(1)).Val(), true)
}

// TestReplicas_WaitsForItsOwnWrite: WAIT speaks about what its connection has written. A renewal writes also where the time to
// live is long enough, so a replica that is cut off confirms nothing.
func TestReplicas_WaitsForItsOwnWrite(t *testing.T) {
	t.Parallel()
	b := onReal(t, []string{"--repl-diskless-sync-delay", "0"})
	c := b.client(t)
	host, port, _ := net.SplitHostPort(b.real.Addr())
	replica := testredis.Start(t, "--replicaof", host, port)
	rc := replica.Client(t)
	eventually(t, "the replica is connected", func() bool {
		return strings.Contains(rc.Info(ctx, "replication").Val(), "master_link_status:up")
	})
	b.put(t, "k", hash{me(1): "1"}, 2*lease)
	replica.Pause()
	defer replica.Resume()
	r := synced("k", 1)
	r.ReplicaTimeout = 50 * time.Millisecond
	want(t, "with a replica that hangs", c.Extend(ctx, r, 0).Outcome, refused)
	b.wantTTL(t, "k", 2*lease-margin, 2*lease+time.Second)
}

// Where no script may be loaded a renewal with Replicas goes by EVAL, as others do.
func TestACL_ReplicasWithoutLoadingScripts(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	b.raw.ScriptFlush(ctx)
	c := newClient(t, b.user(t, "~*", "&*", "+@all", "-script"))
	b.put(t, "k", hash{me(1): "1"}, callLease)
	r := synced("k", 1)
	r.ReplicaTimeout = 20 * time.Millisecond
	want(t, "renewed, and confirmed by nobody", c.Extend(ctx, r, 0).Outcome, refused)
	b.wantTTL(t, "k", lease-margin, lease)
}

// Servers below 7 can be configured to copy scripts to replicas, which write nothing after TIME or PTTL unless they say so.
func TestScripts_WorkWhereScriptsAreCopied(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	rdb := s.Client(t)
	if err := rdb.ConfigSet(ctx, "lua-replicate-commands", "no").Err(); err != nil {
		t.Skipf("this server copies writes only: %v", err)
	}
	a, b := newPeer(t, rdb, "a"), newPeer(t, rdb, "b")
	a.takes()
	b.waits(0)
	want(t, "renewed", a.Renew(ctx, []lettucecompat.Renewal{{Key: "k", Field: a.field(a.unit), Lease: time.Minute}}, 0)[0].Outcome, ok)
	a.releases()
	must2(b.ForceRelease(ctx, "k", false))
}
