package measure_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// TestTeam_AllocatesNothing is I1: only the library allocates.
func TestTeam_AllocatesNothing(t *testing.T) {
	load := measure.Load{Goroutines: 1, Keys: 1}
	got := load.Muster(t.Context(), open(t, library.Nothing)).Run(measure.Window{Warm: time.Millisecond, For: 200 * time.Millisecond})
	// The runtime and the harness' own readings allocate a little, whatever is done.
	if got.Ops < 1000 || got.Objects > 500+got.Ops/100 {
		t.Errorf("%d objects in %d acquisitions", got.Objects, got.Ops)
	}
}

// TestTeam_CountsTheWindow: the warm-up and the time after the end do not count, and waits are exact, on a clock that
// only sleeping advances.
func TestTeam_CountsTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		c := fake{lock: func(context.Context) error {
			mu.Lock()
			time.Sleep(3 * time.Millisecond) // a wait of 3 ms, in which nobody else may wait
			return nil
		}, unlock: func() error { mu.Unlock(); return nil }}
		var moments []string
		start := time.Now()
		note := func(what string) func() {
			return func() { moments = append(moments, what+" "+time.Since(start).String()) }
		}
		load := measure.Load{Goroutines: 1, Keys: 1, Hold: 7 * time.Millisecond}
		got := load.Muster(t.Context(), c).Run(measure.Window{
			Warm: 55 * time.Millisecond, For: 100 * time.Millisecond, Begin: note("begin"), End: note("end"),
		})
		if got.Ops != 10 || got.Least != 10 || got.Most != 10 || got.Elapsed != 100*time.Millisecond {
			t.Errorf("%d acquisitions (%d…%d) in %v, not 10 in 100ms", got.Ops, got.Least, got.Most, got.Elapsed)
		}
		if got.Wait.Max != 3*time.Millisecond || got.Wait.Total != 10 {
			t.Errorf("%d waits of at most %v, not 10 of 3ms", got.Wait.Total, got.Wait.Max)
		}
		if got := strings.Join(moments, ", "); got != "begin 55ms, end 155ms" {
			t.Error(got)
		}
		if got.Failures+got.Violations+got.Stuck != 0 {
			t.Errorf("%+v failed", got)
		}
	})
}

// TestTeam_StuckIsCounted is I5, with one that comes back and one that does not. It is also the longest wait, cut off
// by the end.
func TestTeam_StuckIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		var once sync.Once
		c := fake{lock: func(ctx context.Context) error {
			stuck := false
			once.Do(func() { stuck = true })
			if stuck {
				<-hang
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}, unlock: nothing}
		got := measure.Load{Goroutines: 2, Keys: 1}.Muster(t.Context(), c).Run(measure.Window{Warm: time.Second, For: 4 * time.Second})
		if got.Stuck != 1 || got.Least != 0 || got.Ops != 0 || got.Failures != 0 {
			t.Errorf("stuck %d, least %d, ops %d, failures %d", got.Stuck, got.Least, got.Ops, got.Failures)
		}
		if got.Wait.Max != 5*time.Second {
			t.Errorf("the longest wait is %v, not the 5s that the end cut off", got.Wait.Max)
		}
		close(hang)
	})
}

// TestTeam_FailuresAreCounted: errors before the end, and the first of them.
func TestTeam_FailuresAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		c := fake{lock: func(context.Context) error {
			time.Sleep(time.Millisecond)
			if calls++; calls%2 == 0 {
				return errors.New("refused")
			}
			return nil
		}, unlock: func() error { return errors.New("not unlocked") }}
		got := measure.Load{Goroutines: 1, Keys: 1}.Muster(t.Context(), c).Run(measure.Window{For: 100 * time.Millisecond})
		// Each failure is followed by a pause as long as an acquisition takes here.
		if got.Ops < 24 || got.Ops > 26 || got.Failures < 49 || got.Failures > 51 || got.Failure != "not unlocked" {
			t.Errorf("%d acquisitions, %d failures, %q", got.Ops, got.Failures, got.Failure)
		}
	})
}

// TestTeam_APanicIsAFailure: it ends its goroutine, and no other.
func TestTeam_APanicIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		c := fake{lock: func(context.Context) error {
			if calls.Add(1) == 2 {
				panic("closed")
			}
			time.Sleep(time.Millisecond)
			return nil
		}, unlock: nothing}
		got := measure.Load{Goroutines: 2, Keys: 10}.Muster(t.Context(), c).Run(measure.Window{For: 10 * time.Millisecond})
		if got.Failures != 1 || got.Failure != "panic: closed" || got.Stuck != 0 || got.Most < 9 {
			t.Errorf("%d failures, %q, %d stuck, %d acquisitions", got.Failures, got.Failure, got.Stuck, got.Most)
		}
	})
}

// TestTeam_SameKeysForAll: every library meets the same sequence of keys.
func TestTeam_SameKeysForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sequence := func() []string {
			r := &recorder{}
			// The end is never the end of a wait, so it always cuts off the same one.
			w := measure.Window{For: 500*time.Millisecond + 500*time.Microsecond}
			measure.Load{Goroutines: 1, Keys: 1000, Prefix: "p"}.Muster(t.Context(), r).Run(w)
			return r.keys
		}
		first := sequence()
		if second := sequence(); !slices.Equal(first, second) {
			t.Error("two sequences differ")
		}
		distinct := map[string]bool{}
		for _, key := range first {
			distinct[key] = true
		}
		// Of 500 draws out of 1000 some 393 are different.
		if len(first) < 499 || len(distinct) < 350 {
			t.Errorf("%d of %d keys are different", len(distinct), len(first))
		}
	})
}

// recorder records the keys for which handles are created, by one goroutine.
type recorder struct{ keys []string }

func (r *recorder) Handle(key string) library.Handle {
	r.keys = append(r.keys, key)
	return fake{lock: func(context.Context) error { time.Sleep(time.Millisecond); return nil }, unlock: nothing}
}

func (r *recorder) Close() error { return nil }

func TestTally_Add(t *testing.T) {
	var sum measure.Tally
	sum.Add(&measure.Tally{Ops: 10, Least: 2, Most: 5, Processes: 1, LeastProcess: 10, MostProcess: 10, Elapsed: 2 * time.Second, CPU: time.Second, Objects: 3, Failures: 1, Failure: "x"})
	sum.Add(&measure.Tally{Ops: 30, Least: 1, Most: 4, Processes: 1, LeastProcess: 30, MostProcess: 30, Elapsed: time.Second, CPU: time.Second, Objects: 5, Violations: 2})
	if sum.Ops != 40 || sum.Least != 1 || sum.Most != 5 || sum.Processes != 2 || sum.LeastProcess != 10 || sum.MostProcess != 30 {
		t.Errorf("%+v", sum)
	}
	f := sum.Figures()
	want := measure.Figures{
		measure.OpsPerS: 20, measure.ClientCPUUSPerOp: 50_000, measure.AllocsPerOp: 0.2, measure.MinPerProcess: 10, measure.MaxPerProcess: 30,
		measure.Violations: 2, measure.Failures: 1,
	}
	for name, v := range want {
		if f[name] != v {
			t.Errorf("%s is %v, not %v", name, f[name], v)
		}
	}
}
