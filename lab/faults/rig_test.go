package faults_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
)

const (
	// busy is what a busy machine may add to each bound, beside what stretches all times: see cell.run.
	busy = 3 * time.Second
	// patience is how long a caller is willing to wait; no cell needs as much.
	patience = 20 * time.Second
	// lockKey is the lock of every cell; its requests are recognized by this name.
	lockKey = "matrix:lock"
	// sideKey is the key for TryAcquire. It contains lockKey.
	sideKey = lockKey + ":side"
)

// failure ends a cell from anywhere below play.
type failure struct{ err error }

func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

func check(err error) {
	if err != nil {
		fail("%v", err)
	}
}

// again ends a cell whose set-up was too late on a busy machine: it is run again.
type again struct{ why string }

// tb makes testredis usable off the test's goroutine.
type tb struct{ *testing.T }

func (tb) Fatal(args ...any)                 { fail("%s", fmt.Sprint(args...)) }
func (tb) Fatalf(format string, args ...any) { fail(format, args...) }

// step is one call and its result.
type step struct {
	name  string
	got   string
	since moment // from when its bound counts
	at    moment
}

// rig is one running cell.
type rig struct {
	*cell
	server *testredis.Server
	check  *redis.Client     // queries Redis directly
	net    *faultnet.Network // between the victim and Redis
	victim *agent
	rival  *agent
	own    *process // the victim's, if it has one
	setup  setup
	labels context.Context

	struck moment
	healed sync.Once
	over   sync.WaitGroup // the fault has been healed
	late   time.Duration  // how much later than planned; written before over is done

	steps         []step
	atOnce, later string
}

// start makes both parties.
func (r *rig) start() {
	r.net = faultnet.New(nil)
	r.setup = setup{Addr: r.server.Addr(), Key: lockKey, Timeout: r.timeout(), Slow: r.slow, Fencing: r.fencing(), Shared: r.op.shared, Lingers: r.op.lingers, Idle: r.fault.idle, Who: "victim"}
	if r.fault.prepare != nil {
		r.fault.prepare(r)
	}
	if r.op.refused {
		for _, user := range []string{"default", "victim"} {
			admin("acl setuser " + user + " -client|tracking")(r)
		}
	}
	r.victim = newAgent("victim", r.slow)
	if r.fault.process {
		r.own = startProcess(r.victim, r.setup)
	} else {
		local(r.victim, r.setup, func(o *redis.Options) { o.Dialer = r.net.Dial })
	}
	theirs := r.setup
	theirs.User, theirs.Who = "", "rival"
	r.rival = newAgent("rival", r.slow)
	local(r.rival, theirs)
}

// local creates a party in this process.
func local(a *agent, s setup, opts ...func(*redis.Options)) {
	orders := sync.Map{}
	p, err := newParty(s, func(n note) {
		o, _ := orders.Load(n.ID)
		a.deliver(o.(order), n)
	}, opts...)
	check(err)
	a.send = func(o order) {
		orders.Store(o.ID, o)
		go p.obey(o)
	}
}

// strike starts the fault.
func (r *rig) strike() {
	r.struck = now()
	r.fault.strike(r)
}

// healLater heals the fault when it has lasted long enough, counted from now.
func (r *rig) healLater() {
	end := r.struck.add(r.lasts())
	r.over.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				r.t.Errorf("healing: %v", p)
			}
		}()
		sleepUntil(end)
		r.heal()
		if r.fault.lasts > 0 {
			r.late = now().sub(end)
		}
	})
}

// heal heals the fault, once.
func (r *rig) heal() {
	r.healed.Do(func() {
		if r.fault.heal != nil {
			r.fault.heal(r)
		}
	})
}

// observe records the result of a call. Its bound counts from since.
func (r *rig) observe(name string, c *call, since moment) note {
	n := c.wait()
	r.steps = append(r.steps, step{name: name, got: n.Got, since: since, at: n.At})
	return n
}

// eventually waits for done, and fails the cell if it never is.
func eventually(what string, done func() bool) {
	for end := time.Now().Add(pace.Hang); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			fail("never: %s", what)
		}
	}
}

var bg = context.Background()

// lineKey is the line of the lock, docs/internals/protocol.md §3.
const lineKey = "anteroom:line:{" + lockKey + "}"

// standing waits until a waits in line, and hears when it is called.
func (r *rig) standing(a *agent) {
	own := ""
	eventually(a.who+" stands in line", func() bool {
		line, err := r.check.HKeys(bg, lineKey).Result()
		i := slices.IndexFunc(line, func(field string) bool { return strings.HasPrefix(field, "c"+a.who+".") })
		if err == nil && i >= 0 {
			own = "anteroom:client:" + line[i][1:]
		}
		return own != ""
	})
	eventually(a.who+" hears", func() bool {
		n, err := r.check.PubSubNumSub(bg, own).Result()
		return err == nil && n[own] > 0
	})
}

// waiters waits until n callers are parked in a's process.
func waiters(a *agent, n int) {
	eventually("callers are parked", func() bool { _, waiting := a.state(); return waiting == n })
}

// exists reports whether the lock's key is in Redis.
func (r *rig) exists() bool {
	n, err := r.check.Exists(bg, lockKey).Result()
	check(err)
	return n == 1
}
