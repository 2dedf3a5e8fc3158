package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom/sync/observe"
)

// expectation is something that must happen because of an injected fault: a loss that the library has to report, or a
// key that has to become usable again. Its fields do not change, except took and by, which are written once before
// done is closed.
type expectation struct {
	key     string
	reasons []observe.LossReason // any one of them; none for a key that must become usable
	from    time.Time
	within  time.Duration
	done    chan struct{} // closed when it has happened, in time or not
	took    time.Duration
	by      int // the process that entered

	explained bool // its overlap was; guarded by ledger.mu
}

// expectLoss registers that a loss of key with one of these reasons must be reported. It is called before the fault,
// because the report may arrive before the fault returns.
func (l *ledger) expectLoss(key string, within time.Duration, reasons ...observe.LossReason) *expectation {
	return l.expect(&expectation{key: key, reasons: reasons, within: within})
}

// expectEntry registers that a process must enter key from now on.
func (l *ledger) expectEntry(key string, within time.Duration) *expectation {
	return l.expect(&expectation{key: key, within: within})
}

// expect opens x. The clock starts here, so the printed time includes the fault itself and never flatters the
// library.
func (l *ledger) expect(x *expectation) *expectation {
	x.from, x.done = time.Now(), make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expected = append(l.expected, x)
	return x
}

// withdraw removes an expectation whose fault did not take place.
func (l *ledger) withdraw(x *expectation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expected = slices.DeleteFunc(l.expected, func(other *expectation) bool { return other == x })
}

// await waits until x has happened or its bound has passed, and reports whether it happened within its bound. Only x
// bounds the wait: a report in flight when the user ends the run still counts.
func (l *ledger) await(x *expectation) bool {
	timer := time.NewTimer(time.Until(x.from.Add(x.within)))
	defer timer.Stop()
	select {
	case <-x.done:
	case <-timer.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return x.inTime()
}

// meet marks the oldest open expectation of that key and reason, "" for an entry, and returns it, or nil if there is
// none. One report meets one expectation: two faults of a kind need two reports. What has happened in time is
// forgotten, so that a run of days does not search all its faults at every visit. The caller holds ledger.mu.
func (l *ledger) meet(key string, reason observe.LossReason, process int) *expectation {
	for n, x := range l.expected {
		asked := len(x.reasons) == 0 && reason == "" || slices.Contains(x.reasons, reason)
		if x.key == key && asked && !x.isDone() {
			x.took, x.by = time.Since(x.from), process
			close(x.done)
			if x.inTime() {
				l.expected = slices.Delete(l.expected, n, n+1)
			}
			return x
		}
	}
	return nil
}

// explain says once for a fault why a process enters beside another. The caller holds ledger.mu.
func (l *ledger) explain(key string, process int) {
	for _, x := range l.expected {
		if x.key == key && len(x.reasons) > 0 && !x.isDone() && !x.explained {
			x.explained = true
			l.note("process %d enters before the other one knows: the token refuses what that one writes now", process)
		}
	}
}

// lossReported handles a loss that the library reported. It returns how long after its fault it came, and false if no
// fault caused it: a machine that stalls for longer than a lease loses locks, and then the report is right.
func (l *ledger) lossReported(process int, key string, reason observe.LossReason) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sums.lost++
	if a := l.accounts[key]; a != nil && !a.fenced && time.Now().Before(l.calmUntil) && l.settled(process, a) {
		l.violate("%s was lost (%s), although the outage was shorter than its lease", a.name, reason)
	}
	if x := l.meet(key, reason, process); x != nil {
		return x.took, true
	}
	return 0, false
}

// forbidLosses declares that no plain lock may be lost for the time d: the outage is shorter than their leases.
func (l *ledger) forbidLosses(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calmFrom = time.Now()
	l.calmUntil = l.calmFrom.Add(d)
}

// settled reports whether the process's last visit began long enough before the outage for its lease to be whole. One
// that was called by a release has the lock for two seconds only until its first renewal, see docs/guarantees.md §2.
// The caller holds ledger.mu.
func (l *ledger) settled(process int, a *account) bool {
	return l.calmFrom.Sub(a.began[process]) > firstRenewal
}

// missing returns, as sentences, the expectations that were not fulfilled, or not in time, and the problems. At the end
// of a run, when every process has ended, nothing can arrive any more.
func (l *ledger) missing() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := slices.Clone(l.problems)
	for _, x := range l.expected {
		what := l.name(x.key) + " did not become usable again"
		if len(x.reasons) > 0 {
			what = fmt.Sprintf("the loss of %s with reason %s was not reported", l.name(x.key), x.causes())
		}
		what += fmt.Sprintf(" within %v", x.within)
		if x.isDone() {
			what += fmt.Sprintf(", but after %v", x.took.Round(time.Millisecond))
		}
		list = append(list, what)
	}
	return list
}

func (l *ledger) name(key string) string {
	if a := l.accounts[key]; a != nil {
		return a.name
	}
	return fmt.Sprintf("%q", key)
}

func (x *expectation) isDone() bool {
	select {
	case <-x.done:
		return true
	default:
		return false
	}
}

// inTime reports whether x happened within its bound. The caller holds ledger.mu.
func (x *expectation) inTime() bool { return x.isDone() && x.took <= x.within }

// causes joins the reasons.
func (x *expectation) causes() string {
	var words []string
	for _, r := range x.reasons {
		words = append(words, string(r))
	}
	return strings.Join(words, " or ")
}
