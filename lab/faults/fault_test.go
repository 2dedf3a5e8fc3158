package faults_test

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/faultnet"
)

// fault is one row of the matrix.
type fault struct {
	name    string
	about   string        // what is done, for the table
	args    []string      // of redis-server
	lasts   time.Duration // D; 0: it is momentary
	timeout time.Duration // C
	prepare func(*rig)    // before the parties exist
	strike  func(*rig)
	heal    func(*rig)
	process bool // the victim has a process of its own
	holder  bool // the victim is the holder, even if others wait
	removes bool // Redis forgets the lock: §3 of the guarantees, "Removal"
	once    bool // strikes a single request, so it must strike each call again
	alone   bool // one at a time: it takes a processor
	idle    int  // connections of a party beyond those in use: a command finds one to be sent on
}

const (
	// long is longer than a lease.
	long = lease + 500*time.Millisecond
	// short leaves time for further renewals.
	short = 600 * time.Millisecond
)

var faults = []*fault{
	{
		name: "reply lost", once: true, strike: onRequest(faultnet.Lost),
		about: "the server executes the command, and the connection ends before the reply",
	},
	{
		name: "reply late", once: true, strike: func(r *rig) { onRequest(faultnet.Late(2 * r.timeout()))(r) },
		about: "the reply arrives 2C after the command was sent",
	},
	{
		name: "connection reset", once: true, strike: func(r *rig) { onRequest(faultnet.Shot)(r); r.net.Reset(faultnet.PubSub) },
		about: "RST instead of the reply, and of the subscription at the same time",
	},
	{
		name: "half-open connection", strike: func(r *rig) { r.net.HalfOpen(faultnet.All) },
		about: "all connections of the client swallow everything for good, the subscription too; new ones work",
	},
	{
		name: "200 ms latency with jitter", lasts: lease, timeout: time.Second,
		strike: func(r *rig) { r.net.Latency(100*time.Millisecond, 50*time.Millisecond, 1) }, heal: healNetwork,
		about: "100 ± 50 ms each way",
	},
	{
		name: "Redis SIGSTOP", lasts: long, idle: 3, strike: func(r *rig) { r.server.Pause() }, heal: func(r *rig) { r.server.Resume() },
		about: "the server is stopped for longer than a lease",
	},
	{
		name: "Redis SIGKILL, memory empty", lasts: short, removes: true, strike: func(r *rig) { r.server.Kill() }, heal: restart,
		about: "the server is killed and restarts without data after D",
	},
	{
		name: "Redis SIGKILL, AOF", lasts: short, args: []string{"--appendonly", "yes", "--appendfsync", "always"},
		strike: func(r *rig) { r.server.Kill() }, heal: restart,
		about: "the server is killed and restarts after D with `appendfsync always`",
	},
	{name: "FLUSHALL", removes: true, idle: 3, strike: admin("flushall"), about: "at once"},
	{name: "key deleted", removes: true, idle: 3, strike: admin("del " + lockKey), about: "DEL by a stranger"},
	{
		name: "key overwritten", removes: true, lasts: lease, strike: admin("mset " + lockKey + " data " + sideKey + " data"), heal: admin("del " + lockKey + " " + sideKey),
		about: "SET by a stranger makes the key a string; DEL after D",
	},
	{name: "script cache flushed", strike: admin("script flush"), about: "SCRIPT FLUSH"},
	{name: "pub/sub connection killed", strike: admin("client kill type pubsub"), about: "CLIENT KILL TYPE pubsub, of all clients"},
	{
		name: "CLIENT PAUSE", lasts: short, idle: 3, strike: func(r *rig) { admin(fmt.Sprintf("client pause %d all", r.lasts().Milliseconds()))(r) },
		about: "the server answers nobody for D",
	},
	{
		name: "out of memory", lasts: long, strike: admin("config set maxmemory 1"), heal: admin("config set maxmemory 0"),
		about: "`maxmemory 1`, `noeviction`", args: []string{"--maxmemory-policy", "noeviction"},
	},
	{
		name: "READONLY", lasts: short, strike: admin("replicaof 127.0.0.1 1"), heal: admin("replicaof no one"),
		about: "REPLICAOF a dead port: the server refuses writes and keeps its data",
	},
	{
		name: "ACL change", lasts: long, prepare: withACL, strike: admin("acl setuser victim resetkeys"), heal: admin("acl setuser victim ~*"),
		about: "ACL SETUSER takes the keys away from the client's user, and gives them back after D",
	},
	{
		name: "holder SIGSTOP", lasts: long, process: true, holder: true,
		strike: func(r *rig) { r.own.stop() }, heal: func(r *rig) { r.own.signal(child.SIGCONT) },
		about: "the client's process is stopped for longer than a lease",
	},
	{
		name: "starved CPU", lasts: lease / 2, timeout: time.Second, process: true, alone: true,
		strike: func(r *rig) { r.victim.start(doStarve, 0, r.lasts()); eventuallyBusy(r) },
		about:  "4 spinning goroutines on the client's only processor",
	},
	{
		name: "long GC pause", lasts: long, process: true, holder: true,
		strike: func(r *rig) { r.victim.start(doFreeze, 0, 0); r.own.standsStill() }, heal: func(r *rig) { r.own.thaw() },
		about: "the client's world is stopped for longer than a lease, as a garbage collection does, only longer",
	},
	{
		name: "reply spoiled", once: true, strike: onRequest(faultnet.Spoiled),
		about: "the server executes the command, and in place of the reply come the first bytes of a string of 2^62",
	},
}

func init() {
	for _, f := range faults {
		if f.timeout == 0 {
			f.timeout = timeout
		}
	}
}

// onRequest gives a fate to the reply to the operation's own command, and to nothing else that the client may be
// sending at the same time.
func onRequest(f faultnet.Fate) func(*rig) {
	return func(r *rig) { r.net.OnRequest(r.op.request, max(r.op.times, 1), f) }
}

func healNetwork(r *rig) { r.net.Heal() }

// restart starts the server again. The goroutine that waits for its output lives as long as the server and is not the
// cell's.
func restart(r *rig) { r.unlabelled(r.server.Restart) }

// admin runs one command as an operator.
func admin(command string) func(*rig) {
	var args []any
	for word := range strings.FieldsSeq(command) {
		args = append(args, word)
	}
	return func(r *rig) { check(r.check.Do(bg, args...).Err()) }
}

// withACL makes the victim connect as a user of its own.
func withACL(r *rig) {
	admin("acl setuser victim on >" + password + " ~* &* +@all")(r)
	r.setup.User = "victim"
}

// eventuallyBusy waits until the party's orders take longer than they should.
func eventuallyBusy(r *rig) {
	eventually("the victim is starved", func() bool {
		n := r.victim.start(doState, 0, 0)
		return n.wait().At.sub(n.began) > 20*time.Millisecond
	})
}

// standsStill waits until the process writes its heap dump, which stops its world until the last byte has been read.
func (p *process) standsStill() {
	if _, err := p.dump.Read(make([]byte, 1)); err != nil && !os.IsTimeout(err) {
		fail("no heap dump: %v", err)
	}
}
