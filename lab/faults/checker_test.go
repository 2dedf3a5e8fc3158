package faults_test

import (
	"context"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
)

// These tests check that the checks of the matrix can fail.

// seen runs a check of a cell and returns what it reports to the cell's test.
func seen(t *testing.T, f func(c *cell)) bool {
	t.Helper()
	probe := &reported{}
	f(&cell{t: probe, fault: faults[0], op: operations[0]})
	return probe.failed
}

// reported replaces the test of a cell.
type reported struct{ failed bool }

func (*reported) Name() string            { return "probe" }
func (r *reported) Errorf(string, ...any) { r.failed = true }
func (*reported) Logf(string, ...any)     {}
func (r *reported) Failed() bool          { return r.failed }

func TestMatrix_I1_AnotherAnswerIsFound(t *testing.T) {
	good := []step{{name: "Acquire", got: "nil"}}
	for name, c := range map[string]struct {
		want  expectation
		found bool
	}{
		"as expected":    {expectation{left: "nothing", steps: []want{{"Acquire", "nil", "C"}}}, false},
		"one of two":     {expectation{left: "nothing", steps: []want{{"Acquire", "ErrLost or nil", "C"}}}, false},
		"another answer": {expectation{left: "nothing", steps: []want{{"Acquire", "ErrLost", "C"}}}, true},
		"another step":   {expectation{left: "nothing", steps: []want{{"Release", "nil", "C"}}}, true},
		"one too few":    {expectation{left: "nothing", steps: []want{{"Acquire", "nil", "C"}, {"Release", "nil", "C"}}}, true},
		"one too many":   {expectation{left: "nothing", steps: nil}, true},
		"something left": {expectation{left: "the victim's lock", steps: []want{{"Acquire", "nil", "C"}}}, true},
	} {
		if got := seen(t, func(probe *cell) {
			probe.want = c.want
			(&rig{cell: probe, steps: good, atOnce: "nothing"}).judge()
		}); got != c.found {
			t.Errorf("%s: reported %v", name, got)
		}
	}
	late := []step{{name: "Acquire", got: "nil", since: 1, at: moment(1).add(timeout + busy + time.Millisecond)}}
	if !seen(t, func(probe *cell) {
		probe.want = expectation{left: "nothing", steps: []want{{"Acquire", "nil", "C"}}}
		(&rig{cell: probe, steps: late, atOnce: "nothing"}).judge()
	}) {
		t.Error("an answer beyond its bound is not reported")
	}
}

func TestMatrix_I2_TwoAtOnceAreFound(t *testing.T) {
	one, other := newAgent("one", 0), newAgent("other", 0)
	one.spans[1] = &span{who: "one/1", in: 100, out: 200}
	other.spans[1] = &span{who: "other/1", in: 200, out: 300}
	other.spans[2] = &span{who: "other/2", in: 120, out: 180, aside: true}
	if d, who := overlap(one, other); d != 0 {
		t.Errorf("%v: %s", d, who)
	}
	one.spans[2], other.spans[4] = &span{who: "one/2", in: 400, out: 500, reads: true}, &span{who: "other/4", in: 450, out: 600, reads: true}
	if d, who := overlap(one, other); d != 0 {
		t.Errorf("%v: %s", d, who)
	}
	one.spans[3] = &span{who: "one/3", in: 599, out: 700}
	if d, who := overlap(one, other); d != 1 || !strings.Contains(who, "other/4") {
		t.Errorf("%v: %s", d, who)
	}
	other.spans[3] = &span{who: "other/3", in: 170} // to the end
	if d, who := overlap(one, other); d < 30 || !strings.Contains(who, "other/3") {
		t.Errorf("%v: %s", d, who)
	}
}

func TestMatrix_I4_LeftoversAreFound(t *testing.T) {
	s := testredis.Start(t)
	for key, found := range map[string]bool{fencePrefix + "{k}": false, "other": true} {
		r := &rig{check: s.Client(t), setup: setup{Fencing: true}}
		check(r.check.HSet(bg, key, "counter", "1").Err())
		if got := seen(t, func(probe *cell) { r.cell = probe; r.tidy() }); got != found {
			t.Errorf("%s: reported %v", key, got)
		}
		r.setup.Fencing = false
		if !seen(t, func(probe *cell) { r.cell = probe; r.tidy() }) {
			t.Errorf("%s without Fencing is not reported", key)
		}
		check(r.check.Del(bg, key).Err())
	}
}

func TestMatrix_I5_LeaksAreFound(t *testing.T) {
	stop := make(chan struct{})
	started := make(chan struct{})
	pprof.Do(bg, pprof.Labels(label, t.Name()), func(context.Context) {
		go func() {
			go func() { close(started); <-stop }() // a grandchild inherits the label too
		}()
	})
	<-started
	if labelled(t.Name()) == "" || labelled("another cell") != "" {
		t.Errorf("found %q", labelled(t.Name()))
	}
	close(stop)

	s := testredis.Start(t)
	r := &rig{check: s.Client(t, asChecker)}
	guest := s.Client(t)
	check(guest.Ping(bg).Err())
	if !seen(t, func(probe *cell) { r.cell = probe; r.noConnections(0) }) {
		t.Error("a connection that stays is not reported")
	}
	listener := guest.Subscribe(bg, "c")
	if _, err := listener.Receive(bg); err != nil {
		t.Fatal(err)
	}
	if !seen(t, func(probe *cell) { r.cell = probe; r.noSubscriptions(0) }) {
		t.Error("a subscription that stays is not reported")
	}
	check(listener.Close())
}
