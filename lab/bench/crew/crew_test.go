package crew

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=1") // of the children, which end often
	child.Run(map[string]child.Role{RoleName: Role, "inside": inside})
	goleak.VerifyTestMain(m)
}

// Two processes of three goroutines: everything that a figure needs is there, and adds up.
func TestCrew_I1_I3_I5_TwoProcesses(t *testing.T) {
	s := testredis.Start(t)
	out, err := Run(t.Context(), Plan{
		Library: library.AnteroomFair, Kind: library.Short, Addr: s.Addr(), Goroutines: []int{3, 3}, Prefix: t.Name(),
		Warm: 100 * time.Millisecond, For: 2050 * time.Millisecond,
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	sum, f := out.Sum(), out.Figures()
	if sum.Violations+sum.Failures+sum.Stuck > 0 || sum.Ops == 0 || sum.Processes != 2 {
		t.Errorf("%+v", f)
	}
	var noted uint64
	for _, turn := range out.Turns {
		noted += turn.Ops
	}
	if !out.Whole || noted < sum.Ops {
		t.Errorf("%d acquisitions are noted, %d were counted", noted, sum.Ops)
	}
	for _, name := range []measure.Figure{LeastShare, Turns, LongestTurns, GoroutineRatio, LongestPause, WorstP99} {
		if v, ok := f[name]; !ok || v <= 0 {
			t.Errorf("%s is %v", name, v)
		}
	}
}

// With one budget each hand-off is a turn, with another almost none is.
func TestCrew_BudgetIsHeeded(t *testing.T) {
	s := testredis.Start(t)
	perTurn := map[int]float64{}
	for _, handoffs := range []int{1, 1000} {
		out, err := Run(t.Context(), Plan{
			Library: library.Budget{Handoffs: handoffs, Time: time.Second}.Name(), Addr: s.Addr(),
			Goroutines: []int{8, 8}, Prefix: t.Name(), Warm: 100 * time.Millisecond, For: 600 * time.Millisecond,
		}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		perTurn[handoffs] = float64(out.Sum().Ops) / out.Figures()[Turns]
	}
	if perTurn[1] >= perTurn[1000] {
		t.Errorf("acquisitions in each turn, by MaxHandoffs: %v", perTurn)
	}
}

// inside simulates a lock that does not exclude: both processes enter and stay until ordered to leave.
func inside(_ context.Context, l *child.Link, raw json.RawMessage) error {
	var o order
	if err := json.Unmarshal(raw, &o); err != nil {
		return err
	}
	guards, unmap, err := measure.MapGuards(filepath.Join(o.Dir, guardName), 1)
	if err != nil {
		return err
	}
	defer unmap()
	alone := guards[0].Enter(uint32(o.First) + 1)
	if err := l.Send(alone); err != nil {
		return err
	}
	var word string
	if err := l.Receive(&word); err != nil {
		return err
	}
	return l.Send(guards[0].Leave(uint32(o.First) + 1))
}

func TestCrew_I2_TwoProcessesInsideAreSeen(t *testing.T) {
	const bound = 30 * time.Second
	dir := t.TempDir()
	var alone []bool
	var processes []*child.Process
	told := func(p *child.Process) {
		var a bool
		if err := p.Receive(&a, bound); err != nil {
			t.Fatal(err)
		}
		alone = append(alone, a)
	}
	for proc := range 2 {
		p, err := child.Start(t.Context(), "inside", order{Dir: dir, Proc: proc, First: proc}, bound)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = p.Stop(bound) }()
		processes = append(processes, p)
		told(p)
	}
	for _, p := range processes {
		if err := p.Send("leave"); err != nil {
			t.Fatal(err)
		}
		told(p)
	}
	if alone[1] && alone[2] && alone[3] {
		t.Error("two processes were inside, and neither has seen it")
	}
}

func TestCrew_I1_WhoCannotBeginIsAnError(t *testing.T) {
	_, err := Run(t.Context(), Plan{Library: "no such", Goroutines: []int{1, 1}, For: time.Second}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "no such") {
		t.Errorf("%v", err)
	}
}

// The log has every acquisition, whichever mapping recorded it.
func TestLog_I3(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var mu sync.Mutex
	var wg sync.WaitGroup
	for proc := range 3 {
		log, err := OpenLog(path)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		wg.Go(func() {
			for range 500 {
				mu.Lock()
				log.Note(proc)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	log, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	turns, all := log.Turns()
	var sum [3]uint64
	last := Turn{Proc: -1}
	for _, turn := range turns {
		if turn.Proc == last.Proc || turn.At < last.At {
			t.Fatalf("%+v follows %+v", turn, last)
		}
		sum[turn.Proc] += turn.Ops
		last = turn
	}
	if !all || sum != [3]uint64{500, 500, 500} {
		t.Errorf("all %v, acquisitions %v", all, sum)
	}
	// A full log says so, instead of being short.
	log.file.n = maxTurns
	log.Note(0)
	log.Note(1)
	if _, all := log.Turns(); all {
		t.Error("a log that has run over says that it is whole")
	}
}

func TestShare_I4(t *testing.T) {
	const ms = int64(time.Millisecond)
	// Process 0 has the lock for the first second, then both take turns of 100 ms, with
	// nine acquisitions of 0 for each of 1.
	o := Outcome{Tallies: make([]measure.Tally, 2), From: 0, To: 6000 * ms, Whole: true}
	o.Turns = append(o.Turns, Turn{At: 0, Ops: 1000, Proc: 0})
	for at := int64(1000); at < 6000; at += 200 {
		o.Turns = append(o.Turns, Turn{At: at * ms, Ops: 10, Proc: 1}, Turn{At: (at + 100) * ms, Ops: 90, Proc: 0})
	}
	share, ok := o.leastShare(2 * time.Second)
	// The worst span is the first: 1000 + 5 × 90 of process 0, 5 × 10 of process 1.
	if want := 50.0 / 1500; !ok || math.Abs(share-want) > 1e-9 {
		t.Errorf("the least share is %v, want %v", share, want)
	}
	if share, _ = o.leastShare(500 * time.Millisecond); share != 0 {
		t.Errorf("the least share of half a second is %v", share)
	}
	if got := o.longestPause(); got != 1000*ms {
		t.Errorf("the longest pause is %v", time.Duration(got))
	}
	if _, ok := o.leastShare(7 * time.Second); ok {
		t.Error("a span longer than the window has a share")
	}
	if n, without := o.turns(); n != 51 || without != 1 {
		t.Errorf("%d turns, %d without one", n, without)
	}
	o.From, o.To = 2000*ms, 4000*ms
	if got := o.longestPause(); got != 100*ms {
		t.Errorf("within the window the longest pause is %v", time.Duration(got))
	}
}

// A wait is counted in turns from the window's beginning, between two turns, and to its end.
func TestShare_LongestWithoutInTurns(t *testing.T) {
	for procs, want := range map[string]int{"": 0, "012012": 2, "001200": 3, "120111": 4, "000": 3, "x01201": 2} {
		o := Outcome{Tallies: make([]measure.Tally, 3), From: 0, To: 1000}
		for i, p := range procs {
			if p != 'x' { // x: the turn before the window is not one of it
				o.Turns = append(o.Turns, Turn{At: int64(i), Ops: 1, Proc: int64(p - '0')})
			} else {
				o.From, o.Turns = 1, append(o.Turns, Turn{Ops: 1, Proc: 2})
			}
		}
		if _, got := o.turns(); got != want {
			t.Errorf("%q: %d turns, want %d", procs, got, want)
		}
	}
}

func TestCrew_I5_NothingIsLeft(t *testing.T) {
	dir := t.TempDir() // other tests run crews at the same time
	t.Setenv("TMPDIR", dir)
	_, _ = Run(t.Context(), Plan{Library: "no such", Goroutines: []int{1}}, nil, nil)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
