package lettucecompat_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// Short names of what is stated and answered.
const (
	nothing = lettucecompat.HaveNothing
	place   = lettucecompat.HavePlace
	unit    = lettucecompat.HaveUnit

	has         = lettucecompat.WordHas
	hasNothing  = lettucecompat.WordNothing
	waits       = lettucecompat.WordWaits
	wordRefused = lettucecompat.WordRefused
	void        = lettucecompat.WordVoid
	lost        = lettucecompat.WordLost
	wordGone    = lettucecompat.WordGone

	ok      = lettucecompat.OutcomeOK
	refused = lettucecompat.OutcomeRefused
	gone    = lettucecompat.OutcomeGone
	failed  = lettucecompat.OutcomeFailed
	unknown = lettucecompat.OutcomeUnknown
)

type hash = map[string]string

const (
	lineOfK = "anteroom:line:{k}"
	// first is the number of the first command of a peer.
	first = 1_700_000_000_000_000

	// Long, so that on no machine a test outlasts one, and margin below one is what it may have used of it.
	callLease = 10 * time.Minute
	lease     = time.Hour
	margin    = 5 * time.Minute
	// life is the longest of a place.
	life = 30 * time.Second
)

// terms and fencedTerms are those of all tests that do not care.
var (
	terms       = &lettucecompat.Terms{Call: callLease, Lease: lease, Life: life}
	fencedTerms = &lettucecompat.Terms{Call: callLease, Lease: lease, Life: life, Fenced: true, RecordTime: lettucecompat.DefaultRecordTime}
	stringTerms = &lettucecompat.Terms{Call: callLease, Lease: lease, Life: life, Strings: true}
)

// peer is a client that states about k, and what arrives on its own channel. It keeps the numbers as a process does.
type peer struct {
	*lettucecompat.Client
	t        testing.TB
	id       string
	key      string
	terms    *lettucecompat.Terms
	n        uint64 // of its last command
	unit     uint64 // of its unit
	floor    uint64 // of its last command that kept nothing
	messages chan lettucecompat.Message
	warns    chan lettucecompat.Warning
}

// peer makes a client that listens on its own channel.
func (b *bed) peer(t testing.TB, id string, change ...func(*lettucecompat.Options)) *peer {
	t.Helper()
	p := newPeer(t, b.rdb, id, change...)
	p.Subscribe()
	eventually(t, id+" listens", p.Listening)
	return p
}

func newPeer(t testing.TB, rdb lettucecompat.Redis, id string, change ...func(*lettucecompat.Options)) *peer {
	t.Helper()
	p := &peer{
		t: t, id: id, key: "k", terms: terms, n: first, floor: first,
		messages: make(chan lettucecompat.Message, 1000), warns: make(chan lettucecompat.Warning, 1000),
	}
	p.Client = newClient(t, rdb, append([]func(*lettucecompat.Options){func(o *lettucecompat.Options) {
		o.ClientID = id
		o.OnMessage = func(m lettucecompat.Message) { p.messages <- m }
		o.OnWarning = func(w lettucecompat.Warning) { p.warns <- w }
	}}, change...)...)
	return p
}

// command is one about k under the next number.
func (p *peer) command(have lettucecompat.Have, keep, want int64) lettucecompat.Command {
	p.n++
	s := lettucecompat.Command{Key: p.key, N: p.n, Since: p.n, Have: have, Keep: keep, Want: want, Terms: p.terms}
	switch have {
	case place:
		s.Since = p.floor
	case unit:
		s.Since, s.Units = p.unit, 1
	}
	return s
}

// says sends s, and learns from the answer.
func (p *peer) says(s lettucecompat.Command) lettucecompat.Answer {
	p.t.Helper()
	a := p.Do(ctx, s)
	if s.Keep == 0 {
		p.floor = s.N
	}
	if a.Outcome == ok && a.Word == has && s.Keep == 0 {
		p.unit = s.N
	}
	return a
}

// state sends a command under the next number.
func (p *peer) state(have lettucecompat.Have, keep, want int64) lettucecompat.Answer {
	p.t.Helper()
	return p.says(p.command(have, keep, want))
}

func (p *peer) acquire() lettucecompat.Answer { return p.state(nothing, 0, 1) }
func (p *peer) confirm() lettucecompat.Answer { return p.state(place, 1, 1) }
func (p *peer) release() lettucecompat.Answer { return p.state(unit, 0, 0) }
func (p *peer) yield() lettucecompat.Answer   { return p.state(unit, 0, 1) }
func (p *peer) cancel() lettucecompat.Answer  { return p.state(nothing, 0, 0) }

func (p *peer) try() lettucecompat.Answer {
	p.t.Helper()
	s := p.command(nothing, 0, 1)
	s.Try = true
	return p.says(s)
}

// wantWord checks an answer.
func (p *peer) wantWord(what string, a lettucecompat.Answer, w lettucecompat.Word) lettucecompat.Answer {
	p.t.Helper()
	if a.Outcome != ok || a.Word != w {
		p.t.Fatalf("%s: %s: %v %v (%+v), want %v", p.id, what, a.Outcome, a.Word, a, w)
	}
	return a
}

// takes asks and gets the lock.
func (p *peer) takes() lettucecompat.Answer {
	p.t.Helper()
	return p.wantWord("acquire", p.acquire(), has)
}

// waits asks and takes a place behind so many.
func (p *peer) waits(ahead int) lettucecompat.Answer {
	p.t.Helper()
	a := p.wantWord("acquire", p.acquire(), waits)
	want(p.t, p.id+": places ahead", a.Ahead, ahead)
	return a
}

// releases releases the lock, which it has.
func (p *peer) releases() {
	p.t.Helper()
	p.wantWord("release", p.release(), hasNothing)
}

// field is the field of the unit with number n.
func (p *peer) field(n uint64) string { return lettucecompat.NewField(p.id, n) }

// next waits for a message.
func (p *peer) next() lettucecompat.Message {
	p.t.Helper()
	select {
	case m := <-p.messages:
		want(p.t, p.id+": key of the message", m.Key, p.key)
		return m
	case <-time.After(pace.Hang):
		p.t.Fatalf("%s has heard nothing", p.id)
	}
	return lettucecompat.Message{}
}

// message waits for a message, which is of the kind.
func (p *peer) message(kind lettucecompat.MessageKind) lettucecompat.Message {
	p.t.Helper()
	m := p.next()
	want(p.t, p.id+": kind of the message", m.Kind, kind)
	return m
}

// called waits until it is called under the number of its last command, whatever hints come before.
func (p *peer) called() lettucecompat.Message {
	p.t.Helper()
	for {
		m := p.next()
		switch m.Kind {
		case lettucecompat.MessageCalled:
			want(p.t, p.id+": number that was called", m.N, p.n)
			p.unit = m.N
			return m
		case lettucecompat.MessageForced:
			p.t.Fatalf("%s: forced: %+v", p.id, m)
		}
	}
}

// contended waits for the notification that another client waits for its unit.
func (p *peer) contended() {
	p.t.Helper()
	want(p.t, p.id+": number of the notified unit", p.message(lettucecompat.MessageContended).N, p.unit)
}

// retries waits for the hint to confirm again.
func (p *peer) retries() time.Duration {
	p.t.Helper()
	return p.message(lettucecompat.MessageRetry).After
}

// silent checks that nothing has arrived until now: a probe comes behind all that was published before it.
func (p *peer) silent() {
	p.t.Helper()
	if err := p.Probe(ctx); err != nil {
		p.t.Fatal(err)
	}
	select {
	case m := <-p.messages:
		p.t.Fatalf("%s has heard %+v", p.id, m)
	default:
	}
}

// holds checks that k is held by the unit of p and by nobody else.
func (b *bed) holds(t testing.TB, p *peer) {
	t.Helper()
	b.wantHash(t, p.key, hash{p.field(p.unit): "1"})
}

// nothingLeft checks that no key is left behind.
func (b *bed) nothingLeft(t testing.TB) {
	t.Helper()
	if keys := b.raw.Keys(ctx, "*").Val(); len(keys) > 0 {
		t.Fatalf("left behind: %q", keys)
	}
}

// put writes a hash with a time to live, 0: without.
func (b *bed) put(t testing.TB, key string, h hash, ttl time.Duration) {
	t.Helper()
	if err := b.raw.HSet(ctx, key, h).Err(); err != nil {
		t.Fatal(err)
	}
	if ttl > 0 {
		b.raw.PExpire(ctx, key, ttl)
	}
}

// placeOf returns the words of the place that client has in the line of k, nil where it has none.
func (b *bed) placeOf(client string) []string {
	seq := b.raw.HGet(ctx, lineOfK, "c"+client).Val()
	return strings.Fields(b.raw.HGet(ctx, lineOfK, "p"+seq).Val())
}

// age makes the place of p end by so much sooner.
func (b *bed) age(t testing.TB, p *peer, by time.Duration) {
	t.Helper()
	words := b.placeOf(p.id)
	alive, err := strconv.ParseInt(words[3], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	words[3] = strconv.FormatInt(alive-by.Milliseconds(), 10)
	b.raw.HSet(ctx, lineOfK, "p"+b.raw.HGet(ctx, lineOfK, "c"+p.id).Val(), strings.Join(words, " "))
}

// unsubscribes ends the subscription of p, and waits until the server knows.
func (b *bed) unsubscribes(t testing.TB, p *peer) {
	t.Helper()
	p.StopListening()
	channel := "anteroom:client:" + p.id
	eventually(t, p.id+" does not listen", func() bool { return b.raw.PubSubNumSub(ctx, channel).Val()[channel] == 0 })
}
