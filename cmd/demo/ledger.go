package main

import (
	"slices"
	"sync"
	"time"
)

// resource is what the locks of the demonstration protect. The ledger implements it, directly in the same process and
// through a pipe from another one.
//
// Each call is atomic and none waits for another visit: the resource excludes nobody, so that overlapping visits
// show.
type resource interface {
	// enter begins a visit to key and returns its number and the value found there. On a fenced key a token that is
	// too old is not admitted; the visit counts all the same, because its visitor believes that it holds the lock. A
	// visitor that only reads has the token reads.
	enter(key string, token int64) Pass
	// write replaces the value and reports whether the resource accepted it.
	write(visit, value int64) bool
	// leave ends the visit. An unknown visit is ignored.
	leave(visit int64)
}

// reads is the token of a visitor that does not write, and may be beside others that do not.
const reads = -1

// Pass is the answer to enter.
type Pass struct {
	Visit    int64
	Value    int64
	Admitted bool
}

// ledger is the resource behind every lock, and judges what happens to it. It keeps the rule of the resource (admits)
// apart from the audit of accepted writes, so that a resource that accepts too much is detected too.
//
// All methods are safe for concurrent use, and none blocks on anything but mu.
type ledger struct {
	say  func(format string, args ...any) // prints a violation
	note func(format string, args ...any) // prints what explains an overlap
	// admits is the rule of a fenced resource; tests replace it with a broken one.
	admits func(newest, token int64) bool

	mu         sync.Mutex
	accounts   map[string]*account // by key; the map itself is fixed from the start
	visits     map[int64]*visit    // under way, guarded by mu
	lastVisit  int64               // guarded by mu
	expected   []*expectation      // guarded by mu
	calmFrom   time.Time           // from then on
	calmUntil  time.Time           // until then no plain lock may be lost whose lease was whole before; guarded by mu
	sums       sums                // guarded by mu
	violations int                 // guarded by mu
	problems   []string            // what kept the run from showing what it should, guarded by mu
}

// sums is the ledger's part of the last lines.
type sums struct {
	faults, lost, overlaps, refused int
	reads, readers                  int // visits that only read, and the most of them at once
	moved                           int // how often a lock that lingers came to another process
}

// account is the ledger's page for one key. Guarded by ledger.mu.
type account struct {
	name   string // for display
	fenced bool
	linger bool
	last   int // the process of the last visit that may write
	inside int // visits under way that may write
	reads  int // the others
	value  int64
	writes int64 // accepted ones: the value expected at the end
	// newest is the largest token that the resource has seen.
	newest int64
	// audited is the same from the audit's view, and auditedBy the visit that presented it.
	audited, auditedBy int64
	began              map[int]time.Time // the last visit of each process
}

// visit is one tenure as the ledger sees it. Guarded by ledger.mu.
type visit struct {
	account *account
	process int
	token   int64
}

// maxSaid bounds the violations that are printed one by one: a broken lock would cause thousands a second, and the
// first ones are enough.
const maxSaid = 20

// newLedger returns a ledger with an empty page for each lock.
func newLedger(prefix string, locks []lock, say func(string, ...any)) *ledger {
	l := &ledger{say: say, note: func(string, ...any) {}, admits: admits, accounts: map[string]*account{}, visits: map[int64]*visit{}}
	for _, k := range locks {
		l.accounts[prefix+k.name] = &account{name: k.name, fenced: k.fenced, linger: k.linger > 0, began: map[int]time.Time{}}
	}
	return l
}

// admits is the check that docs/guarantees.md demands of a resource: a token no older than the newest one seen. A
// missing token is never enough.
func admits(newest, token int64) bool { return token > 0 && token >= newest }

// as returns the ledger as the resource of one process.
func (l *ledger) as(process int) resource { return localResource{l, process} }

type localResource struct {
	*ledger
	process int
}

func (r localResource) enter(key string, token int64) Pass {
	return r.ledger.enter(r.process, key, token)
}

// enter is resource.enter for one process. A visitor counts as a holder with any token: overlaps are counted
// before tokens are checked.
func (l *ledger) enter(process int, key string, token int64) Pass {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[key]
	if a == nil {
		l.violate("process %d entered %q, which is no key of this run", process, key)
		return Pass{}
	}
	l.lastVisit++
	id := l.lastVisit
	l.visits[id] = &visit{account: a, process: process, token: token}
	switch {
	case a.inside > 0 && a.fenced:
		l.sums.overlaps++
		l.explain(key, process)
	case a.inside > 0, a.reads > 0 && token != reads:
		l.violate("two concurrent holders: process %d entered %s while %d were inside", process, a.name, a.inside+a.reads)
	}
	if token == reads {
		a.reads++
		l.sums.reads, l.sums.readers = l.sums.reads+1, max(l.sums.readers, a.reads)
		return Pass{Visit: id, Value: a.value, Admitted: true}
	}
	a.inside++
	a.began[process] = time.Now()
	if a.linger && a.last != 0 && a.last != process {
		l.sums.moved++
	}
	a.last = process
	l.meet(key, "", process)
	p := Pass{Visit: id, Value: a.value, Admitted: true}
	if a.fenced {
		p.Admitted = l.presentLocked(a, id, token)
	}
	return p
}

// presentLocked presents the token to the fenced resource before anything is read: from then on it refuses older
// ones, so that what the visitor reads cannot be overwritten by a visitor that read it earlier.
func (l *ledger) presentLocked(a *account, id, token int64) bool {
	if token > 0 && token == a.audited && id != a.auditedBy {
		l.violate("token %d of %s was given to two holds", token, a.name)
	}
	if token > a.audited {
		a.audited, a.auditedBy = token, id
	}
	if !l.admits(a.newest, token) {
		l.sums.refused++
		return false
	}
	a.newest = max(a.newest, token)
	return true
}

// write is resource.write. A plain resource accepts every value, as a variable would; a fenced one compares the token
// of the visit with the newest one that it has seen.
func (l *ledger) write(id, value int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.visits[id]
	if v == nil {
		return false
	}
	a := v.account
	if a.fenced && !l.admits(a.newest, v.token) {
		l.sums.refused++
		return false
	}
	if a.fenced {
		l.auditLocked(v)
	}
	a.value = value
	a.writes++
	return true
}

// auditLocked judges a write that the fenced resource has accepted.
func (l *ledger) auditLocked(v *visit) {
	switch {
	case v.token <= 0:
		l.violate("an unfenced write by process %d to %s was accepted", v.process, v.account.name)
	case v.token < v.account.audited:
		l.violate("a write with token %d by process %d to %s was accepted after token %d was seen",
			v.token, v.process, v.account.name, v.account.audited)
	}
}

// leave is resource.leave.
func (l *ledger) leave(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v := l.visits[id]; v != nil {
		l.endLocked(id, v)
	}
}

func (l *ledger) endLocked(id int64, v *visit) {
	delete(l.visits, id)
	if v.token == reads {
		v.account.reads--
	} else {
		v.account.inside--
	}
}

// gone ends the visits of a process that has ended: it cannot leave any more, and a process that does not run is no
// second holder.
func (l *ledger) gone(process int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, v := range l.visits {
		if v.process == process {
			l.endLocked(id, v)
		}
	}
}

// injected counts a fault that took place.
func (l *ledger) injected() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sums.faults++
}

// problem records something that kept the run from showing what it should.
func (l *ledger) problem(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.problems, what) {
		l.problems = append(l.problems, what)
	}
}

// violate counts and prints a violation. The caller holds mu.
func (l *ledger) violate(format string, args ...any) {
	l.violations++
	if l.violations <= maxSaid {
		l.say(format, args...)
	}
}

// close compares, after all visitors have left, each value with the number of accepted writes: every update added one
// to the value read. It returns the sums and the number of violations. It is called once.
func (l *ledger) close() (sums, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.accounts {
		if a.value != a.writes {
			l.violate("lost updates: %s is %d after %d accepted writes", a.name, a.value, a.writes)
		}
	}
	return l.sums, l.violations
}

// losses returns the number of losses that the library has reported so far.
func (l *ledger) losses() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sums.lost
}
