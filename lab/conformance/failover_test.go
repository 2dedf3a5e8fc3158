package conformance_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// rounds is the number of failovers of a test: ANTEROOM_ROUNDS, or one.
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

// loadKeys is the number of keys of the load.
const loadKeys = 20

// readTimeout is what docs/operations.md §4 advises. It matters if a node hangs: go-redis asks random nodes for a
// Cluster's layout, and waits for one that hangs.
const readTimeout = 2 * commandTimeout

// target is a deployment whose master can be killed.
type target struct {
	client   func() redis.UniversalClient
	key      func(name string) string                            // lies on the master that will be killed
	master   func() *testredis.Server                            // that one, now
	replicas func(master *testredis.Server) []*testredis.Server  // of it
	await    func(old *testredis.Server) (new *testredis.Server) // its successor
	rejoin   func(old *testredis.Server)                         // as a replica, all being in place after
	replace  func(old *testredis.Server)                         // gives it a successor while it is well
	bus      bool                                                // messages reach the subscribers of every node
	raw      map[*testredis.Server]*redis.Client                 // a client of each node
}

// subscribers counts the subscribers of channel where messages arrive now.
func (d target) subscribers(now *testredis.Server, channel string) (n int64) {
	for node, c := range d.raw {
		if node == now || d.bus && node.Running() {
			n += c.PubSubNumSub(context.Background(), channel).Val()[channel]
		}
	}
	return n
}

// nothingLeft waits until no keys but fencing records remain. A lock whose release the new master has never seen
// remains until its lease ends.
func (d target) nothingLeft(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	left := ""
	eventually(t, loadLease+stuck, "no key is left", func() bool {
		left = ""
		for node, c := range d.raw {
			if !node.Running() {
				continue
			}
			for it := c.Scan(ctx, 0, "*", 1000).Iterator(); it.Next(ctx); {
				if !strings.HasPrefix(it.Val(), "anteroom:fence:") {
					left = it.Val()
				}
			}
		}
		return left == ""
	})
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
		client: func() redis.UniversalClient {
			return s.Client(t, func(o *redis.FailoverOptions) { o.ReadTimeout = readTimeout })
		},
		key:      func(name string) string { return name },
		master:   s.Master,
		replicas: func(*testredis.Server) []*testredis.Server { return s.Replicas() },
		await:    s.AwaitMaster,
		rejoin:   s.Rejoin,
		replace:  func(*testredis.Server) { s.Failover() },
		raw:      raw(t, s.Nodes()),
	}
}

func clusterTarget(t *testing.T) target {
	c := testredis.StartCluster(t, 3, 3)
	const tag = "{tag}"
	slot := c.Slot(tag)
	return target{
		client: func() redis.UniversalClient {
			return c.Client(t, func(o *redis.ClusterOptions) { o.ReadTimeout = readTimeout })
		},
		key:      func(name string) string { return name + tag },
		master:   func() *testredis.Server { return c.Master(slot) },
		replicas: c.Replicas,
		await:    func(old *testredis.Server) *testredis.Server { return c.AwaitMaster(slot, old) },
		rejoin:   func(old *testredis.Server) { old.Restart(); c.AwaitReady() },
		replace:  func(old *testredis.Server) { c.Takeover(slot, c.Replicas(old)[0]) },
		bus:      true,
		raw:      raw(t, c.Nodes()),
	}
}

// mode is how a master stops.
type mode int

const (
	killed   mode = iota // SIGKILL; its replicas have followed it to its end
	cutOff               // SIGKILL, after its replicas were cut off: the last writes are certainly lost
	hung                 // SIGSTOP; it continues once it has a successor
	switched             // healthy, and replaced by an operator's command without its consent
	modes
)

func (m mode) String() string { return [...]string{"killed", "cut off", "hung", "switched"}[m] }

// The master stops while two processes work: what was replicated is kept, what was not is reported to its holder in
// time, tokens keep the register right, nothing hangs, nothing remains, and everything works again soon.
func TestSentinelFailover(t *testing.T) { failover(t, sentinelTarget(t)) }

// The same for the master of one shard. The other two also refuse until it has a successor
// (cluster-require-full-coverage, Redis' default).
func TestClusterFailover(t *testing.T) { failover(t, clusterTarget(t)) }

// failover makes a failover of each mode per round.
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
		for m := range modes {
			l := startLoad(t, parties, keys, 6, true)
			l.moves(200)
			s := &strike{t: t, d: d, mode: m, parties: parties, old: d.master()}
			s.prepare()
			s.stop()
			f[m] = append(f[m], s.recover(probe, keys))
			if m == hung {
				s.old.Resume()
			}
			wakes(t, d, parties[0], parties[1])
			l.moves(200)
			d.rejoin(s.old)
			l.moves(200)
			l.end(false)
			for _, p := range append(parties, probe) {
				eventually(t, stuck, "nothing is kept", func() bool { return len(p.Snapshot()) == 0 })
			}
			d.nothingLeft(t)
		}
	}
	f.log(t)
}

// strike is one failover.
type strike struct {
	t       *testing.T
	d       target
	mode    mode
	parties []*party
	old     *testredis.Server // the master that stops
	at      time.Time         // when it did
	kept    *keptHold
	lost    []*lostHold
}

// prepare acquires a lock that all replicas know of. If they are cut off, it acquires two that none can know of: one
// whose lease outlasts the failover, so that an answer of Redis ends it, and one whose deadline comes first.
func (s *strike) prepare() {
	s.t.Helper()
	replicas := s.d.replicas(s.old)
	// Its lease outlasts a repeated election, and it is renewed often.
	cfg := anteroom.LockConfig{
		Key: s.d.key("kept"), LeaseTime: 30 * time.Second, RenewalTime: 2 * time.Second,
		Replicas: len(replicas), Fencing: true,
	}
	h, err := s.parties[0].lock(s.t, cfg).Acquire(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	s.kept = &keptHold{t: s.t, h: h, d: s.d}
	if s.mode != cutOff {
		return
	}
	for _, lease := range []time.Duration{30 * time.Second, time.Second} {
		cfg := anteroom.LockConfig{Key: s.d.key("lost:" + lease.String()), Fencing: true}
		next := s.parties[1].lock(s.t, cfg)
		cfg.LeaseTime = lease
		s.lost = append(s.lost, &lostHold{t: s.t, mu: s.parties[0].lock(s.t, cfg), next: next, reg: newRegister(), lease: lease})
	}
	s.old.CutReplicas(s.t, replicas...)
	s.t.Cleanup(func() { // if the test ends before the replicas continue
		for _, r := range replicas {
			if r.Pid() != 0 {
				r.Resume()
			}
		}
	})
	for _, l := range s.lost {
		l.take()
	}
}

// stop stops the master.
func (s *strike) stop() {
	s.t.Helper()
	replicas := s.d.replicas(s.old)
	s.at = time.Now()
	switch s.mode {
	case hung:
		s.old.Pause()
		return
	case switched:
		s.d.replace(s.old)
		return
	}
	s.old.Kill()
	for _, l := range s.lost {
		l.follow()
	}
	if s.mode == cutOff {
		for _, r := range replicas {
			r.Resume()
		}
	}
}

// recover measures the recovery, and checks what docs/guarantees.md promises about the holds of that moment.
func (s *strike) recover(probe *party, keys []string) (took recovery) {
	s.t.Helper()
	granted := make(chan []time.Time, 1)
	// The first is certainly on the stopped master, and is free.
	try := func() { granted <- usable(s.t, probe, append([]string{s.d.key("probe")}, keys...)) }
	if s.mode != switched { // which serves until it is replaced
		go try()
	}
	now := s.d.await(s.old)
	took.elected = time.Since(s.at)
	if s.mode == switched {
		go try()
	}
	listening := make(chan time.Time, 1)
	go func() {
		defer close(listening)
		if s.d.listen(now, s.parties) {
			listening <- time.Now()
		}
	}()
	times := <-granted
	if s.t.Failed() {
		s.t.FailNow()
	}
	took.first = times[0].Sub(s.at)
	took.all = slices.MaxFunc(times, time.Time.Compare).Sub(s.at)
	for _, l := range s.lost {
		l.told()
	}
	s.kept.survives(now)
	at, ok := <-listening
	if !ok {
		s.t.Fatal("the subscriptions are not there again")
	}
	took.listening = at.Sub(s.at)
	return took
}
