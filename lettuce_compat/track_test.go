package lettucecompat_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// watched is a client whose tracked fields are known to be held, and what its connections have found missing.
type watched struct {
	*bed
	c        *lettucecompat.Client
	missing  chan string // keys
	warnings chan lettucecompat.Warning

	mu    sync.Mutex
	there bool // what the question says
}

// follow makes one over rdb, or over b's own client.
func (b *bed) follow(t testing.TB, rdb lettucecompat.Redis, change ...func(*lettucecompat.Options)) *watched {
	t.Helper()
	w := &watched{bed: b, missing: make(chan string, 1<<16), warnings: make(chan lettucecompat.Warning, 16)}
	if rdb == nil {
		rdb = b.rdb
	}
	w.c = newClient(t, rdb, append([]func(*lettucecompat.Options){func(o *lettucecompat.Options) {
		o.CommandTimeout = pace.Scale(time.Second)
		o.OnWarning = func(warning lettucecompat.Warning) { w.warnings <- warning }
		o.OnMissing = func(_ context.Context, some []*lettucecompat.Tracked) bool {
			for _, e := range some {
				w.missing <- e.Key
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.there
		}
	}}, change...)...)
	return w
}

// hold puts a field into Redis, tracks it, and returns when Redis has noted that.
func (w *watched) hold(t testing.TB, key string) *lettucecompat.Tracked {
	t.Helper()
	before := lettucecompat.TrackReads(w.c)
	w.raw.HSet(ctx, key, "me", "1")
	w.raw.PExpire(ctx, key, time.Hour)
	e := w.c.Track(lettucecompat.Query{Key: key, Field: "me"}, nil)
	eventually(t, "read once", func() bool { return lettucecompat.TrackReads(w.c) > before })
	return e
}

// told waits until key is found missing.
func (w *watched) told(t testing.TB, what, key string) {
	t.Helper()
	began, limit := time.Now(), time.After(pace.Hang)
	for {
		select {
		case got := <-w.missing:
			if got == key {
				if d := time.Since(began); d > 10*time.Millisecond {
					t.Logf("%s: after %v", what, d)
				}
				return
			}
		case <-limit:
			t.Fatalf("%s: not told", what)
		}
	}
}

// quiet fails if anything is found missing for a while.
func (w *watched) quiet(t testing.TB, what string) {
	t.Helper()
	select {
	case key := <-w.missing:
		t.Fatalf("%s: %q is said to be missing", what, key)
	case <-time.After(100 * time.Millisecond):
	}
}

func (w *watched) do(t testing.TB, args ...any) {
	t.Helper()
	if err := w.raw.Do(ctx, args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

// TestTrack_T1_EveryRemovalIsFound: whatever removes the field is found at once, and what does not is not.
func TestTrack_T1_EveryRemovalIsFound(t *testing.T) {
	t.Parallel()
	w := onReal(t, nil).follow(t, nil)
	host, port, _ := net.SplitHostPort(testredis.Start(t).Addr())
	for what, remove := range map[string][][]any{
		"DEL":      {{"del", "k"}},
		"HDEL":     {{"hdel", "k", "me"}},
		"UNLINK":   {{"unlink", "k"}},
		"RENAME":   {{"rename", "k", "other"}},
		"SET":      {{"set", "k", "x"}},
		"FLUSHALL": {{"flushall"}},
		"FLUSHDB":  {{"flushdb"}},
		"script":   {{"eval", "return redis.call('del', KEYS[1])", "1", "k"}},
		"MIGRATE":  {{"migrate", host, port, "k", "0", "60000", "replace"}},
		"eviction": {{"config", "set", "maxmemory-policy", "allkeys-random"}, {"config", "set", "maxmemory", "1"}},
		"expiry":   {{"pexpire", "k", "1"}},
	} {
		w.do(t, "config", "set", "maxmemory", "0")
		w.do(t, "del", "k")
		e := w.hold(t, "k")
		for _, harmless := range [][]any{{"persist", "k"}, {"pexpire", "k", "100000"}, {"hset", "k", "foreign", "1"}, {"hdel", "k", "foreign"}} {
			w.do(t, harmless...)
		}
		w.quiet(t, what)
		for _, args := range remove {
			w.do(t, args...)
		}
		w.told(t, what, "k")
		e.Close()
	}
}

// TestTrack_T2_APushEndsTheRegistration: after each change the field is read again, or nothing would be told of the next one.
func TestTrack_T2_APushEndsTheRegistration(t *testing.T) {
	t.Parallel()
	w := onReal(t, nil).follow(t, nil)
	defer w.hold(t, "k").Close()
	for i := range 3 {
		reads := lettucecompat.TrackReads(w.c)
		w.do(t, "pexpire", "k", 100000+i) // as a renewal does
		eventually(t, "read again", func() bool { return lettucecompat.TrackReads(w.c) > reads })
	}
	w.do(t, "del", "k")
	w.told(t, "DEL after three changes", "k")
}

// TestTrack_T3_NoGap: a removal beside the first read, or beside one that a push has caused, is found by the read or pushed.
func TestTrack_T3_NoGap(t *testing.T) {
	t.Parallel()
	w := onReal(t, nil).follow(t, nil)
	w.hold(t, "first").Close()
	for i := range 300 {
		key := fmt.Sprint("k", i)
		w.raw.HSet(ctx, key, "me", "1")
		e := w.c.Track(lettucecompat.Query{Key: key, Field: "me"}, nil)
		if i%3 == 0 {
			w.raw.PExpire(ctx, key, time.Hour)
		}
		time.Sleep(time.Duration(i%20) * 20 * time.Microsecond)
		w.raw.Del(ctx, key)
		w.told(t, key, key)
		e.Close()
	}
}

// TestTrack_T4_OneCommandAndOneNoteForEachKey: the connection reads by HEXISTS, and Redis notes the held keys alone, though
// scripts read others.
func TestTrack_T4_OneCommandAndOneNoteForEachKey(t *testing.T) {
	t.Parallel()
	w := onReal(t, nil).follow(t, nil)
	const n = 600 // three round trips
	for i := range n {
		key := fmt.Sprint("k", i)
		w.raw.HSet(ctx, key, "me", "1")
		defer w.c.Track(lettucecompat.Query{Key: key, Field: "me"}, nil).Close()
	}
	eventually(t, "all are noted", func() bool { return lettucecompat.TrackReads(w.c) >= n })
	want(t, "acquire", w.c.Do(ctx, asks("lock", 1)).Outcome, lettucecompat.OutcomeOK)
	if info := w.raw.Info(ctx, "stats").Val(); !strings.Contains(info, fmt.Sprintf("tracking_total_keys:%d\r\n", n)) {
		t.Errorf("%s", info)
	}
	reads := w.real.Stats(t)["hexists"]
	if reads < n || reads > n+n/10 {
		t.Errorf("%d reads of %d keys", reads, n)
	}
	w.raw.Do(ctx, "flushall")
	for range n {
		select {
		case <-w.missing:
		case <-time.After(pace.Hang):
			t.Fatal("not all are found missing after FLUSHALL")
		}
	}
}

// TestTrack_T5_ClosedBeforeTheRelease: what a process itself gives back is not asked about.
func TestTrack_T5_ClosedBeforeTheRelease(t *testing.T) {
	t.Parallel()
	w := onReal(t, nil).follow(t, nil)
	for range 20 {
		e := w.hold(t, "k")
		e.Close()
		w.raw.Del(ctx, "k")
	}
	e := w.hold(t, "k") // the same key, held again: the end of the older one does not end this
	again := w.c.Track(lettucecompat.Query{Key: "k", Field: "me"}, nil)
	e.Close()
	e.Close()
	w.quiet(t, "given back")
	w.raw.Del(ctx, "k")
	w.told(t, "the newer one", "k")
	again.Close()
}

// TestTrack_T6_AReconnectAsksImmediately: what was removed while there was no connection is found when there is one.
func TestTrack_T6_AReconnectAsksImmediately(t *testing.T) {
	t.Parallel()
	w := onReal(t, nil).follow(t, nil)
	defer w.hold(t, "k").Close()
	defer w.hold(t, "stays").Close()
	w.net.Refuse()
	w.do(t, "client", "kill", "type", "normal", "skipme", "yes")
	w.do(t, "del", "k")
	w.quiet(t, "without a connection")
	w.net.Heal()
	w.told(t, "removed during an outage", "k")
	w.do(t, "client", "kill", "type", "normal", "skipme", "yes")
	w.do(t, "del", "stays")
	w.told(t, "removed beside the end of a connection", "stays")
}

// TestTrack_T6_ASilentConnectionIsFound_Lab: a half-open connection is found by a PING.
func TestTrack_T6_ASilentConnectionIsFound_Lab(t *testing.T) {
	t.Parallel()
	w := onReal(t, nil).follow(t, nil)
	defer w.hold(t, "k").Close()
	w.net.HalfOpen(faultnet.All)
	w.do(t, "del", "k")
	w.told(t, "removed behind a half-open connection", "k")
}

// TestTrack_T6_AContradictionConnectsAnew: the connection is to a server that is no master any more. The question finds
// what that misses, and the next connection is to the right one.
func TestTrack_T6_AContradictionConnectsAnew(t *testing.T) {
	t.Parallel()
	b, wrong := onReal(t, nil), onReal(t, nil)
	var mu sync.Mutex
	dials := 0
	rdb := redis.NewClient(options(b.real.Addr(), nil, func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			if dials++; dials == 1 {
				addr = wrong.real.Addr()
			}
			return b.net.Dial(ctx, network, addr)
		}
	}))
	defer rdb.Close()
	w := b.follow(t, rdb)
	w.there = true
	w.raw.HSet(ctx, "k", "me", "1")
	e := w.c.Track(lettucecompat.Query{Key: "k", Field: "me"}, nil)
	defer e.Close()
	w.told(t, "the wrong server does not have it", "k")
	eventually(t, "connected anew", func() bool {
		return b.raw.Info(ctx, "stats").Val() != "" && strings.Contains(b.raw.Info(ctx, "stats").Val(), "tracking_total_keys:1\r\n")
	})
	w.quiet(t, "the right one has it")
	w.raw.Del(ctx, "k")
	w.told(t, "DEL", "k")
}

// TestTrack_T6_AnOutageIsNoContradiction: after a connection to the wrong server come some that fail. They have contradicted nobody.
func TestTrack_T6_AnOutageIsNoContradiction(t *testing.T) {
	t.Parallel()
	b, wrong := onReal(t, nil), onReal(t, nil)
	var dials atomic.Int32
	var healed atomic.Bool
	rdb := redis.NewClient(options(b.real.Addr(), nil, func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			switch {
			case dials.Add(1) == 1:
				addr = wrong.real.Addr()
			case !healed.Load():
				return nil, &net.OpError{Op: "dial", Err: faultnet.ErrRefused}
			}
			return b.net.Dial(ctx, network, addr)
		}
	}))
	defer rdb.Close()
	w := b.follow(t, rdb)
	w.there = true
	lettucecompat.TrackContradictions(w.c, 3)
	w.raw.HSet(ctx, "k", "me", "1")
	defer w.c.Track(lettucecompat.Query{Key: "k", Field: "me"}, nil).Close()
	w.told(t, "the wrong server does not have it", "k")
	eventually(t, "dialed in vain", func() bool { return dials.Load() > 5 || len(w.warnings) > 0 })
	want(t, "warnings", len(w.warnings), 0)
	healed.Store(true)
	w.raw.Del(ctx, "k")
	w.told(t, "removed during the outage", "k")
}

// TestTrack_T7_AFullServerIsNoRefusal: it says so before it hears HELLO, and has closed the connection then.
func TestTrack_T7_AFullServerIsNoRefusal(t *testing.T) {
	t.Parallel()
	w := onReal(t, nil, func(o *redis.Options) { o.DisableIdentity = true }).follow(t, nil)
	defer w.hold(t, "k").Close()
	dials := w.net.Dials()
	w.do(t, "config", "set", "maxclients", "1")
	w.do(t, "client", "kill", "type", "normal", "skipme", "yes")
	eventually(t, "refused as one too many", func() bool { return w.net.Dials() > dials+2 || len(w.warnings) > 0 })
	want(t, "warnings", len(w.warnings), 0)
	w.do(t, "config", "set", "maxclients", "1000")
	w.do(t, "del", "k")
	w.told(t, "removed meanwhile", "k")
}

// TestTrack_T6_ACommandThatMeetsAReplica: READONLY makes the connection anew.
func TestTrack_T6_ACommandThatMeetsAReplica(t *testing.T) {
	t.Parallel()
	w := onReal(t, nil).follow(t, nil)
	defer w.hold(t, "k").Close()
	dials := w.net.Dials()
	w.do(t, "replicaof", "127.0.0.1", "1")
	want(t, "acquire", w.c.Do(ctx, asks("free", 2)).Outcome, failed)
	eventually(t, "connected anew", func() bool { return w.net.Dials() > dials+1 }) // the first is that of the acquire
}

// TestTrack_ASlowNetwork: a connection is made in several round trips, each of which a command may take.
func TestTrack_ASlowNetwork(t *testing.T) {
	t.Parallel()
	limit := pace.Scale(100 * time.Millisecond)
	w := onReal(t, nil).follow(t, nil, func(o *lettucecompat.Options) { o.CommandTimeout = limit })
	w.net.Delay(limit * 2 / 5)
	defer w.hold(t, "k").Close()
}

// TestTrack_T6_ADoubtWhileConnecting: a command meets a replica while a connection is being made, to the same server. That
// connection is doubted, too.
func TestTrack_T6_ADoubtWhileConnecting(t *testing.T) {
	t.Parallel()
	old, b := onReal(t, nil), onReal(t, nil)
	var dials atomic.Int32
	var moved atomic.Bool
	dialed, goOn := make(chan struct{}), make(chan struct{})
	rdb := redis.NewClient(options(b.real.Addr(), nil, func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if !moved.Load() {
				addr = old.real.Addr()
			}
			conn, err := b.net.Dial(ctx, network, addr)
			if dials.Add(1) == 1 {
				close(dialed)
				<-goOn
			}
			return conn, err
		}
	}))
	defer rdb.Close()
	w := b.follow(t, rdb)
	for _, rdb := range []*redis.Client{old.raw, b.raw} {
		rdb.HSet(ctx, "k", "me", "1")
	}
	defer w.c.Track(lettucecompat.Query{Key: "k", Field: "me"}, nil).Close()
	<-dialed
	old.raw.Do(ctx, "replicaof", "127.0.0.1", "1")
	want(t, "acquire", w.c.Do(ctx, asks("free", 2)).Outcome, failed)
	moved.Store(true)
	close(goOn)
	eventually(t, "read", func() bool { return lettucecompat.TrackReads(w.c) > 0 })
	w.do(t, "del", "k")
	w.told(t, "removed from the new master", "k")
}

// TestTrack_T6_ASlotThatMoves_Lab: a key is read where it is.
func TestTrack_T6_ASlotThatMoves_Lab(t *testing.T) {
	t.Parallel()
	cl := testredis.StartCluster(t, 2, 0)
	rdb := cl.Client(t)
	w := (&bed{}).follow(t, rdb)
	const key = "k"
	slot := cl.Slot(key)
	from, to := cl.Master(slot), cl.Masters()[0]
	if to == from {
		to = cl.Masters()[1]
	}
	stays := "stays"
	for i := 0; cl.Master(cl.Slot(stays)) != from || cl.Slot(stays) == slot; i++ {
		stays = fmt.Sprint("stays", i)
	}
	w.c.Do(ctx, asks(key, 1)) // makes the layout known
	for i, k := range []string{key, stays} {
		rdb.HSet(ctx, k, "me", "1")
		defer w.c.Track(lettucecompat.Query{Key: k, Field: "me"}, nil).Close()
		eventually(t, "read once", func() bool { return lettucecompat.TrackReads(w.c) > i })
	}
	w.mu.Lock()
	w.there = true
	w.mu.Unlock()
	cl.MoveSlot(slot, to)
	want(t, "acquire", w.c.Do(ctx, asks(key, 2)).Outcome, lettucecompat.OutcomeOK) // hears of the move
	for _, node := range []*testredis.Server{from, to} {
		rdb := node.Client(t)
		eventually(t, "each key is read where it is", func() bool {
			return strings.Contains(rdb.Info(ctx, "stats").Val(), "tracking_total_keys:1\r\n")
		})
	}
	limit, settled := time.After(pace.Hang), time.After(2*time.Second)
	for settled != nil { // one connection for both would miss one of them each second
		select {
		case <-w.missing:
			settled = time.After(2 * time.Second)
		case <-settled:
			settled = nil
		case <-limit:
			t.Fatal("a key is missed all the time")
		}
	}
	for _, k := range []string{key, stays} {
		rdb.Del(ctx, k)
		w.told(t, "DEL of "+k, k)
	}
}

// TestTrack_T6_ASlotThatIsMoving_Lab: meanwhile its old master says that the key is elsewhere. That is no refusal, however long it
// takes.
func TestTrack_T6_ASlotThatIsMoving_Lab(t *testing.T) {
	t.Parallel()
	cl := testredis.StartCluster(t, 2, 0)
	rdb := cl.Client(t)
	w := (&bed{}).follow(t, rdb)
	lettucecompat.TrackContradictions(w.c, 2)
	w.there = true
	const key = "k"
	slot := cl.Slot(key)
	to := cl.Masters()[0]
	if to == cl.Master(slot) {
		to = cl.Masters()[1]
	}
	w.c.Do(ctx, asks(key, 1)) // makes the layout known
	rdb.HSet(ctx, key, "me", "1")
	defer w.c.Track(lettucecompat.Query{Key: key, Field: "me"}, nil).Close()
	eventually(t, "read once", func() bool { return lettucecompat.TrackReads(w.c) > 0 })
	move := cl.BeginMove(slot, to)
	move.MoveKeys()
	for range 4 {
		w.told(t, "the key is elsewhere", key)
	}
	move.End()
	want(t, "acquire", w.c.Do(ctx, asks(key, 2)).Outcome, lettucecompat.OutcomeOK) // hears of the move, as a question does
	there := to.Client(t)
	eventually(t, "read there", func() bool { return strings.Contains(there.Info(ctx, "stats").Val(), "tracking_total_keys:1\r\n") })
	select {
	case got := <-w.warnings:
		t.Errorf("%v: %v", got.Kind, got.Err)
	default:
	}
}

// TestTrack_T6_AFailoverBySentinel_Lab: the next connection is to the new master.
func TestTrack_T6_AFailoverBySentinel_Lab(t *testing.T) {
	t.Parallel()
	s := testredis.StartSentinel(t)
	rdb, old := s.Client(t), s.Master()
	w := (&bed{raw: old.Client(t)}).follow(t, rdb)
	defer w.hold(t, "k").Close()
	w.raw.Wait(ctx, 1, pace.Hang)
	s.Failover()
	now := s.AwaitMaster(old).Client(t)
	for limit := time.Now().Add(pace.Hang); !strings.Contains(now.Info(ctx, "stats").Val(), "tracking_total_keys:1\r\n"); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(limit) { // the old one keeps its connections until Sentinel makes it a replica, ten seconds later
			t.Fatal("the new master is not asked")
		}
	}
	w.quiet(t, "it has the key")
	now.Del(ctx, "k")
	w.told(t, "DEL", "k")
}

// TestTrack_T7_Refused: one warning, and everything else as before.
func TestTrack_T7_Refused(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string][]any{
		"CLIENT":  {"~*", "&*", "+@all", "-client"},
		"HEXISTS": {"~*", "&*", "+@all", "-hexists"},
	} {
		t.Run(name, func(t *testing.T) {
			b := onReal(t, nil)
			b.refused(t, b.follow(t, b.user(t, rules...)))
		})
	}
	t.Run("RESP3", func(t *testing.T) { // else the server would agree, and never push
		b := onReal(t, []string{"--rename-command", "HELLO", "hello2"})
		b.refused(t, b.follow(t, nil))
	})
	t.Run("unknown command", func(t *testing.T) {
		b := onMini(t)
		b.refused(t, b.follow(t, nil))
	})
	t.Run("foreign client", func(t *testing.T) {
		b := onReal(t, nil)
		b.refused(t, b.follow(t, struct{ lettucecompat.Redis }{b.rdb}))
	})
	t.Run("keys that a hook renames", func(t *testing.T) {
		b := onReal(t, nil)
		w := b.follow(t, nil)
		w.there = true // by the client's own question
		lettucecompat.TrackContradictions(w.c, 3)
		defer w.c.Track(lettucecompat.Query{Key: "never there without the hook", Field: "me"}, nil).Close()
		w.warning(t)
		dials := b.net.Dials()
		time.Sleep(1500 * time.Millisecond) // after a doubt there is a connection in a second
		want(t, "connections after it", b.net.Dials(), dials)
	})
}

// warning waits for that of a refusal.
func (w *watched) warning(t *testing.T) {
	t.Helper()
	select {
	case got := <-w.warnings:
		want(t, "warning", got.Kind, lettucecompat.WarnTrackingRefused)
		if got.Err == nil {
			t.Error("nothing says why")
		}
		t.Log(got.Err)
	case <-time.After(pace.Hang):
		t.Fatal("no warning")
	}
}

func (b *bed) refused(t *testing.T, w *watched) {
	t.Helper()
	b.raw.HSet(ctx, "k", "me", "1")
	defer w.c.Track(lettucecompat.Query{Key: "k", Field: "me"}, nil).Close()
	w.warning(t)
	dials := b.net.Dials()
	defer w.c.Track(lettucecompat.Query{Key: "k2", Field: "me"}, nil).Close()
	w.quiet(t, "refused")
	want(t, "further connections", b.net.Dials(), dials)
	want(t, "further warnings", len(w.warnings), 0)
	want(t, "acquire", w.c.Do(ctx, asks("lock", 1)).Outcome, lettucecompat.OutcomeOK)
}

// TestTrack_T10_ReadsAreBounded_Lab: others write the key all the time.
func TestTrack_T10_ReadsAreBounded_Lab(t *testing.T) {
	t.Parallel()
	w := onReal(t, nil).follow(t, nil)
	defer w.hold(t, "k").Close()
	reads, began, busy := lettucecompat.TrackReads(w.c), time.Now(), pace.Factor()
	writes := 0
	for ; time.Since(began) < 2500*time.Millisecond; writes++ {
		w.raw.HSet(ctx, "k", "other", writes)
	}
	n, seconds := lettucecompat.TrackReads(w.c)-reads, int(time.Since(began)/time.Second)
	most := 18 + seconds // 16 immediately, and one in each second
	if max(busy, pace.Factor()) >= 2 {
		most += 17 * seconds // a second in which nothing reaches the tracker begins anew
	}
	if n < min(16, writes) || n > most {
		t.Errorf("%d reads in %d s of %d writes, want at most %d", n, seconds, writes, most)
	}
	w.raw.Del(ctx, "k")
	w.told(t, "DEL after that", "k")
}

// TestTrack_CloseEndsIt: at whatever moment.
func TestTrack_CloseEndsIt(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	for i := range 20 {
		w := b.follow(t, nil)
		b.raw.HSet(ctx, "k", "me", "1")
		w.c.Track(lettucecompat.Query{Key: "k", Field: "me"}, nil)
		time.Sleep(time.Duration(i) * 200 * time.Microsecond)
		if i%2 == 0 {
			b.raw.Del(ctx, "k")
		}
		w.c.Close()
		want(t, "trackers", lettucecompat.TrackersEnded(w.c), true)
		late := w.c.Track(lettucecompat.Query{Key: "k", Field: "me"}, nil)
		late.Close()
	}
}
