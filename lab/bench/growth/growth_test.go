package growth

import (
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
	"github.com/anteroom/anteroom/sync/observe"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=1") // of the children, which end often
	child.Run(map[string]child.Role{RoleName: Role})
	goleak.VerifyTestMain(m)
}

// run measures a small size.
func run(t *testing.T, plan Plan) (measure.Figures, string) {
	t.Helper()
	note := ""
	f, err := Run(t.Context(), plan, func(text string) { note += text })
	if err != nil {
		t.Fatal(err)
	}
	return f, note
}

func demand(t *testing.T, f measure.Figures, names ...measure.Figure) {
	t.Helper()
	for _, name := range names {
		if v, ok := f[name]; !ok || v <= 0 {
			t.Errorf("%s is %v", name, v)
		}
	}
}

func TestGrowth_I1_I2_Held(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	for _, name := range []string{library.Anteroom, library.Rueidislock} {
		f, _ := run(t, Plan{Kind: Held, Library: name, Addr: s.Addr(), Prefix: name, N: 300, For: 250 * time.Millisecond})
		demand(t, f, HeapPerItem, RedisBytes, Goroutines, CPU, TakenPerS, FreedPerS, Window)
		if _, ok := f[Lost]; ok != (name == library.Anteroom) || f[Lost] != 0 {
			t.Errorf("%s: %v", name, f)
		}
	}
	if left := s.Stats(t)["evalsha"]; left < 600 {
		t.Errorf("%d scripts were called", left)
	}
}

func TestGrowth_I1_I2_Waiters(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	for _, name := range []string{library.AnteroomFair, library.Semaphore, library.Mutex} {
		f, note := run(t, Plan{Kind: Waiters, Library: name, Addr: s.Addr(), Prefix: name, N: 300, For: 250 * time.Millisecond})
		demand(t, f, StackPerItem, BareHeap, HandoffsPerS)
		// Fewer if a goroutine that lingered when the counting began has ended since.
		if more := f[MoreRoutines]; more > 300 || more < 297 || f[measure.Violations] != 0 {
			t.Errorf("%s: %v", name, f)
		}
		if ours := strings.HasPrefix(name, library.Anteroom); ours != strings.HasPrefix(note, "commands") || f[OtherCommands] != 0 {
			t.Errorf("%s: %q, %v", name, note, f)
		}
	}
}

func TestGrowth_Keys(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	f, _ := run(t, Plan{Kind: Keys, Library: library.Anteroom, Addr: s.Addr(), Prefix: "k", N: 500})
	demand(t, f, measure.OpsPerS, measure.ClientCPUUSPerOp)
	if left, ok := f[KeysLeft]; !ok || left != 0 {
		t.Errorf("%v keys are left", left)
	}
}

func TestGrowth_I3_RenewalsAreJudged(t *testing.T) {
	o := &observer{}
	o.reset()
	o.hooks().Renewed("", observe.OutcomeRenewed, lease*2/3)
	o.hooks().Renewed("", observe.OutcomeRenewed, lateBelow-1)
	o.hooks().Renewed("", observe.OutcomeFailed, 0)
	o.hooks().Renewed("", observe.OutcomeRefused, 0)
	o.hooks().Lost("", observe.LostGone)
	if o.renewed.Load() != 2 || o.late.Load() != 1 || o.failed.Load() != 2 || o.lost.Load() != 1 || o.leastLeft.Load() != int64(lateBelow-1) {
		t.Errorf("%+v", o)
	}
	o.reset()
	if o.renewed.Load()+o.late.Load()+o.failed.Load()+o.lost.Load() != 0 {
		t.Errorf("after reset: %+v", o)
	}
}

func TestGrowth_WhatIsNotKnownIsAnError(t *testing.T) {
	if _, err := Run(t.Context(), Plan{Kind: "nothing", Addr: testredis.Start(t).Addr()}, nil); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("%v", err)
	}
}
