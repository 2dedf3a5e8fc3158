package lettucecompat_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// withoutLine goes through all that a client says about one lock and fails where the line is
// missed.
func withoutLine(t *testing.T, a, x *peer) {
	t.Helper()
	a.takes()
	if got := x.acquire(); got.Outcome != refused || got.Standing || got.Holder != a.field() {
		t.Fatalf("stands: %+v", got)
	}
	turn := a.EndTurn(ctx, lettucecompat.TurnRequest{
		Key: "k", Field: a.field(), Lease: 10 * time.Second, Next: lettucecompat.NewField(a.id, a.n+1), Attempt: nonce + 99,
	})
	if turn.Outcome != ok || turn.Kept || turn.Standing {
		t.Fatalf("turn: %+v", turn)
	}
	want(t, "release", x.release().Outcome, gone)
	a.takes()
	if _, err := a.Inspect(ctx, "k"); err != nil {
		t.Fatal(err)
	}
	want(t, "force", func() error { _, err := a.ForceRelease(ctx, "k"); return err }(), nil)
	a.takes()
	a.releases()
}

// TestLine_WithoutTheRightToItsKey: under the smallest ACL of earlier releases everything works,
// and one command in 30 s finds out that the line is still refused.
func TestLine_WithoutTheRightToItsKey(t *testing.T) {
	b := onReal(t, nil)
	rdb := b.user(t, "~k", "~anteroom:fence:*", "&*", "+@all")
	a, x := newPeer(t, rdb, "a"), newPeer(t, rdb, "x")
	withoutLine(t, a, x)
	want(t, "line", b.raw.Exists(ctx, lineOfK).Val(), int64(0))
	want(t, "left out", lettucecompat.LineKey(a.Client, "k"), "k")
	without, err := a.Rehearse(ctx, lettucecompat.RehearseRequest{Key: "k"})
	if err != nil || !slices.Contains(without, "the line") {
		t.Fatalf("%v, %v", without, err)
	}
	if got := x.confirm(); got.Outcome != failed || !lettucecompat.Permanent(got.Err) {
		t.Fatalf("%+v", got)
	}
	refusals, err := b.raw.Do(ctx, "acl", "log").Slice()
	if err != nil || len(refusals) == 0 {
		t.Fatalf("%v, %v", refusals, err)
	}
	// The right to the lock itself is another matter.
	missing := x.request()
	missing.Key = "other"
	got := newPeer(t, rdb, "y").TryAcquire(ctx, missing)
	want(t, "outcome", got.Outcome, failed)
	want(t, "permanent", lettucecompat.Permanent(got.Err), true)
}

// TestLine_AValueOfAnotherType: at the line's key.
func TestLine_AValueOfAnotherType(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		b.raw.Set(ctx, lineOfK, "mine", 0)
		a, x := b.peer(t, "a"), b.peer(t, "x")
		withoutLine(t, a, x)
		want(t, "confirm", x.confirm().Outcome, gone)
		want(t, "value", b.raw.Get(ctx, lineOfK).Val(), "mine")
	})
}

// TestLine_WithoutTheRightToACommand: of those that only the line needs.
func TestLine_WithoutTheRightToACommand(t *testing.T) {
	for _, command := range []string{"-time", "-hmget"} {
		b := onReal(t, nil)
		rdb := b.user(t, "~*", "&*", "+@all", command)
		withoutLine(t, newPeer(t, rdb, "a"), newPeer(t, rdb, "x"))
	}
}

// TestLine_AFullMemory: nobody stands where nothing can be written, and releases go on.
func TestLine_AFullMemory(t *testing.T) {
	b := onReal(t, nil)
	a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
	a.takes()
	x.stands(0)
	b.raw.ConfigSet(ctx, "maxmemory", "1")
	if got := y.acquire(); got.Outcome != refused || got.Standing || got.Holder != a.field() {
		t.Fatalf("%+v", got)
	}
	if got := x.confirm(); got.Outcome != failed || !lettucecompat.Transient(got.Err) {
		t.Fatalf("%+v", got)
	}
	a.releases()
	b.raw.ConfigSet(ctx, "maxmemory", "0")
	if got := x.confirm(); got.Outcome != ok || !got.Called {
		t.Fatalf("%+v", got)
	}
}

// TestLine_ASlotThatMoves: of its keys only the lock's is here. Locks without fencing go on, without
// the line.
func TestLine_ASlotThatMoves(t *testing.T) {
	cl, _, cc := cluster(t, 2)
	a, x := newPeer(t, cc, "a"), newPeer(t, cc, "x")
	a.takes()
	owner := cl.Master(cl.Slot("k"))
	to := cl.Masters()[0]
	if to == owner {
		to = cl.Masters()[1]
	}
	move := cl.BeginMove(cl.Slot("k"), to)
	if got := x.acquire(); got.Outcome != refused || got.Holder != a.field() {
		t.Fatalf("while it moves: %+v", got)
	}
	a.releases()
	a.takes()
	a.releases()
	move.MoveKeys()
	move.End()
	want(t, "after", x.acquire().Outcome, ok)
	x.releases()
}

// TestLine_OnACluster: calls reach clients that listen on another node than the lock's.
func TestLine_OnACluster(t *testing.T) {
	cl, _, cc := cluster(t, 2)
	_ = cl
	var line []*peer
	for _, id := range []string{"a", "x", "y", "z"} {
		p := newPeer(t, cc, id)
		p.Subscribe()
		eventually(t, id+" listens", p.Listening)
		line = append(line, p)
	}
	line[0].takes()
	for i, p := range line[1:] {
		p.stands(i)
	}
	for i, p := range line[1:] {
		line[i].releases()
		p.called()
	}
	line[3].releases()
	want(t, "line", cc.Exists(ctx, lineOfK).Val(), int64(0))
}

// TestLine_WhoMayNotPublish: its release calls all the same, says that it could not tell, and
// whoever stands behind such a holder asks soon.
func TestLine_WhoMayNotPublish(t *testing.T) {
	b := onReal(t, nil)
	a, x, y := newPeer(t, b.user(t, "~*", "+@all", "resetchannels"), "a"), b.peer(t, "x"), b.peer(t, "y")
	a.takes()
	x.stands(0)
	y.stands(1)
	a.releases()
	want(t, "warning", (<-a.warns).Kind, lettucecompat.WarnPublishRefused)
	want(t, "told", len(x.calls), 0)
	want(t, "called", x.confirm().Called, true)
	want(t, "listening", a.Listening(), false)

	if got := a.stands(1); got.TTL > 25*time.Millisecond {
		t.Fatalf("is to ask after %v", got.TTL)
	}
	x.releases()
	y.called()
	x.stands(1)
	y.releases() // calls a, and tells x that it cannot be told
	want(t, "x looks in", x.looked(), 25*time.Millisecond)
	if got := x.confirm(); got.Holder != a.field() || got.TTL > 25*time.Millisecond {
		t.Fatalf("%+v", got)
	}
	a.releases()
	want(t, "called", x.confirm().Called, true)
	x.releases()
	b.nothingLeft(t)

	a.takes() // where nobody stands yet
	if got := x.stands(0); got.TTL > 25*time.Millisecond {
		t.Fatalf("%+v", got)
	}
}

// TestLine_NoCommandIsNewerThan4: those of the line's scripts were called by the tests above.
func TestLine_NoCommandIsNewerThan4(t *testing.T) {
	b := onReal(t, nil)
	a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
	b.raw.ConfigResetStat(ctx)
	r := func(p *peer) lettucecompat.AcquireRequest { p.n++; r := p.request(); r.Tokens = 2; return r }
	a.TryAcquire(ctx, r(a))
	x.TryAcquire(ctx, r(x))
	y.TryAcquire(ctx, r(y))
	y.confirm()
	a.EndTurn(ctx, lettucecompat.TurnRequest{Key: "k", Field: a.field(), Lease: time.Second, Next: "a:9", Attempt: 1, Fenced: true, Tokens: 1})
	x.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: x.field(), Fenced: true})
	y.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: y.field(), Fenced: true, Keep: time.Second})
	for name := range b.real.Stats(t) {
		docs, err := b.raw.Do(ctx, "command", "docs", strings.ReplaceAll(name, "|", " ")).Result()
		since := ""
		if m, is := docs.(map[any]any); is && err == nil {
			for _, entry := range m {
				since, _ = entry.(map[any]any)["since"].(string)
			}
		}
		if since != "" && since > "4.0.0" && name != "acl" && !strings.HasPrefix(name, "hello") {
			t.Errorf("%s is from %s", name, since)
		}
	}
}

// refusal is a go-redis hook that answers every script about a line with an error of a server, and
// counts them.
type refusal struct {
	redis.Hook
	text  string
	count atomic.Int64
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) RedisError()   {}

func (r *refusal) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *refusal) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r *refusal) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); cmd.Name() == "evalsha" && args[3] != args[4] {
			r.count.Add(1)
			cmd.SetErr(r)
			return r
		}
		return next(ctx, cmd)
	}
}

// TestLine_ARefusalProvesThatNothingRan: so the same call goes on without the line. The line is then
// left out for a while, but not for all keys because one slot moves.
func TestLine_ARefusalProvesThatNothingRan(t *testing.T) {
	for text, times := range map[string]int64{
		"NOPERM No permissions to access a key":                                 2, // once for each client
		"CROSSSLOT Keys in request don't hash to the same slot":                 2,
		"TRYAGAIN Multiple keys request during rehashing of slot":               9, // once for each call
		"MISCONF Redis is configured to save RDB snapshots, but it's unable to": 1,
		"READONLY You can't write against a read only replica.":                 1,
	} {
		t.Run(text[:8], func(t *testing.T) {
			b := onMini(t)
			hook := &refusal{text: text}
			b.rdb.AddHook(hook)
			a, x := b.deafPeer(t, "a"), b.deafPeer(t, "x")
			if times == 1 { // that says nothing about the line
				want(t, "acquire", a.acquire().Outcome, failed)
			} else {
				withoutLine(t, a, x)
			}
			want(t, "refusals", hook.count.Load(), times)
		})
	}
}
