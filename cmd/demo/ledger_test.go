package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/sync/observe"
)

const (
	plainKey  = "test:stock"
	fencedKey = "test:" + keyDeleted
	longKey   = "test:report"
)

// said collects the output of a ledger.
type said struct {
	mu    sync.Mutex
	lines []string
}

func (s *said) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

func testLedger() (*ledger, *said) {
	s := &said{}
	return newLedger("test:", demoLocks(), s.say), s
}

// section is one visit that adds one.
func section(l *ledger, process int, key string, token int64) {
	p := l.enter(process, key, token)
	l.write(p.Visit, p.Value+1)
	l.leave(p.Visit)
}

// wantViolation checks that there was exactly one, with these words.
func wantViolation(t *testing.T, l *ledger, s *said, words string) {
	t.Helper()
	_, n := l.close()
	if n != 1 || len(s.lines) != 1 || !strings.Contains(s.lines[0], words) {
		t.Fatalf("%d violations, said %q; want one with %q", n, s.lines, words)
	}
}

func TestDemo_I2_ReadersAreTogetherAndAWriterAlone(t *testing.T) {
	const key = "test:" + keyShared
	l, s := testLedger()
	one, two := l.enter(1, key, reads), l.enter(2, key, reads)
	l.leave(one.Visit)
	l.leave(two.Visit)
	section(l, 1, key, 0)
	l.enter(3, key, reads)
	if l.sums.reads != 3 || l.sums.readers != 2 || len(s.lines) > 0 {
		t.Fatalf("%+v, said %q", l.sums, s.lines)
	}
	l.enter(1, key, 0)
	wantViolation(t, l, s, "two concurrent holders: process 1 entered prices while 1 were inside")

	l, s = testLedger()
	l.enter(1, key, 0)
	l.enter(2, key, reads)
	wantViolation(t, l, s, "two concurrent holders: process 2 entered prices while 1 were inside")
}

// A lock that lingers has moved if another process came in than the last time.
func TestLedgerCountsTheMovesOfALockThatLingers(t *testing.T) {
	l, _ := testLedger()
	for _, process := range []int{1, 1, 2, 2, 1} {
		section(l, process, "test:"+keyLingers, 0)
		section(l, process, plainKey, 0)
	}
	if l.sums.moved != 2 {
		t.Errorf("moved %d times, want 2", l.sums.moved)
	}
}

// An overlap that a fault has caused is explained once, where it shows.
func TestDemo_I3_AnOverlapIsExplained(t *testing.T) {
	l, s := testLedger()
	l.note = s.say
	l.enter(1, fencedKey, 1)
	l.enter(2, fencedKey, 2) // no fault
	l.expectLoss(fencedKey, time.Second, observe.LostGone)
	l.enter(2, fencedKey, 3)
	l.enter(3, fencedKey, 4)
	if len(s.lines) != 1 || !strings.Contains(s.lines[0], "process 2 enters before the other one knows") {
		t.Errorf("said %q", s.lines)
	}
}

func TestDemo_I2_GoodRunHasNoViolation(t *testing.T) {
	l, s := testLedger()
	for n := range int64(100) {
		section(l, int(n%4), plainKey, 0)
		section(l, int(n%4), fencedKey, n+1)
	}
	if sums, n := l.close(); n != 0 || sums.overlaps != 0 || len(s.lines) != 0 {
		t.Fatalf("%d violations, %d overlaps, said %q", n, sums.overlaps, s.lines)
	}
}

func TestDemo_I2_OverlapOnPlainKeyIsViolation(t *testing.T) {
	l, s := testLedger()
	one := l.enter(1, plainKey, 0)
	two := l.enter(2, plainKey, 0)
	l.write(one.Visit, one.Value+1)
	l.leave(one.Visit)
	p := two
	p.Value++ // the second visit saw the first one's update, so that nothing else is wrong
	l.write(two.Visit, p.Value+1)
	l.leave(two.Visit)
	wantViolation(t, l, s, "two concurrent holders")
}

func TestDemo_I2_LostUpdateIsViolation(t *testing.T) {
	l, s := testLedger()
	stale := l.enter(1, plainKey, 0)
	l.leave(stale.Visit)
	section(l, 2, plainKey, 0)
	again := l.enter(1, plainKey, 0)
	l.write(again.Visit, stale.Value+1) // read before the other visit wrote
	l.leave(again.Visit)
	wantViolation(t, l, s, "lost updates: stock is 1 after 2 accepted writes")
}

func TestDemo_I2_LossOfPlainLockWhileServerIsShortlyAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := testLedger()
		l.enter(1, plainKey, 0)
		l.lossReported(1, plainKey, observe.LostDeadline) // not forbidden
		time.Sleep(firstRenewal)
		section(l, 2, longKey, 0)
		time.Sleep(time.Millisecond)
		l.forbidLosses(time.Hour)
		l.lossReported(1, fencedKey, observe.LostDeadline)
		l.lossReported(2, longKey, observe.LostDeadline) // its lease may not have been whole
		l.lossReported(1, plainKey, observe.LostDeadline)
		if sums, _ := l.close(); sums.lost != 4 {
			t.Errorf("lost %d, want 4", sums.lost)
		}
		wantViolation(t, l, s, "stock was lost (deadline)")
	})
}

func TestDemo_I3_OverlapOnFencedKeyIsCounted(t *testing.T) {
	l, s := testLedger()
	old := l.enter(1, fencedKey, 10)
	l.write(old.Visit, old.Value+1)
	section(l, 2, fencedKey, 11)
	if l.write(old.Visit, old.Value+2) {
		t.Error("a write with token 10 was accepted after token 11 was seen")
	}
	l.leave(old.Visit)
	sums, n := l.close()
	if n != 0 || sums.overlaps != 1 || sums.refused != 1 || len(s.lines) != 0 {
		t.Fatalf("%d violations, %d overlaps, %d refused, said %q", n, sums.overlaps, sums.refused, s.lines)
	}
}

func TestDemo_I3_UnfencedWrite(t *testing.T) {
	l, _ := testLedger()
	p := l.enter(1, fencedKey, 0)
	if p.Admitted || l.write(p.Visit, 1) {
		t.Fatal("the resource took a visitor without a token")
	}
	l.leave(p.Visit)

	l, s := testLedger()
	l.admits = func(_, _ int64) bool { return true } // a resource that does not check
	section(l, 1, fencedKey, 0)
	wantViolation(t, l, s, "unfenced write")
}

func TestDemo_I3_OldTokenAcceptedIsViolation(t *testing.T) {
	l, s := testLedger()
	l.admits = func(_, token int64) bool { return token > 0 } // one that does not compare
	section(l, 1, fencedKey, 11)
	section(l, 2, fencedKey, 10)
	wantViolation(t, l, s, "token 10")
}

func TestDemo_I3_TokenGivenTwiceIsViolation(t *testing.T) {
	l, s := testLedger()
	section(l, 1, fencedKey, 10)
	section(l, 2, fencedKey, 10)
	wantViolation(t, l, s, "token 10 of invoices was given to two holds")
}

func TestDemo_I3_AcceptedWriteIsNotLost(t *testing.T) {
	l, s := testLedger()
	p := l.enter(1, fencedKey, 10)
	l.write(p.Visit, p.Value+1)
	l.write(p.Visit, p.Value+1) // accepted, and overwrites its own update
	l.leave(p.Visit)
	wantViolation(t, l, s, "lost updates")
}

func TestLedgerForgetsTheVisitsOfADeadProcess(t *testing.T) {
	l, s := testLedger()
	p := l.enter(1, plainKey, 0)
	l.gone(1)
	if l.write(p.Visit, 5) {
		t.Error("a dead process wrote")
	}
	section(l, 2, plainKey, 0)
	if _, n := l.close(); n != 0 {
		t.Fatalf("said %q", s.lines)
	}
}

func TestLedgerKnowsItsKeys(t *testing.T) {
	l, s := testLedger()
	section(l, 1, "somebody else's", 0)
	wantViolation(t, l, s, "no key of this run")
}

// The first lines are enough; thousands would hide them.
func TestLedgerBoundsWhatItSays(t *testing.T) {
	l, s := testLedger()
	for range 10 * maxSaid {
		l.enter(1, plainKey, 0)
	}
	if _, n := l.close(); n != 10*maxSaid-1 || len(s.lines) != maxSaid {
		t.Fatalf("%d violations, %d lines", n, len(s.lines))
	}
}
