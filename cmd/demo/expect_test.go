package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/sync/observe"
)

// wantUnmet checks the only missing expectation, "" for none.
func wantUnmet(t *testing.T, l *ledger, words string) {
	t.Helper()
	missing := l.missing()
	if words == "" && len(missing) == 0 {
		return
	}
	if len(missing) != 1 || words == "" || !strings.Contains(missing[0], words) {
		t.Fatalf("missing: %q; want %q", missing, words)
	}
}

func TestDemo_I4_LossIsMatchedByKeyAndCause(t *testing.T) {
	const missing = "the loss of invoices with reason gone was not reported within 1s"
	synctest.Test(t, func(t *testing.T) {
		l, _ := testLedger()
		x := l.expectLoss(fencedKey, time.Second, observe.LostGone)
		wantUnmet(t, l, missing)
		time.Sleep(200 * time.Millisecond)
		if _, asked := l.lossReported(1, fencedKey, observe.LostDeadline); asked {
			t.Error("another cause met it")
		}
		if _, asked := l.lossReported(1, plainKey, observe.LostGone); asked {
			t.Error("another key met it")
		}
		wantUnmet(t, l, missing)
		after, asked := l.lossReported(1, fencedKey, observe.LostGone)
		if !asked || after != 200*time.Millisecond || !l.await(x) {
			t.Errorf("reported after %v, asked %v", after, asked)
		}
		wantUnmet(t, l, "")
		if _, asked := l.lossReported(1, fencedKey, observe.LostGone); asked {
			t.Error("one fault was met by two reports")
		}
	})
}

// A forced release is reported as gone if the notice of it came too late.
func TestDemo_I4_EitherCauseMeetsIt(t *testing.T) {
	for _, reason := range []observe.LossReason{observe.LostForced, observe.LostGone} {
		l, _ := testLedger()
		l.expectLoss(fencedKey, time.Hour, observe.LostForced, observe.LostGone)
		section(l, 2, fencedKey, 1)
		l.lossReported(1, fencedKey, observe.LostDeadline)
		wantUnmet(t, l, "the loss of invoices with reason forced or gone was not reported")
		l.lossReported(1, fencedKey, reason)
		wantUnmet(t, l, "")
	}
}

func TestDemo_I4_EachFaultNeedsItsOwnReport(t *testing.T) {
	l, _ := testLedger()
	for range 2 {
		l.expectLoss(fencedKey, time.Hour, observe.LostGone)
	}
	l.lossReported(1, fencedKey, observe.LostGone)
	wantUnmet(t, l, "invoices")
	l.lossReported(1, fencedKey, observe.LostGone)
	wantUnmet(t, l, "")
}

func TestDemo_I4_LateReportDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := testLedger()
		x := l.expectLoss(fencedKey, time.Second, observe.LostForced)
		if l.await(x) {
			t.Error("met by nothing")
		}
		time.Sleep(time.Second)
		l.lossReported(1, fencedKey, observe.LostForced)
		wantUnmet(t, l, "within 1s, but after 2s")
	})
}

func TestDemo_I4_KeyHasToBecomeUsable(t *testing.T) {
	l, _ := testLedger()
	section(l, 1, fencedKey, 1) // before the fault
	x := l.expectEntry(fencedKey, time.Hour)
	section(l, 1, plainKey, 0)
	wantUnmet(t, l, "invoices did not become usable again")
	section(l, 3, fencedKey, 2)
	wantUnmet(t, l, "")
	if x.by != 3 {
		t.Errorf("entered by process %d, want 3", x.by)
	}
}

func TestWithdrawnExpectationIsForgotten(t *testing.T) {
	l, _ := testLedger()
	x := l.expectLoss(fencedKey, time.Second, observe.LostGone)
	l.expectLoss(fencedKey, time.Second, observe.LostForced)
	l.withdraw(x)
	wantUnmet(t, l, "forced")
}
