package lettucecompat_test

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// hostileKeys are names that a user of a program may have chosen to be mistaken for
// something else: for a pattern, a script, a message, a command, another key of ours. Many
// differ in one byte only.
var hostileKeys = []string{
	"k", "k ", " k", "k\n", "k\r\n", "k\x00", "k\x00\x00", "\x00", "\xff", "\xc3\x28", "k\ufffd", "k\xff",
	`"`, `\"`, `'`, "`", `\`, `\\`, `","holder":"x`, `"}`, `{"probe":"x"}`, `{"forced":{"key":"aw==","field":"me:1"}}`,
	"*", "?", "k*", "[a-z]", "lock:release:*", "k?", "order:*", "%s", "%d%n", "%",
	"{", "}", "{}", "{k}", "{{k}}", "{k", "k}", "a{k}b", "{}k", "{k}{k}", "}k{",
	"'; redis.call('flushall') --", "]] redis.call('flushall') --", "' .. redis.call('flushall') .. '", "return 1", "KEYS[1]", "ARGV[1]", "0", "1", "-1", "nil", "1e3", "true",
	"k\r\nDEL x\r\n", "*1\r\n$8\r\nFLUSHALL\r\n", "$-1\r\n",
	"anteroom:client:me", "anteroom:client:you", "lock:release:k", "lock:release:lock:release:k", "me:1", "me:1:kept", ":none",
	"anteroom:fencing:{k}", "Anteroom:fence:{k}", " anteroom:fence:{k}", "tag:k", "{7}:k", "anteroom:fence",
	"é", "e\u0301", "\u202ek", "\u2028",
	strings.Repeat("x", 64<<10), strings.Repeat("x", 64<<10-1) + "y", strings.Repeat("{", 64<<10),
}

// All of them are held in parallel, with fencing. Each has a hash, a record and a channel of
// its own, which no command about another one touches.
func TestInject_NamesNeverMeet(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	c := b.client(t)
	watches := make([]*lettucecompat.Watch, len(hostileKeys))
	for i, key := range hostileKeys {
		ask := fenced(key, i)
		ask.Terms = &lettucecompat.Terms{Call: lease, Lease: lease, Life: life, Fenced: true, RecordTime: lettucecompat.DefaultRecordTime} // all last until they are renewed
		got := c.Do(ctx, ask)
		if got.Outcome != ok || got.Word != has || got.Token == 0 {
			t.Fatalf("%.40q: %+v", key, got)
		}
		watches[i] = c.Watch(key)
		t.Cleanup(watches[i].Close)
	}
	want(t, "keys", b.raw.DBSize(ctx).Val(), int64(2*len(hostileKeys)))
	for i, key := range hostileKeys {
		signal(t, "the subscription of "+short(key), watches[i].C())
		b.wantHash(t, key, hash{me(i): "1"})
		want(t, "record", b.raw.Exists(ctx, lettucecompat.FenceKey(c, key)).Val(), int64(1))
	}
	for i, key := range hostileKeys {
		everyCommand(t, c, key, i)
		want(t, "release", c.Do(ctx, givesFenced(key, i)).Word, hasNothing)
		signal(t, "the release of "+short(key), watches[i].C())
		want(t, "locks left", b.raw.DBSize(ctx).Val(), int64(2*len(hostileKeys)-i-1))
	}
	// Everything that was published has arrived, since one connection keeps the order: no
	// watch was signalled for the release of another.
	b.raw.Publish(ctx, "lock:release:"+hostileKeys[0], "{}")
	signal(t, "the last message", watches[0].C())
	for i, w := range watches {
		select {
		case <-w.C():
			t.Errorf("%s was woken by another's release", short(hostileKeys[i]))
		default:
		}
	}
}

// everyCommand sends what is not sent by an acquire and a release.
func everyCommand(t *testing.T, c *lettucecompat.Client, key string, i int) {
	t.Helper()
	r := renews(key, i)
	want(t, "renew", c.Renew(ctx, []lettucecompat.Renewal{r}, 0)[0].Outcome, ok)
	want(t, "extend", c.Extend(ctx, r, 0).Outcome, ok)
	want(t, "status", c.Status(ctx, []lettucecompat.Query{{Key: key, Field: me(i)}}, 0)[0].Count, int64(1))
	keeps := givesFenced(key, i)
	keeps.Keep, keeps.Want = 1, 1
	want(t, "renew alone", c.Do(ctx, keeps).Word, has)
	info, err := c.Inspect(ctx, key, false)
	if err != nil || len(info.Holders) != 1 || info.Token == 0 || info.Subscribers != 1 {
		t.Fatalf("%s: %+v, %v", short(key), info, err)
	}
}

// A message to a client about a key of any bytes arrives with these bytes.
func TestInject_MessagesOfAnyKey(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	a, x := b.peer(t, "a"), b.peer(t, "x")
	for _, key := range hostileKeys {
		a.key, x.key = key, key
		a.takes()
		x.waits(0)
		a.contended()
		a.releases()
		x.called()
		must2(a.ForceRelease(ctx, key, false))
		want(t, "forced", x.message(lettucecompat.MessageForced).N, x.unit)
	}
	b.nothingLeft(t)
}

// A message is one JSON object with these three parts, whatever the name holds.
func TestInject_MessagesAreJSON(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	c := b.client(t)
	for _, key := range hostileKeys {
		messages := listen(t, b, func() {
			want(t, "acquire", c.Do(ctx, asks(key, 1)).Word, has)
			want(t, "release", c.Do(ctx, gives(key, 1)).Word, hasNothing)
		})
		if len(messages) != 1 || messages[0].Channel != "lock:release:"+key {
			t.Fatalf("%s: messages %v", short(key), messages)
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(messages[0].Payload), &m); err != nil {
			t.Fatalf("%s: %v in %.200q", short(key), err, messages[0].Payload)
		}
		name, _ := m["lockKey"].(string)
		if len(m) != 3 || m["holder"] != me(1) || utf8.ValidString(key) && name != key {
			t.Errorf("%s: %.200q", short(key), messages[0].Payload)
		}
	}
}

// Anybody who may write the key writes fields. A forced release deletes them and puts
// none into a message or the name of a channel, but those of the form that ours have.
func TestInject_ForeignHolders(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	c := b.client(t)
	for _, holder := range []string{
		`x"}}`, `x","field":"me:1`, "*:1", "a b:1", "a\n:1", "a:1\n", "a:1:kept", ":1", "a:", "a:b:1", "a:-1", "a:17", javaUUID + ":57", "a b:1700000000000000", ":1700000000000000", "a:1700000000000000 ", "a:1e3", "{}:1", "\x00:1", strings.Repeat("h", 64<<10), "",
	} {
		b.put(t, "k", hash{holder: "1"}, time.Minute)
		try := asks("k", 1)
		try.Try = true
		got := c.Do(ctx, try)
		want(t, "word", got.Word, wordRefused)
		want(t, "holder", got.Holder, holder)
		messages := listen(t, b, func() {
			released, err := c.ForceRelease(ctx, "k", false)
			if err != nil || len(released) != 1 || released[0] != holder {
				t.Fatalf("%s: %.100q, %v", short(holder), released, err)
			}
		})
		if len(messages) != 1 || messages[0].Channel != "lock:release:k" {
			t.Errorf("%s: messages %v", short(holder), messages)
		}
		want(t, "left", b.raw.DBSize(ctx).Val(), int64(0))
	}
}

// The id is in fields, in the name of a channel and in a Lua pattern.
func TestInject_ClientIDIsRestricted(t *testing.T) {
	t.Parallel()
	b := onMini(t)
	for _, id := range []string{
		"", " ", "a b", "a:1", "a*", "a?", "a[b]", "a{b}", "a\"b", "a'b", "a\\b", "a\nb", "a\r\nb", "a\x00b", "a\xffb", "é", "a%", "a/b", "a,b",
		strings.Repeat("a", 129),
	} {
		if _, err := lettucecompat.New(b.rdb, lettucecompat.Options{ClientID: id}); err == nil {
			t.Errorf("%q is accepted", id)
		}
	}
	for _, id := range []string{"a", "a-b_c.D9", strings.Repeat("a", 128), lettucecompat.NewClientID("")} {
		c, err := lettucecompat.New(b.rdb, lettucecompat.Options{ClientID: id})
		if err != nil {
			t.Errorf("%q: %v", id, err)
			continue
		}
		c.Close()
	}
}

// The name of a fencing record is no lock: not to take and not to force.
func TestInject_AFencingRecordIsNoLock(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	c := b.client(t)
	want(t, "acquire", c.Do(ctx, fenced("k", 1)).Word, has)
	record := lettucecompat.FenceKey(c, "k")
	before := b.raw.Get(ctx, record).Val()
	want(t, "acquire of the record", c.Do(ctx, asks(record, 2)).Outcome, failed)
	released, err := c.ForceRelease(ctx, record, false)
	if !lettucecompat.Permanent(err) || len(released) != 0 {
		t.Errorf("forced release of the record: %q, %v", released, err)
	}
	want(t, "the record", b.raw.Get(ctx, record).Val(), before)
}

// Anybody who may publish may send anything of any size. It wakes, is counted, and that is all.
func TestInject_HugeMessages(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	forced := make(chan string, 10)
	var reported atomic.Int64
	c := b.client(t, func(o *lettucecompat.Options) {
		o.OnMessage = func(m lettucecompat.Message) { forced <- m.Key }
		o.OnWarning = func(w lettucecompat.Warning) { reported.Add(int64(w.Count)) }
	})
	malformed := func() int {
		return int(reported.Load()) + lettucecompat.Unreported(c, lettucecompat.WarnMalformedMessage)
	}
	w := watchConfirmed(t, c, "k")
	huge := strings.Repeat("x", 4<<20)
	for i, payload := range []string{huge, `{"lockKey":"` + huge, strings.Repeat("[", 1<<20), `{"lockKey":` + strings.Repeat("[", 1<<20)} {
		b.raw.Publish(ctx, "lock:release:k", payload)
		signal(t, "a huge message", w.C())
		b.raw.Publish(ctx, "anteroom:client:me", payload)
		eventually(t, "it is counted", func() bool { return malformed() == 2*i+2 })
	}
	b.raw.Publish(ctx, "anteroom:client:me", "forced - "+strings.Repeat("9", 1<<20)+" k")
	eventually(t, "a number that is none is counted", func() bool { return malformed() == 9 })
	want(t, "forced", len(forced), 0)
	// The connection is as good as before.
	want(t, "acquire", c.Do(ctx, asks("k", 1)).Word, has)
	want(t, "release", c.Do(ctx, gives("k", 1)).Word, hasNothing)
	signal(t, "the release", w.C())
}
