package faults_test

import (
	"context"
	"fmt"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
)

// cell is one fault at one operation.
type cell struct {
	t     reporter
	test  *testing.T // for what needs more of it
	fault *fault
	op    *operation
	want  expectation
	slow  float64 // all times are stretched by that; 0: as by 1
}

// stretched returns what d is in this attempt: the times of the document are those of an idle machine.
func (c *cell) stretched(d time.Duration) time.Duration { return stretch(d, c.slow) }

func stretch(d time.Duration, slow float64) time.Duration {
	return time.Duration(float64(d) * max(slow, 1))
}

// lasts is D.
func (c *cell) lasts() time.Duration { return c.stretched(c.fault.lasts) }

// timeout is C.
func (c *cell) timeout() time.Duration { return c.stretched(c.fault.timeout) }

// bound is the time of b.
func (c *cell) bound(b bound) time.Duration { return c.stretched(b.of(c.fault)) }

// reporter is the part of its test that a cell uses.
type reporter interface {
	Name() string
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
	Failed() bool
}

// parallel is the number of concurrent cells, but for those of a fault that is alone. They mostly wait.
const parallel = 6

// TestMatrix runs every fault at every operation and compares the observations with docs/reference/fault-matrix.md.
func TestMatrix(t *testing.T) {
	if !testredis.Available() {
		testredis.Start(t) // skips, counts that, and fails in CI
	}
	expected := expectations(t)
	defer measured()()
	slots := make(chan struct{}, parallel)
	var all sync.WaitGroup
	for _, f := range faults {
		alone := &sync.Mutex{}
		all.Go(func() {
			t.Run(f.name, func(t *testing.T) {
				var row sync.WaitGroup
				defer row.Wait()
				for _, op := range operations {
					row.Go(func() {
						t.Run(op.name, func(t *testing.T) {
							if f.alone { // beside the others: it would be behind all of them again and again
								alone.Lock()
								defer alone.Unlock()
							} else {
								slots <- struct{}{}
								defer func() { <-slots }()
							}
							c := &cell{t: t, test: t, fault: f, op: op, want: expected[op.name][f.name]}
							c.run()
						})
					})
				}
			})
		})
	}
	all.Wait()
}

// fencing is on in half of the cells, in every row and in every column.
func (c *cell) fencing() bool {
	n := 0
	for i, f := range faults {
		if f == c.fault {
			n += i
		}
	}
	for i, op := range operations {
		if op == c.op {
			n += i
		}
	}
	return n%2 == 0
}

// attempts is how often a cell is played because the machine was too slow for it.
const attempts = 5

// run plays the cell. The first attempt takes the times of the document. What is wrong there counts only if the machine was as
// fast as they need: otherwise the cell is played again, with all of them stretched by how slow it was.
func (c *cell) run() {
	for range attempts - 1 {
		attempt := &recorded{name: c.test.Name()}
		c.t = attempt
		repeat, slow := c.attempt(), pace.Factor()
		if repeat == "" && (!attempt.Failed() || slow < 1.2*max(c.slow, 1)) {
			attempt.report(c.test)
			return
		}
		c.test.Logf("again, with all times %.1f times as long: %s %s", slow, repeat, attempt.text())
		c.slow = slow
	}
	c.t = c.test
	if repeat := c.attempt(); repeat != "" {
		c.t.Errorf("the machine is too busy for this cell: %s", repeat)
	}
}

// measured measures again and again how slow the machine is, until the function that it returns is called.
func measured() (end func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				pace.Factor()
			case <-stop:
				return
			}
		}
	}()
	return func() { close(stop); <-stopped }
}

// recorded keeps what an attempt reports.
type recorded struct {
	name string

	mu         sync.Mutex
	logs, errs []string
}

func (r *recorded) Name() string { return r.name }

func (r *recorded) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, fmt.Sprintf(format, args...))
}

func (r *recorded) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}

func (r *recorded) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.errs) > 0
}

func (r *recorded) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(append(r.errs, r.logs...), "\n")
}

func (r *recorded) report(t *testing.T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.errs {
		t.Error(s)
	}
	for _, s := range r.logs {
		t.Log(s)
	}
}

// attempt runs the cell on a server of its own, in a goroutine whose label all its goroutines inherit, and searches for
// leaked ones.
func (c *cell) attempt() (repeat string) {
	t := c.t
	server := testredis.Start(tb{c.test}, c.fault.args...)
	checker := server.Client(c.test, asChecker)
	check(checker.Ping(bg).Err())
	r := &rig{cell: c, server: server, check: checker}
	done := make(chan struct{})
	go pprof.Do(bg, pprof.Labels(label, t.Name()), func(labels context.Context) {
		r.labels = labels
		defer close(done)
		defer func() {
			switch p := recover().(type) {
			case nil:
			case again:
				repeat = p.why
				r.end()
			case failure:
				t.Errorf("%v", p.err)
				r.end()
			default:
				t.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		r.play()
	})
	<-done
	if repeat != "" {
		return repeat
	}
	defer func() { t.Logf("observed: %s", r.observed()) }()
	for end := time.Now().Add(pace.Hang); !t.Failed(); time.Sleep(10 * time.Millisecond) {
		stacks := labelled(t.Name())
		if stacks == "" {
			break
		}
		if time.Now().After(end) {
			t.Errorf("I5: goroutines are left:\n%s", stacks)
			break
		}
	}
	return ""
}

// end ends the fault and the parties of a cell that was not played to its end, as far as that is possible.
func (r *rig) end() {
	defer func() { _ = recover() }()
	r.over.Wait()
	r.heal()
	for _, a := range []*agent{r.victim, r.rival} {
		if a != nil && a.send != nil {
			a.ask(doClose)
			a.ask(doQuit)
		}
	}
	if r.own != nil {
		_ = r.own.end()
	}
}

// unlabelled runs f in this goroutine without the cell's label, for goroutines that are not the cell's.
func (r *rig) unlabelled(f func()) {
	pprof.SetGoroutineLabels(bg)
	defer pprof.SetGoroutineLabels(r.labels)
	f()
}

// play is the cell from the set-up to the end.
func (r *rig) play() {
	r.start()
	r.op.run(r)
	if r.atOnce == "" {
		r.atOnce = r.left()
	}
	if r.late > r.stretched(lease)/5 {
		panic(again{"the fault lasted " + r.late.String() + " too long"})
	}
	if n := r.net.Waiting(); n > 0 {
		fail("the fault did not happen: %d requests were not met", n)
	}
	r.judge()
	r.shutOut()
	r.worksAgain()
	time.Sleep(r.stretched(lease)) // anything late arrives within a lease
	r.nothingLives()
	if r.later = r.tidy(); r.later != r.want.later {
		r.t.Errorf("I1: after a lease %s is left, want %s", r.later, r.want.later)
	}
	r.exclusive()
	r.close()
}

// shutOut makes the parties that do not hold the lock try to acquire it.
func (r *rig) shutOut() {
	for _, pair := range [][2]*agent{{r.victim, r.rival}, {r.rival, r.victim}} {
		if !pair[0].in() {
			continue
		}
		if n := pair[1].ask(doTryHere); n.Got == "nil" && pair[0].in() {
			r.t.Errorf("I2: %s was let in beside %s", pair[1].who, pair[0].who)
		}
	}
}

// worksAgain releases what is held, and makes both parties lock once more.
func (r *rig) worksAgain() {
	for _, a := range []*agent{r.victim, r.rival} {
		for _, h := range a.open() {
			h.wait()
			a.release(h).wait() // a step has reported the error already, or it is nil
		}
	}
	start := now()
	for _, a := range []*agent{r.victim, r.rival} {
		if n := a.release(a.hold()).wait(); n.Got != "nil" {
			r.t.Errorf("I3: %s releases after the fault: %s", a.who, n.Got)
		}
	}
	if took := now().sub(start); took > 2*r.bound("L + B + C")+r.stretched(busy) {
		r.t.Errorf("I3: after the fault both parties needed %v to lock", took)
	}
}

// judge compares the steps with what is expected (I1).
func (r *rig) judge() {
	for i, s := range r.steps {
		if i >= len(r.want.steps) {
			r.t.Errorf("I1: not expected: %s: %s", s.name, s.got)
			continue
		}
		w := r.want.steps[i]
		if s.name != w.name || !w.allows(s.got) {
			r.t.Errorf("I1: %s: %s, want %s: %s", s.name, s.got, w.name, w.got)
		}
		if w.within == "" {
			continue
		}
		if took := s.at.sub(s.since); took > r.bound(w.within)+r.stretched(busy) {
			r.t.Errorf("I1: %s after %v, want within %s (%v)", s.name, took, w.within, r.bound(w.within))
		}
	}
	if len(r.steps) < len(r.want.steps) {
		r.t.Errorf("I1: only %d of %d steps were observed", len(r.steps), len(r.want.steps))
	}
	if r.atOnce != r.want.left {
		r.t.Errorf("I1: %s is left, want %s", r.atOnce, r.want.left)
	}
}

// exclusive checks that no two callers held the lock at once (I2).
func (r *rig) exclusive() {
	allowed := time.Duration(0)
	if r.fault.removes {
		allowed = r.bound("W + C") + r.stretched(busy)
	}
	if d, who := overlap(r.victim, r.rival); d > allowed {
		r.t.Errorf("I2: %s were in at once for %v", who, d)
	}
}

// observed formats everything in one line, with the times.
func (r *rig) observed() string {
	s := ""
	for _, x := range r.steps {
		s += fmt.Sprintf("%s: %s after %v; ", x.name, x.got, x.at.sub(x.since).Round(time.Millisecond))
	}
	return s + "left " + r.atOnce + ", later " + r.later
}
