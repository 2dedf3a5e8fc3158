package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// rounds is how many failovers a test makes: ANTEROOM_ROUNDS, or one.
func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("ANTEROOM_ROUNDS")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("ANTEROOM_ROUNDS is %q", text)
	}
	return n
}

// loadKeys is how many keys the load works on.
const loadKeys = 20

// target is a deployment whose master can be killed.
type target struct {
	client   func() redis.UniversalClient
	key      func(name string) string                            // lies on the master that will be killed
	master   func() *testredis.Server                            // that one, now
	replicas func(master *testredis.Server) []*testredis.Server  // of it
	await    func(old *testredis.Server) (new *testredis.Server) // its successor
	rejoin   func(old *testredis.Server)                         // as a replica, all being in place after
	raw      map[*testredis.Server]*redis.Client                 // a client of each node
}

// subscribers counts who listens to channel, on all nodes.
func (d target) subscribers(channel string) (n int64) {
	for node, c := range d.raw {
		if node.Running() {
			n += c.PubSubNumSub(context.Background(), channel).Val()[channel]
		}
	}
	return n
}

func raw(t *testing.T, nodes []*testredis.Server) map[*testredis.Server]*redis.Client {
	t.Helper()
	m := map[*testredis.Server]*redis.Client{}
	for _, n := range nodes {
		m[n] = n.Client(t)
	}
	return m
}

func sentinelTarget(t *testing.T) target {
	s := testredis.StartSentinel(t)
	return target{
		client:   func() redis.UniversalClient { return s.Client(t) },
		key:      func(name string) string { return name },
		master:   s.Master,
		replicas: func(*testredis.Server) []*testredis.Server { return s.Replicas() },
		await:    s.AwaitMaster,
		rejoin:   s.Rejoin,
		raw:      raw(t, s.Nodes()),
	}
}

func clusterTarget(t *testing.T) target {
	c := testredis.StartCluster(t, 3, 3)
	const tag = "{tag}"
	slot := c.Slot(tag)
	return target{
		client:   func() redis.UniversalClient { return c.Client(t) },
		key:      func(name string) string { return name + tag },
		master:   func() *testredis.Server { return c.Master(slot) },
		replicas: c.Replicas,
		await:    func(old *testredis.Server) *testredis.Server { return c.AwaitMaster(slot, old) },
		rejoin:   func(old *testredis.Server) { old.Restart(); c.AwaitReady() },
		raw:      raw(t, c.Nodes()),
	}
}

// The master is killed while two processes work: what was replicated is kept, what was
// not is told to its holder in time, tokens keep the register right, nothing hangs, and
// everything works again soon.
func TestSentinelFailover(t *testing.T) { failover(t, sentinelTarget(t)) }

// The same for the master of one shard. The other two refuse as well until it has a
// successor (cluster-require-full-coverage, Redis' default).
func TestClusterFailover(t *testing.T) { failover(t, clusterTarget(t)) }

// failover makes two failovers a round. First the replicas follow the master to its end,
// and the times are measured. Then they are cut off before it is killed, so that grants
// and releases are certainly lost with it.
func failover(t *testing.T, d target) {
	t.Parallel()
	var keys []string
	for i := range loadKeys {
		keys = append(keys, fmt.Sprint("load:", i)) // over all slots, on a Cluster
	}
	parties := []*party{newParty(t, d.client()), newParty(t, d.client())}
	probe := newParty(t, d.client())
	f := figures{}
	for range rounds(t) {
		for _, cut := range []bool{false, true} {
			l := startLoad(t, parties, keys, 6, true)
			l.moves(200)
			f.add(cut, strike(t, d, parties, probe, keys, cut))
			wakes(t, d, parties[0], parties[1])
			l.moves(200)
			l.end(false)
			for _, p := range append(parties, probe) {
				eventually(t, stuck, "nothing is kept", func() bool { return len(p.Snapshot()) == 0 })
			}
		}
	}
	f.log(t)
}

// strike kills the master, demands what docs/guarantees.md promises of the holds of that
// moment, and puts the deployment in place again.
func strike(t *testing.T, d target, parties []*party, probe *party, keys []string, cut bool) (took recovery) {
	t.Helper()
	kept, lost := holdThrough(t, d, parties[0], parties[1])
	old := d.master()
	replicas := d.replicas(old)
	if cut {
		old.CutReplicas(t, replicas...)
		for _, h := range lost {
			h.take()
		}
	}
	killed := time.Now()
	old.Kill()
	if cut {
		for _, r := range replicas {
			r.Resume()
		}
		for _, h := range lost {
			h.follow()
		}
	}
	listening := make(chan time.Time, 1)
	go func() {
		defer close(listening)
		if d.listen(parties) {
			listening <- time.Now()
		}
	}()
	granted := make(chan []time.Time, 1)
	// The first is certainly on the master that was killed, and nobody has it.
	go func() { granted <- usable(t, probe, append([]string{d.key("probe")}, keys...)) }()
	now := d.await(old)
	took.elected = time.Since(killed)
	times := <-granted
	if t.Failed() {
		t.FailNow()
	}
	took.first = times[0].Sub(killed)
	took.all = slices.MaxFunc(times, time.Time.Compare).Sub(killed)
	for _, h := range lost {
		if cut {
			h.told()
		}
	}
	kept.survives(now)
	at, ok := <-listening
	if !ok {
		t.Fatal("the subscriptions are not there again")
	}
	took.listening = at.Sub(killed)
	d.rejoin(old)
	return took
}

// recovery is how long it took from the kill until …
type recovery struct {
	elected   time.Duration // a new master was seen, by asking every node
	first     time.Duration // a key of the killed master was granted again
	all       time.Duration // each key had been granted
	listening time.Duration // each Manager's subscription was there
}

// figures are the recoveries with and without replicas cut off.
type figures map[bool][]recovery

func (f figures) add(cut bool, r recovery) { f[cut] = append(f[cut], r) }

func (f figures) log(t *testing.T) {
	t.Helper()
	for _, cut := range []bool{false, true} {
		for _, figure := range []struct {
			name string
			of   func(recovery) time.Duration
		}{
			{"new master seen", func(r recovery) time.Duration { return r.elected }},
			{"first acquisition there", func(r recovery) time.Duration { return r.first }},
			{"all keys usable", func(r recovery) time.Duration { return r.all }},
			{"subscribed again", func(r recovery) time.Duration { return r.listening }},
		} {
			var list []time.Duration
			for _, r := range f[cut] {
				list = append(list, figure.of(r).Round(10*time.Millisecond))
			}
			slices.Sort(list)
			t.Logf("replicas cut off: %-5v  kill → %-23s  least %v, median %v, most %v of %d", cut, figure.name,
				list[0], list[len(list)/2], list[len(list)-1], len(list))
		}
	}
}

// usable acquires each key once, beginning now, and returns when each of them was
// granted, in the order of keys. It may be called by any goroutine.
func usable(t *testing.T, p *party, keys []string) []time.Time {
	times := make([]time.Time, len(keys))
	var wg sync.WaitGroup
	for i, key := range keys {
		lock := p.lock(t, anteroom.LockConfig{Key: key, Fencing: true})
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), stuck)
			defer cancel()
			h, err := lock.Acquire(ctx)
			if err != nil {
				t.Errorf("%s after the failover: %v", key, err)
				return
			}
			times[i] = time.Now()
			_ = h.Release(ctx)
		})
	}
	wg.Wait()
	return times
}

// keptHold is a hold that the failover must not end.
type keptHold struct {
	t *testing.T
	h *anteroom.Hold
	d target
}

// survives demands that the hold lives on, on the new master, and is renewed there.
func (k *keptHold) survives(now *testredis.Server) {
	k.t.Helper()
	deadline := k.h.Deadline()
	eventually(k.t, stuck, "a renewal on the new master", func() bool { return k.h.Deadline().After(deadline) || k.h.Err() != nil })
	if err := k.h.Err(); err != nil {
		k.t.Fatalf("a hold that every replica had confirmed: %v", err)
	}
	if ok, err := k.d.raw[now].HExists(context.Background(), k.h.Key(), k.h.Holder()).Result(); err != nil || !ok {
		k.t.Fatalf("the new master does not have it: %v, %v", ok, err)
	}
	if err := k.h.Release(context.Background()); err != nil {
		k.t.Fatal(err)
	}
}

// lostHold is a hold that no replica can know of, and one who gets its lock after it.
type lostHold struct {
	t        *testing.T
	mu, next *anteroom.Mutex // of two parties
	reg      *register
	lease    time.Duration
	h        *anteroom.Hold
	token    int64
	at       chan time.Time // when its context ended
	until    time.Time      // the deadline that it had when the master was killed
	rival    chan rival
}

// rival is who got the lock from the new master.
type rival struct {
	h   *anteroom.Hold
	at  time.Time
	err error
}

// take acquires the lock, and begins work in the register under it.
func (l *lostHold) take() {
	l.t.Helper()
	h, err := l.mu.Acquire(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	l.h, l.token, l.until, l.at = h, h.Token(), h.Deadline(), make(chan time.Time, 1)
	if _, ok := l.reg.read(l.mu.Key(), l.token); !ok {
		l.t.Fatalf("token %d of a lock that nobody else holds is refused", l.token)
	}
	go func() {
		<-h.Context().Done()
		l.at <- time.Now()
	}()
}

// follow lets the rival try, beginning now.
func (l *lostHold) follow() {
	l.rival = make(chan rival, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), stuck)
		defer cancel()
		h, err := l.next.Acquire(ctx)
		l.rival <- rival{h, time.Now(), err}
	}()
}

// told demands that the holder has been told: W + 2 C after the new master has let the
// rival in at the latest (a question of before may be open for one C), and never after
// its deadline; and that it can write nothing any more, although it tries.
func (l *lostHold) told() {
	l.t.Helper()
	r := <-l.rival
	if r.err != nil {
		l.t.Fatalf("%s on the new master: %v", l.mu.Key(), r.err)
	}
	token := r.h.Token()
	value, ok := l.reg.read(l.mu.Key(), token)
	if !ok || token <= l.token || !l.reg.write(l.mu.Key(), token, value+1) {
		l.t.Errorf("the rival has the token %d, the lost hold %d", token, l.token)
	}
	if l.reg.write(l.mu.Key(), l.token, value+1) {
		l.t.Error("the lost hold has written beside its rival")
	}
	// The machine's: it is busy with the load, with the failover, and with other tests.
	const slack = 2 * time.Second
	bound := r.at.Add(watch + 2*commandTimeout)
	if l.until.Before(bound) {
		bound = l.until
	}
	timer := time.NewTimer(stuck)
	defer timer.Stop()
	select {
	case at := <-l.at:
		l.t.Logf("lease %v: told %v after the rival was let in, bound %v; %v", l.lease,
			at.Sub(r.at).Round(time.Millisecond), bound.Sub(r.at).Round(time.Millisecond), context.Cause(l.h.Context()))
		if at.After(bound.Add(slack)) {
			l.t.Errorf("told %v after the bound", at.Sub(bound))
		}
		if !errors.Is(context.Cause(l.h.Context()), anteroom.ErrLost) {
			l.t.Errorf("its context ended because of %v", context.Cause(l.h.Context()))
		}
	case <-timer.C:
		l.t.Fatal("a hold that the failover lost is never told")
	}
	if err := l.h.Release(context.Background()); !errors.Is(err, anteroom.ErrLost) {
		l.t.Errorf("its release: %v", err)
	}
	if err := r.h.Release(context.Background()); err != nil {
		l.t.Errorf("the rival's release: %v", err)
	}
}

// holdThrough acquires a lock that all replicas know of, and prepares two that none will:
// one whose lease outlasts the failover, so that Redis' answer ends it, and one whose
// deadline comes first.
func holdThrough(t *testing.T, d target, p, next *party) (*keptHold, []*lostHold) {
	t.Helper()
	all := len(d.replicas(d.master()))
	h, err := p.lock(t, anteroom.LockConfig{Key: d.key("kept"), Replicas: all, Fencing: true}).Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var lost []*lostHold
	for _, lease := range []time.Duration{30 * time.Second, time.Second} {
		cfg := anteroom.LockConfig{Key: d.key("lost:" + lease.String()), LeaseTime: lease, Fencing: true}
		lost = append(lost, &lostHold{t: t, mu: p.lock(t, cfg), next: next.lock(t, cfg), reg: newRegister(), lease: lease})
	}
	return &keptHold{t: t, h: h, d: d}, lost
}

// listen waits until the parties' subscriptions are there. It may be called by any
// goroutine.
func (d target) listen(parties []*party) bool {
	for deadline := time.Now().Add(stuck); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		there := 0
		for _, p := range parties {
			if d.subscribers("anteroom:client:"+p.ClientID()) == 1 {
				there++
			}
		}
		if there == len(parties) {
			return true
		}
	}
	return false
}

// wakes demands that a waiter of one party is woken by the release of the other: the
// quickest of some comes long before it would have polled.
func wakes(t *testing.T, d target, a, b *party) {
	t.Helper()
	ctx := context.Background()
	key := d.key("woken")
	mine, theirs := a.lock(t, anteroom.LockConfig{Key: key}), b.lock(t, anteroom.LockConfig{Key: key})
	quickest := time.Hour
	for range 5 {
		h, err := mine.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan time.Time, 1)
		go func() {
			defer close(got)
			if h, err := theirs.Acquire(ctx); err == nil {
				got <- time.Now()
				_ = h.Release(ctx)
			}
		}()
		eventually(t, stuck, "the waiter listens", func() bool { return d.subscribers("lock:release:"+key) == 1 })
		begin := time.Now()
		if err := h.Release(ctx); err != nil {
			t.Fatal(err)
		}
		at, ok := <-got
		if !ok {
			t.Fatal("the waiter did not get the lock")
		}
		quickest = min(quickest, at.Sub(begin))
		<-got
	}
	if quickest > 400*time.Millisecond {
		t.Errorf("the quickest waiter came %v after the release", quickest)
	}
}
