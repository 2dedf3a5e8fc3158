package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/metrics/debug"
	anteroom "github.com/anteroom/anteroom/sync"
)

// process is a process that takes part: a worker here, or one in a child.
type process interface {
	// start starts its work. It is called once.
	start() error
	// obey prepares a fault and returns when the lock is held; ctx bounds that.
	obey(ctx context.Context, o Order) error
	gather(ctx context.Context) ([]*dto.MetricFamily, error)
	// stop ends it, by force when ctx ends, and returns its last metrics. It is called once, whether or not start was.
	stop(ctx context.Context) ([]*dto.MetricFamily, error)
}

// demo is one run.
type demo struct {
	opts      options
	prefix    string // of every key of this run
	console   *console
	ledger    *ledger
	server    server
	page      *debug.Page   // shows the processes that are Managers of this program
	processes []process     // fixed before the run begins
	foreign   *redis.Client // a client that knows nothing of the library
	operator  *worker       // never started

	latest [][]*dto.MetricFamily // the last metrics of each process; live and then dismiss write them
}

// leaveTime bounds how long a process waits, at its end, for its goroutines and for answers of Redis. A release that
// is not confirmed by then is named; its lock ends with its lease. stopTime is when a process that has not ended is
// killed: it leaves a busy machine the time to end by itself.
const (
	leaveTime = 3 * time.Second
	stopTime  = 2 * leaveTime
)

// startTime bounds how long a process may take to start. It is generous, because small machines are slow.
const startTime = 30 * time.Second

// newDemo returns a run without its server and its processes.
func newDemo(o options, out io.Writer) *demo {
	// Two runs may share a server.
	prefix := "anteroom-demo:" + strings.ToLower(rand.Text()[:8]) + ":"
	d := &demo{opts: o, prefix: prefix, console: newConsole(out, o.verbose)}
	d.ledger = newLedger(d.prefix, demoLocks(), d.console.broken)
	d.ledger.note = func(format string, args ...any) { d.console.say(markNote, format, args...) }
	d.page, _ = debug.New(debug.Config{}) // the zero Config is valid
	return d
}

// introduce prints what the processes do and where to see them.
func (d *demo) introduce(addr net.Addr) {
	goroutines := 0
	for _, k := range demoLocks() {
		goroutines += d.opts.processes * k.goroutines
	}
	server, length := "an embedded Redis, in this program", "for "+d.opts.length.String()
	if d.opts.url != "" {
		server = "the Redis of --redis"
	}
	if d.opts.length == 0 {
		length = "until it is stopped"
	}
	d.console.plain(fmt.Sprintf(`%d processes, %d goroutines and %d locks on %s, %s.
Each goroutine adds 1 to a counter that nothing but Anteroom's locks protects, while faults are
injected. A holder that loses its lock must be notified in time, and no update may be lost.

FAULT  what is broken now
notice what the library reported, and how long after the fault
next   somebody holds the lock again
`, d.opts.processes, goroutines, len(demoLocks()), server, length))
	d.console.plain(fmt.Sprintf("metrics     http://%s/metrics", addr))
	if d.opts.url == "" {
		d.console.plain(fmt.Sprintf("debug page  http://%s%s", addr, debugPath))
	}
	d.console.plain(fmt.Sprintf("keys        %s*\n", d.prefix))
}

// connect creates the foreign client and the operator's, and tries whether locks work at all, so that a wrong password
// is one clear error and not a run without a result.
func (d *demo) connect(ctx context.Context) error {
	d.foreign = redis.NewClient(d.server.options())
	w, err := newWorker(plan{Prefix: d.prefix}, redis.NewClient(d.server.options()), d.ledger.as(0), func(Report) {}, d.page)
	if err != nil {
		return errors.Join(err, d.foreign.Close())
	}
	d.operator = w
	mu, err := w.m.NewMutex(anteroom.LockConfig{Key: d.prefix + probeName, Fencing: true})
	if err == nil {
		err = w.probe(ctx, mu)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot acquire a lock on this server: %w", err), d.disconnect())
	}
	return nil
}

// probe acquires and releases a lock. A release that is not confirmed in time says that the machine is busy, and
// nothing about the server.
func (w *worker) probe(ctx context.Context, mu *anteroom.Mutex) error {
	hold, err := mu.Acquire(ctx, anteroom.Wait(probeTime))
	if err != nil {
		return err
	}
	if err = w.release(hold); errors.Is(err, anteroom.ErrUnknown) {
		return nil
	}
	return err
}

// probeName is the lock that connect tries, probeTime the limit for that.
const (
	probeName = "probe"
	probeTime = 15 * time.Second
)

// disconnect removes the run's keys and closes what connect opened. The operator's Manager is closed first, because a
// clean-up of its own could write a key again.
func (d *demo) disconnect() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	_, err := d.operator.stop(ctx)
	return errors.Join(err, d.removeKeys(ctx), d.foreign.Close())
}

// removeKeys deletes the keys of this run by their names, including the fencing records, which would stay for ever.
// The embedded server's keys end with it.
func (d *demo) removeKeys(ctx context.Context) error {
	if d.opts.url == "" {
		return nil
	}
	names := []string{probeName}
	for _, k := range demoLocks() {
		names = append(names, k.name)
	}
	for _, name := range names {
		key := d.prefix + name
		// docs/internals/protocol.md: the fencing record of a key without braces.
		if err := d.foreign.Del(ctx, key, "anteroom:fence:{"+key+"}").Err(); err != nil {
			return fmt.Errorf("the keys that begin with %s were not deleted: %w", d.prefix, err)
		}
	}
	return nil
}

// recruit creates the processes. They do not work yet. The last one is the impatient one. On an error, dismiss still
// has to end those that were created.
func (d *demo) recruit() error {
	for n := 1; n <= d.opts.processes; n++ {
		p := plan{Process: n, Prefix: d.prefix, URL: d.opts.url, Impatient: n == d.opts.processes}
		var one process
		var err error
		if d.opts.url == "" {
			one, err = newWorker(p, redis.NewClient(d.server.options()), d.ledger.as(n), d.reported, d.page)
		} else {
			one, err = newRemote(p, d.ledger, d.reported)
		}
		if err != nil {
			return fmt.Errorf("process %d: %w", n, err)
		}
		d.processes, d.latest = append(d.processes, one), append(d.latest, nil)
	}
	return nil
}

// dismiss ends all processes concurrently, within stopTime: one that does not end, or whose releases are not
// confirmed, does not delay the others. The error names each such process.
func (d *demo) dismiss() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	errs := make([]error, len(d.processes))
	var wg sync.WaitGroup
	for n, p := range d.processes {
		wg.Go(func() {
			last, err := p.stop(ctx)
			if last != nil {
				d.latest[n] = last
			}
			if err != nil {
				errs[n] = fmt.Errorf("process %d: %w", n+1, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// play is the run itself: the processes work, faults are injected until the time is over or ctx ends, the last fault
// is carried through, and the processes end.
func (d *demo) play(ctx context.Context) {
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	if d.opts.length > 0 {
		run, cancel = context.WithTimeout(run, d.opts.length)
		defer cancel()
	}
	var started error
	for _, p := range d.processes {
		started = errors.Join(started, p.start())
	}
	watching, unwatch := context.WithCancel(context.Background())
	var live sync.WaitGroup
	live.Go(func() { d.live(watching) })
	if started == nil {
		i := &injector{
			ledger: d.ledger, console: d.console, prefix: d.prefix, between: d.opts.between, server: d.server,
			processes: d.processes, foreign: d.foreign, operator: d.operator.m,
		}
		i.run(run, d.opts.url == "")
	} else {
		d.ledger.problem("not every process could start: " + started.Error())
	}
	if ctx.Err() != nil {
		d.console.say(markNote, "stopped, as asked")
	}
	d.console.say(markNote, "the processes end: they release their locks")
	unwatch()
	live.Wait()
	if err := d.dismiss(); err != nil {
		// For a lease and a time limit after an outage Close waits for acquires whose answer the outage has cut.
		d.console.say(markNote, "some processes stopped waiting after %v: a request that an outage cut could still", leaveTime)
		d.console.say(markNote, "reach Redis; its lease would end it (--verbose has the errors)")
		d.console.detail(markNote, "%v", err)
	}
}

// conclude prints what was kept or missed, and right below it the last line, which counts both causes of a failed run:
// violations, and expectations that were not fulfilled (failed).
func (d *demo) conclude() error {
	all := figuresOf(d.latest)
	s, violations := d.ledger.close()
	failures := d.ledger.missing()
	if violations == 0 {
		d.console.say(markOK, "no two concurrent holders where no lock was destroyed; no update was lost")
		d.console.say(markOK, "%d overlaps, only where a fault destroyed a lock: its holder did not know yet when the next one entered", s.overlaps)
		d.console.say(markOK, "%s was read %d times, by up to %d at once, and each of its writers was alone", keyShared, s.reads, s.readers)
		d.console.say(markOK, "%s lingered: %.0f times its process took it again without a command; %d times another got it", keyLingers, all.lingered, s.moved)
		d.console.say(markOK, "fencing tokens stopped %d late accesses of holders that had lost their lock", s.refused)
	}
	if s.faults == 0 {
		d.console.say(markNote, "no fault was injected, so this run shows little")
	} else if len(failures) == 0 {
		d.console.say(markOK, "%d faults: every loss was reported in time, every lock was usable again", s.faults)
	}
	for _, f := range failures {
		d.console.say(markFailed, "%s", f)
	}
	r := result{
		Processes: d.opts.processes, Acquisitions: int(all.acquired), HandOffs: int(all.handedOver),
		Lingered: int(all.lingered), Moved: s.moved, Faults: s.faults, Lost: s.lost, Overlaps: s.overlaps, Violations: violations, Failed: len(failures),
	}
	text := r.String()
	if d.opts.json {
		line, _ := json.Marshal(r) // it has numbers only
		text = string(line)
	}
	d.console.plain(text)
	if r.Violations > 0 || r.Failed > 0 {
		return errFailed
	}
	return nil
}

// result is what the last line says.
type result struct {
	Processes    int `json:"processes"`
	Acquisitions int `json:"acquisitions"`
	HandOffs     int `json:"handoffs"` // acquisitions from within the process, without a command to Redis
	Lingered     int `json:"lingered"` // those of the lock that lingers
	Moved        int `json:"moved"`    // how often that lock came to another process
	Faults       int `json:"faults"`
	Lost         int `json:"lost"`
	Overlaps     int `json:"overlaps"`
	Violations   int `json:"violations"`
	Failed       int `json:"failed"`
}

func (r result) String() string {
	verdict := "no lock was held twice"
	switch {
	case r.Violations > 0 || r.Failed > 0:
		verdict = fmt.Sprintf("FAILED, with %d violations and %d promises missed", r.Violations, r.Failed)
	case r.Overlaps > 0:
		verdict = fmt.Sprintf("no lock was held twice, except where a fault had deleted it (%d overlaps)", r.Overlaps)
	}
	return fmt.Sprintf("%d acquisitions by %d processes, %d of them without a command to Redis, %d faults, %d losses reported: %s",
		r.Acquisitions, r.Processes, r.HandOffs, r.Faults, r.Lost, verdict)
}
