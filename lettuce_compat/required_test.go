package lettucecompat_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// refusal is a go-redis hook that answers every script about a line with an error of a server, and
// counts them.
type refusal struct {
	plainHook
	text  string
	count atomic.Int64
	off   atomic.Bool
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) RedisError()   {}

func (r *refusal) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); cmd.Name() == "evalsha" && !r.off.Load() && args[3] != args[4] {
			r.count.Add(1)
			cmd.SetErr(r)
			return r
		}
		return next(ctx, cmd)
	}
}

// TestState_P14_TheLineIsRequired: a refusal of its key is the answer, with the server's text. Only TRYAGAIN has a way around, for
// what can do without the line.
func TestState_P14_TheLineIsRequired(t *testing.T) {
	t.Parallel()
	for text, permanent := range map[string]bool{
		"NOPERM No permissions to access a key":                                 true,
		"CROSSSLOT Keys in request don't hash to the same slot":                 true,
		"TRYAGAIN Multiple keys request during rehashing of slot":               false,
		"MISCONF Redis is configured to save RDB snapshots, but it's unable to": false,
	} {
		t.Run(text[:8], func(t *testing.T) {
			b := onMini(t)
			hook := &refusal{text: text}
			b.rdb.AddHook(hook)
			a := newPeer(t, b.rdb, "a")
			for _, s := range []lettucecompat.Command{
				a.command(nothing, 0, 1), a.command(place, 1, 1), a.command(unit, 1, 1), a.command(unit, 0, 1),
				a.command(unit, 0, 0), a.command(nothing, 0, 0), a.command(place, 0, 0),
			} {
				b.raw.FlushAll(ctx)
				s.Terms, s.LastToken = fencedTerms, 7
				s.Since = first
				b.put(t, "k", hash{a.field(first): "1"}, time.Minute)
				hook.count.Store(0)
				got := a.Do(ctx, s)
				want(t, "asked with the line", hook.count.Load(), int64(1))
				if strings.HasPrefix(text, "TRYAGAIN") && s.Have == unit && s.Keep == s.Want {
					a.wantWord("without the line", got, map[int64]lettucecompat.Word{0: hasNothing, 1: has}[s.Keep])
					b.wantHash(t, "k", map[int64]hash{0: {}, 1: {a.field(first): "1"}}[s.Keep])
					continue
				}
				if got.Outcome != failed || lettucecompat.Permanent(got.Err) != permanent || !strings.Contains(got.Err.Error(), text) {
					t.Fatalf("%+v: %+v", s, got)
				}
				b.wantHash(t, "k", hash{a.field(first): "1"})
			}
			if err := a.Rehearse(ctx, lettucecompat.RehearseRequest{Key: "k"}); strings.HasPrefix(text, "TRYAGAIN") {
				want(t, "rehearsal", err, nil)
			} else if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("rehearsal: %v", err)
			}
		})
	}
}

// TestState_I16_P14_ASlotThatMoves_Lab: of its keys only the lock's is here. What is held is renewed, and can be given back and looked
// at; whatever may have to wait in line waits until the slot has moved.
func TestState_I16_P14_ASlotThatMoves_Lab(t *testing.T) {
	t.Parallel()
	cl, _, cc := cluster(t, 2)
	a, x := newPeer(t, cc, "a"), newPeer(t, cc, "x")
	a.terms = fencedTerms
	a.takes()
	u := newPeer(t, cc, "u")
	u.key, u.terms = "{k}units", &lettucecompat.Terms{Call: callLease, Lease: lease, Life: life, Shared: true, Capacity: 7, Fenced: true, RecordTime: lettucecompat.DefaultRecordTime}
	u.wants("3", has, u.units(0, 0, 3))
	v := newPeer(t, cc, "v")
	v.key, v.terms = u.key, u.terms
	v.wants("3", has, v.units(0, 0, 3))
	owner := cl.Master(cl.Slot("k"))
	to := cl.Masters()[0]
	if to == owner {
		to = cl.Masters()[1]
	}
	move := cl.BeginMove(cl.Slot("k"), to)
	for what, got := range map[string]lettucecompat.Answer{"acquire": x.acquire(), "yield": a.yield(), "cancel": x.state(nothing, 0, 0)} {
		if got.Outcome != failed || !lettucecompat.Transient(got.Err) || !strings.Contains(got.Err.Error(), "TRYAGAIN") {
			t.Fatalf("%s while it moves: %+v", what, got)
		}
	}
	a.wantWord("renew", a.state(unit, 1, 1), has)
	if info, err := x.Inspect(ctx, "k", false); err != nil || len(info.Holders) != 1 || info.InLine != 0 {
		t.Errorf("Inspect: %+v, %v", info, err)
	}
	want(t, "Rehearse", x.Rehearse(ctx, lettucecompat.RehearseRequest{Key: "k", Fenced: true}), nil)
	a.releases()
	want(t, "the lock", cc.Exists(ctx, "k").Val(), int64(0))
	want(t, "more units while it moves", u.Do(ctx, u.units(3, 3, 4)).Outcome, failed)
	want(t, "more units, which a call may give", u.Do(ctx, u.units(3, 4, 4)).Outcome, failed)
	want(t, "more units than are free", u.Do(ctx, u.units(3, 5, 5)).Outcome, failed)
	want(t, "fields of the lock: its header and two records", cc.HLen(ctx, u.key).Val(), int64(3))
	less := u.units(3, 3, 3)
	less.KeepOf, less.WantOf = 7, 5
	want(t, "the same units of a lesser capacity", u.Do(ctx, less).Outcome, failed)
	want(t, "renew units", u.renewsUnits(u.unit, 3).Outcome, ok)
	u.wants("renew by a command", has, u.units(3, 3, 3))
	u.wants("shrink", has, u.units(3, 1, 1))
	want(t, "place beside units", u.Do(ctx, u.units(1, 1, 1, again)).Outcome, failed)
	released, err := x.ForceRelease(ctx, "{k}units", false)
	if err != nil || len(released) != 2 {
		t.Errorf("ForceRelease: %v, %v", released, err)
	}
	move.MoveKeys()
	move.End()
	x.takes()
	x.releases()
}

// TestState_P14_OnACluster_Lab: calls reach clients that listen on another node than the lock's.
func TestState_P14_OnACluster_Lab(t *testing.T) {
	t.Parallel()
	_, _, cc := cluster(t, 2)
	var line []*peer
	for _, id := range []string{"a", "x", "y", "z"} {
		p := newPeer(t, cc, id)
		p.Subscribe()
		eventually(t, id+" listens", p.Listening)
		line = append(line, p)
	}
	line[0].takes()
	for i, p := range line[1:] {
		p.waits(i)
	}
	line[0].contended()
	for i, p := range line[1:] {
		line[i].releases()
		p.called()
	}
	line[3].releases()
	want(t, "line", cc.Exists(ctx, lineOfK).Val(), int64(0))
}

// smallest are the rights that Anteroom needs, and no others.
var smallest = []any{
	"~k", "~anteroom:line:*", "~anteroom:fence:*", "&lock:release:*", "&anteroom:client:*", "-@all",
	"+evalsha", "+script|load", "+exists", "+hlen", "+hgetall", "+hexists", "+hkeys", "+hget", "+hmget", "+hset", "+hdel", "+pexpire", "+pttl", "+time",
	"+get", "+set",
	"+publish", "+subscribe", "+unsubscribe", "+pubsub|numsub", "+ping", "+wait", "+hello", "+client",
}

// TestACL_EachRightIsNeeded: with the smallest ACL everything works and the rehearsal is content; without any one of its rights
// the rehearsal says which is missing.
func TestACL_EachRightIsNeeded(t *testing.T) {
	t.Parallel()
	testredis.Needs(t, "7.0", "what Ping can ask about")
	b := onReal(t, nil)
	rdb := b.user(t, append([]any{"resetchannels"}, smallest...)...)
	a, x := newPeer(t, rdb, "a"), newPeer(t, rdb, "x")
	for _, p := range []*peer{a, x} {
		p.terms = fencedTerms
		p.Subscribe()
		eventually(t, p.id+" listens", p.Listening)
	}
	rehearse := func(c *lettucecompat.Client) error {
		return c.Rehearse(ctx, lettucecompat.RehearseRequest{Key: "k", Fenced: true, Replicas: true})
	}
	want(t, "rehearsal", rehearse(a.Client), nil)
	b.nothingLeft(t)
	a.takes()
	x.waits(0)
	a.contended()
	want(t, "rehearsal of a held lock", rehearse(a.Client), nil)
	a.wantWord("yield", a.yield(), waits)
	x.called()
	x.wantWord("renew", x.state(unit, 1, 1), has)
	want(t, "batch", x.Renew(ctx, []lettucecompat.Renewal{{Key: "k", Field: x.field(x.unit), Lease: lease}}, 0)[0].Outcome, ok)
	want(t, "status", x.Status(ctx, []lettucecompat.Query{{Key: "k", Field: x.field(x.unit)}}, 0)[0].Outcome, ok)
	must2(x.Inspect(ctx, "k", false))
	w := watchConfirmed(t, a.Client, "k")
	w.Close()
	want(t, "probe", x.Probe(ctx), nil)
	want(t, "ping", x.Ping(ctx, 0), nil)
	must2(newClient(t, b.rdb).ForceRelease(ctx, "k", false)) // which needs +del, too
	a.wantWord("confirm", a.confirm(), has)
	select {
	case w := <-a.warns:
		t.Fatalf("%+v", w)
	default:
	}

	for _, right := range smallest {
		name := right.(string)
		if name == "-@all" || slices.Contains([]string{"+evalsha", "+script|load", "+ping", "+hello", "+client", "+unsubscribe"}, name) {
			continue // needed to say anything at all, or by go-redis
		}
		rules := []any{"resetchannels"}
		for _, other := range smallest {
			if other != right {
				rules = append(rules, other)
			}
		}
		for _, key := range []string{"k", "held"} {
			if name == "~k" && key == "held" {
				continue
			}
			b.raw.FlushAll(ctx)
			if key == "held" {
				b.put(t, "k", hash{"you:1": "1"}, time.Minute)
			}
			before := b.raw.Keys(ctx, "*").Val()
			err := rehearse(newClient(t, b.user(t, rules...)))
			if !lettucecompat.Permanent(err) {
				t.Errorf("without %s, on a key that is %s: %v", name, key, err)
			}
			if after := b.raw.Keys(ctx, "*").Val(); !slices.Equal(before, after) {
				t.Errorf("without %s: left behind: %q", name, after)
			}
		}
	}
}

// TestState_P14_TheOwnChannelIsRequired: who may not subscribe it is refused when it asks, from the moment on at which the server has
// said so; what it has it can give back. Once it may, it continues.
func TestState_P14_TheOwnChannelIsRequired(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	a := newPeer(t, b.user(t, "~*", "+@all", "resetchannels", "&lock:release:*"), "a")
	a.takes()
	a.Subscribe()
	w := <-a.warns
	want(t, "warning", w.Kind, lettucecompat.WarnChannelRefused)
	want(t, "listening", a.Listening(), false)
	for what, err := range map[string]error{"acquire": a.acquire().Err, "rehearsal": a.Rehearse(ctx, lettucecompat.RehearseRequest{Key: "k"})} {
		if !lettucecompat.Permanent(err) || !strings.Contains(err.Error(), "NOPERM") || what == "acquire" && !strings.Contains(err.Error(), "anteroom:client:a") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := a.Probe(ctx); err != nil {
		t.Fatal(err)
	}
	a.wantWord("renew", a.state(unit, 1, 1), has)
	a.releases()
	if err := b.raw.Do(ctx, "acl", "setuser", "worker", "&anteroom:client:*").Err(); err != nil {
		t.Fatal(err)
	}
	watchConfirmed(t, a.Client, "k") // a connection is there
	a.Reconnect()
	eventually(t, "it continues", func() bool { return a.acquire().Outcome == ok })
}

// TestState_P14_WhoMayNotPublish: is refused where it would have to wait. What it has it gives back, and who is called by
// that finds out by a confirmation; a warning says so.
func TestState_P14_WhoMayNotPublish(t *testing.T) {
	t.Parallel()
	testredis.Needs(t, "7.0", "the script function redis.acl_check_cmd")
	b := onReal(t, nil)
	rdb := b.user(t, "~*", "+@all", "-publish")
	a, y, x := newPeer(t, rdb, "a"), newPeer(t, rdb, "y"), b.peer(t, "x")
	a.takes()
	if got := y.acquire(); got.Outcome != failed || !lettucecompat.Permanent(got.Err) || !strings.Contains(got.Err.Error(), "publish") {
		t.Fatalf("%+v", got)
	}
	y.wantWord("try", y.try(), wordRefused)
	x.waits(0)
	a.releases()
	w := <-a.warns
	want(t, "warning", w.Kind, lettucecompat.WarnPublishRefused)
	x.silent()
	x.unit = x.wantWord("confirm", x.confirm(), has).Unit
	x.releases()
	a.takes()
	a.releases() // nobody to call: its own message is refused all the same
	want(t, "further warnings", len(a.warns), 0)
	b.nothingLeft(t)
}

// TestState_AValueOfAnotherTypeAtTheLine: is an error, and nothing of the lock changes.
func TestState_AValueOfAnotherTypeAtTheLine(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a := b.peer(t, "a")
		a.takes()
		b.raw.Set(ctx, lineOfK, "mine", 0)
		for what, got := range map[string]lettucecompat.Answer{"release": a.release(), "yield": a.yield(), "acquire": a.acquire()} {
			if got.Outcome != failed || !lettucecompat.Permanent(got.Err) || !strings.Contains(got.Err.Error(), "WRONGTYPE") {
				t.Errorf("%s: %+v", what, got)
			}
		}
		b.holds(t, a)
		want(t, "value", b.raw.Get(ctx, lineOfK).Val(), "mine")
	})
}

// TestState_AFullMemory: nobody waits where nothing can be written, and what is held is given back and renewed.
func TestState_AFullMemory(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
	a.takes()
	x.waits(0)
	b.raw.ConfigSet(ctx, "maxmemory", "1")
	for what, got := range map[string]lettucecompat.Answer{"acquire": y.acquire(), "confirm": x.confirm()} {
		if got.Outcome != failed || !lettucecompat.Transient(got.Err) {
			t.Fatalf("%s: %+v", what, got)
		}
	}
	if err := y.Rehearse(ctx, lettucecompat.RehearseRequest{Key: "other"}); !lettucecompat.Transient(err) {
		t.Errorf("rehearsal: %v", err)
	}
	a.wantWord("renew", a.state(unit, 1, 1), has)
	a.releases()
	b.raw.ConfigSet(ctx, "maxmemory", "0")
	x.n = first + 1 // under which it waits
	x.called()
}

// TestState_AYieldThatCannotWaitInLine: its unit is given back, so it is no error: it is refused, and has nothing.
func TestState_AYieldThatCannotWaitInLine(t *testing.T) {
	t.Parallel()
	testredis.Needs(t, "7.0", "rules for single keys")
	b := onReal(t, nil)
	a := newPeer(t, b.user(t, "&*", "+@all", "%RW~k", "%R~"+lineOfK), "a")
	b.put(t, "k", hash{a.field(first): "1"}, time.Minute)
	s := a.command(unit, 0, 1)
	s.Since = first
	b.put(t, "k", hash{"you:1": "1"}, time.Minute)
	got := a.Do(ctx, s)
	if got.Outcome == failed { // the server refuses the script as a whole
		b.wantHash(t, "k", hash{a.field(first): "1", "you:1": "1"})
		return
	}
	a.wantWord("yield", got, wordRefused)
	b.wantHash(t, "k", hash{"you:1": "1"})
}

// TestState_I2_AReleaseThatCannotReadTheLine: its unit is given back, so it is no error, though what follows fails: a
// line may have been made meanwhile, and nobody may read it.
func TestState_I2_AReleaseThatCannotReadTheLine(t *testing.T) {
	t.Parallel()
	for _, missing := range []string{"-time", "-hmget"} {
		b := onReal(t, nil)
		a := newPeer(t, b.user(t, "~*", "&*", "+@all", missing), "a")
		a.takes()
		listener := b.raw.Subscribe(ctx, "lock:release:k") // who listens may be a foreign client that waits, so the line is read
		defer listener.Close()
		if _, err := listener.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		a.releases()
		b.wantHash(t, "k", nil)
	}
}

// TestState_I2_AnErrorLeavesThePlace: a right that is revoked from a waiter neither hides its place nor removes
// it.
func TestState_I2_AnErrorLeavesThePlace(t *testing.T) {
	t.Parallel()
	for _, missing := range []string{"hget", "hdel"} {
		b := onReal(t, nil)
		a, x := b.peer(t, "a"), newPeer(t, b.user(t, "~*", "&*", "+@all"), "x")
		a.takes()
		x.waits(0)
		line := b.hash(t, lineOfK)
		must2(b.raw.Do(ctx, "acl", "setuser", "worker", "-"+missing).Result())
		if missing == "hget" {
			want(t, "confirm", x.confirm().Outcome, failed)
		}
		want(t, "cancel", x.cancel().Outcome, failed)
		b.wantHash(t, lineOfK, line)
		must2(b.raw.Do(ctx, "acl", "setuser", "worker", "+"+missing).Result())
		x.wantWord("cancel", x.cancel(), hasNothing)
		want(t, "line", b.raw.Exists(ctx, lineOfK).Val(), int64(0))
	}
}

// TestState_P13_ATryAtAReadOnlyServer: is no refusal, which would say that the client has no place.
func TestState_P13_ATryAtAReadOnlyServer(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	a, x := b.peer(t, "a"), b.peer(t, "x")
	a.takes()
	x.waits(0)
	must2(b.raw.Do(ctx, "replicaof", "127.0.0.1", "1").Result())
	want(t, "cancel", x.cancel().Outcome, failed)
	want(t, "try", x.try().Outcome, failed)
	must2(b.raw.Do(ctx, "replicaof", "no", "one").Result())
	x.wantWord("cancel", x.cancel(), hasNothing)
	want(t, "line", b.raw.Exists(ctx, lineOfK).Val(), int64(0))
}

// TestRehearse_RenamedCommands: a command that the server does not have is missed where locks need it.
func TestRehearse_RenamedCommands(t *testing.T) {
	t.Parallel()
	for _, cmd := range []string{"script", "pubsub", "wait", "publish", "subscribe", "exists"} {
		t.Run(cmd, func(t *testing.T) {
			b := onReal(t, []string{"--rename-command", cmd, ""})
			c := b.client(t)
			err := c.Rehearse(ctx, lettucecompat.RehearseRequest{Key: "k"})
			needed := cmd != "script" && cmd != "wait" && (testredis.AtLeast("7.0") || cmd == "exists" || cmd == "pubsub")
			want(t, "missed", err != nil, needed)
			b.nothingLeft(t)
			if !needed {
				want(t, "acquire", c.Do(ctx, asks("k", 1)).Word, has)
				want(t, "release", c.Do(ctx, gives("k", 1)).Word, hasNothing)
			}
		})
	}
}

// TestState_NoCommandIsNewerThan62 by the server's own documentation.
func TestState_NoCommandIsNewerThan62(t *testing.T) {
	t.Parallel()
	testredis.Needs(t, "7.0", "COMMAND DOCS")
	b := onReal(t, nil)
	a, x, y := b.fencedPeer(t, "a"), b.fencedPeer(t, "x"), b.fencedPeer(t, "y")
	b.raw.ConfigResetStat(ctx)
	a.takes()
	x.waits(0)
	y.waits(1)
	b.put(t, "k", hash{"you:1": "1"}, time.Minute)
	y.wantWord("confirm", y.confirm(), waits)
	a.wantWord("yield", a.yield(), waits)
	must2(a.Inspect(ctx, "k", false))
	must2(a.ForceRelease(ctx, "k", false))
	x.unit = x.wantWord("confirm", x.confirm(), has).Unit
	s := x.command(unit, 0, 0)
	s.Mark = time.Second
	x.says(s)
	for name := range b.real.Stats(t) {
		docs, err := b.raw.Do(ctx, "command", "docs", strings.ReplaceAll(name, "|", " ")).Result()
		since := ""
		if m, is := docs.(map[any]any); is && err == nil {
			for _, entry := range m {
				since, _ = entry.(map[any]any)["since"].(string)
			}
		}
		if since > "6.2.0" && name != "acl" && !strings.HasPrefix(name, "hello") {
			t.Errorf("%s is from %s", name, since)
		}
	}
}
