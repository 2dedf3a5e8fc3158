package lettucecompat_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

const (
	lineOfK = "anteroom:line:{k}"
	// first is the number of the first field of a client that knows the line.
	first = 1_700_000_000_000_000
	// nonce is where attempts begin.
	nonce = 1 << 40
)

// peer is a client of the line, with what arrives on its own channel.
type peer struct {
	*lettucecompat.Client
	t      testing.TB
	id     string
	n      uint64 // of its newest field
	send   uint64 // of its newest attempt
	calls  chan lettucecompat.Call
	looks  chan time.Duration
	lookAt chan uint64
	warns  chan lettucecompat.Warning
}

// peer makes a client that listens on its own channel.
func (b *bed) peer(t testing.TB, id string, change ...func(*lettucecompat.Options)) *peer {
	t.Helper()
	p := b.deafPeer(t, id, change...)
	p.Subscribe()
	eventually(t, id+" listens", p.Listening)
	return p
}

// deafPeer makes a client that does not.
func (b *bed) deafPeer(t testing.TB, id string, change ...func(*lettucecompat.Options)) *peer {
	t.Helper()
	p := newPeer(t, b.rdb, id, change...)
	return p
}

func newPeer(t testing.TB, rdb lettucecompat.Redis, id string, change ...func(*lettucecompat.Options)) *peer {
	t.Helper()
	p := &peer{
		t: t, id: id, n: first, send: nonce,
		calls: make(chan lettucecompat.Call, 100), looks: make(chan time.Duration, 100), lookAt: make(chan uint64, 100),
		warns: make(chan lettucecompat.Warning, 100),
	}
	p.Client = newClient(t, rdb, append([]func(*lettucecompat.Options){func(o *lettucecompat.Options) {
		o.ClientID = id
		o.OnCalled = func(c lettucecompat.Call) { p.calls <- c }
		o.OnLook = func(n uint64, in time.Duration) { p.lookAt <- n; p.looks <- in }
		o.OnWarning = func(w lettucecompat.Warning) { p.warns <- w }
	}}, change...)...)
	return p
}

// field is the newest field.
func (p *peer) field() string { return lettucecompat.NewField(p.id, p.n) }

// request asks for k with the newest field, and stands if that is refused.
func (p *peer) request() lettucecompat.AcquireRequest {
	p.send++
	return lettucecompat.AcquireRequest{Key: "k", Field: p.field(), Lease: 10 * time.Second, Attempt: p.send}
}

// acquire asks for k with a new field.
func (p *peer) acquire() lettucecompat.AcquireReply {
	p.t.Helper()
	p.n++
	return p.TryAcquire(ctx, p.request())
}

// takes asks for k with a new field and gets it.
func (p *peer) takes() {
	p.t.Helper()
	want(p.t, p.id+" takes the lock", p.acquire().Outcome, ok)
}

// stands asks for k with a new field, and stands for it with so many before it.
func (p *peer) stands(ahead int) lettucecompat.AcquireReply {
	p.t.Helper()
	got := p.acquire()
	if got.Outcome != refused || !got.Standing || got.Ahead != ahead {
		p.t.Fatalf("%s: %+v, want to stand behind %d", p.id, got, ahead)
	}
	return got
}

// try asks for k with a new field that does not stand.
func (p *peer) try() lettucecompat.AcquireReply {
	p.n++
	r := p.request()
	r.Attempt = 0
	return p.TryAcquire(ctx, r)
}

// release releases the newest field.
func (p *peer) release() lettucecompat.ReleaseReply {
	return p.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: p.field()})
}

// releases releases the newest field, which is there.
func (p *peer) releases() {
	p.t.Helper()
	if got := p.release(); got.Outcome != ok || got.Left || got.Marked {
		p.t.Fatalf("%s: release: %+v", p.id, got)
	}
}

// confirm confirms the place of the newest field.
func (p *peer) confirm() lettucecompat.PlaceReply {
	p.send++
	return p.Confirm(ctx, []lettucecompat.Place{{Key: "k", Field: p.field(), Attempt: p.send}}, 0)[0]
}

// called waits for the message that the newest field has been called.
func (p *peer) called() lettucecompat.Call {
	p.t.Helper()
	select {
	case c := <-p.calls:
		want(p.t, "field that was called", c.N, p.n)
		return c
	case <-time.After(10 * time.Second):
		p.t.Fatalf("%s was not called", p.id)
	}
	return lettucecompat.Call{}
}

// looked waits for the advice to look again.
func (p *peer) looked() time.Duration {
	p.t.Helper()
	select {
	case n := <-p.lookAt:
		want(p.t, "field that had better look", n, p.n)
		return <-p.looks
	case <-time.After(10 * time.Second):
		p.t.Fatalf("%s was not told to look", p.id)
	}
	return 0
}

// holds reports that k is held by the newest field of p and by nobody else.
func (b *bed) holds(t testing.TB, p *peer) {
	t.Helper()
	b.wantHash(t, "k", hash{p.field(): "1"})
}

// nothingLeft reports that no key is left behind.
func (b *bed) nothingLeft(t testing.TB) {
	t.Helper()
	if keys := b.raw.Keys(ctx, "*").Val(); len(keys) > 0 {
		t.Fatalf("left behind: %q", keys)
	}
}

// age makes the place of p be confirmed so long ago.
func (b *bed) age(t testing.TB, p *peer, by time.Duration) {
	t.Helper()
	at := "p" + b.raw.HGet(ctx, lineOfK, "c"+p.id).Val()
	words := strings.Fields(b.raw.HGet(ctx, lineOfK, at).Val())
	ms, err := strconv.ParseInt(words[len(words)-1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	words[len(words)-1] = strconv.FormatInt(ms-by.Milliseconds(), 10)
	b.raw.HSet(ctx, lineOfK, at, strings.Join(words, " "))
}
