// Package waits finds callers that wait for a lock for too long, and goroutines that wait
// for each other. It checks from time to time what the queues know anyway:
//
//	timer ──► Check: each live key with waiters: who owns it, who is first
//	           ├───► first waits for longer than the limit, and was not reported ──► Overdue
//	           ├───► same owner as at the last check: who of its kind waits where? ──► Cycles
//	           └───► timer, again
//
// So nothing is added to acquiring and releasing: no clock, no allocation, no lock.
package waits

import (
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/anteroom/anteroom/queue"
)

// Queue is what the Lookout asks of the callers who wait for a key. *queue.Synchronizer has it, and says more.
type Queue interface {
	Front() queue.Front
	Find(goroutine uint64) (w queue.WaiterInfo, waiting bool)
	AppendWaiting(goroutines []uint64) []uint64
}

// Key is what the Lookout knows of a live key. Its Queue, which can be compared, is its identity.
type Key struct {
	Name  string
	Queue Queue
	Limit time.Duration // how long a caller may wait for it; negative: for as long as it likes
	// OwnerUnlocks: only the goroutine that has locked it can unlock it.
	OwnerUnlocks bool
	Of           any // the caller's own
}

// Wait is somebody who waits for a key: the first one, or the one that is part of a Cycle.
type Wait struct {
	Key
	queue.Front
	Waiter queue.WaiterInfo
}

// Report is what one check has found that was not reported before. Overdue is for reading
// while the report is made.
type Report struct {
	At      time.Time
	Overdue []Wait // one for each key, the longest wait first
	Cycles  []Cycle
}

// Lookout checks keys. A check runs on a goroutine that lives as long as the check, and
// takes at most a hundredth of one processor: a check comes the later the longer
// the one before has taken, and a minute after it at the latest, since a process that was
// stopped meanwhile, or a suspended machine, makes any check long.
type Lookout struct {
	limit  time.Duration
	keys   iter.Seq[Key]
	report func(Report)

	mu      sync.Mutex     // guards every, timer and stopped
	every   time.Duration  // between two checks
	timer   *time.Timer    // nil while no check is planned
	stopped bool           //
	planned sync.WaitGroup // the check that is planned or under way

	// The fields below belong to the check under way. There is one at a time.
	seen     map[Queue]sighting // those that had waiters at the last check
	checks   uint64             // how many there were
	read     time.Time          // when the last one had read all keys
	stuck    []Wait             // on keys that may be part of a deadlock
	overdue  []Wait             // on keys that are to be reported
	reported map[Queue]uint32   // tenures that are part of a reported cycle
}

// sighting is what is kept of a key that has waiters.
type sighting struct {
	check      uint64    // when it was last seen
	tenure     uint32    // of its owner then; 0: none in this process
	covered    time.Time // waits that began up to then have been reported
	reportedAt time.Time // when that was
}

const (
	// maxEvery and checksPerWait: a wait is reported at most so much later than it might
	// be, and a deadlock is found after at most two checks.
	maxEvery      = 5 * time.Second
	checksPerWait = 4
	// idle is how many times as long as it took the Lookout pauses after a check.
	idle = 100
	// maxPause bounds that.
	maxPause = time.Minute
)

// New returns a Lookout that is not started. keys yields the live keys; report is
// called if a check has found something. With a negative limit it never checks.
func New(limit time.Duration, keys iter.Seq[Key], report func(Report)) *Lookout {
	return &Lookout{
		limit: limit, keys: keys, report: report, every: min(limit/checksPerWait, maxEvery),
		seen: map[Queue]sighting{}, reported: map[Queue]uint32{},
	}
}

// Serve lets the checks be close enough for waits of this limit, where any are reported.
func (l *Lookout) Serve(limit time.Duration) {
	if limit <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.every = min(l.every, limit/checksPerWait)
}

// Start begins the checks.
func (l *Lookout) Start() {
	if l.limit > 0 {
		l.mu.Lock()
		every := l.every
		l.mu.Unlock()
		l.plan(every)
	}
}

// plan has the next check begin after d.
func (l *Lookout) plan(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	l.planned.Add(1)
	l.timer = time.AfterFunc(d, func() {
		defer l.planned.Done()
		began := time.Now()
		l.Check(began)
		l.mu.Lock()
		every := l.every
		l.mu.Unlock()
		l.plan(max(every, min(idle*time.Since(began), maxPause)))
	})
}

// Stop ends the checks and waits for one under way. It may be called without Start.
func (l *Lookout) Stop() {
	l.mu.Lock()
	l.stopped = true
	if l.timer != nil && l.timer.Stop() {
		l.planned.Done()
	}
	l.timer = nil
	l.mu.Unlock()
	l.planned.Wait()
}

// Check checks all keys once. The timer calls it; so may a caller that has not called Start.
func (l *Lookout) Check(now time.Time) {
	l.checks++
	for k := range l.keys {
		l.visit(k, now)
	}
	slices.SortFunc(l.overdue, func(a, b Wait) int { return a.Waiter.Since.Compare(b.Waiter.Since) })
	cycles := l.cycles(now)
	l.read = time.Now()
	if len(l.overdue)+len(cycles) > 0 {
		l.report(Report{now, l.overdue, cycles})
	}
	l.forget()
}

// visit checks a key.
func (l *Lookout) visit(k Key, now time.Time) {
	f := k.Queue.Front()
	if f.Waiting == 0 {
		return
	}
	w, s := Wait{k, f, f.First}, l.seen[k.Queue]
	if tenure := f.Owner.Number; tenure != 0 && tenure == s.tenure && f.First.Since.Before(l.read) {
		l.stuck = append(l.stuck, w)
	}
	if k.Limit > 0 && isNews(k.Limit, &s, f.First.Since, now) {
		l.overdue = append(l.overdue, w)
	}
	s.check, s.tenure = l.checks, f.Owner.Number
	l.seen[k.Queue] = s
}

// isNews reports whether the wait of the first waiter, which began at since, is to be
// reported now, and notes that it was.
//
// A report is about a key and covers every caller that has waited too long by then, so
// 100,000 waiters of one key make one report. A key is reported again when somebody who
// was not among them has become first and is over the limit too, and not before another
// limit has passed: a queue that moves on, but too slowly, is one report per limit.
//
// Only the first waiter is checked. The others came later: queues are in order of
// arrival, also those that are not fair. (A waiter that was given a grant that had
// ended is first again, ahead of some that may be older. They are seen when it has
// come in or is over the limit itself.)
func isNews(limit time.Duration, s *sighting, since, now time.Time) bool {
	over := now.Add(-limit)
	if since.After(over) || !since.After(s.covered) || now.Sub(s.reportedAt) < limit {
		return false
	}
	s.covered, s.reportedAt = over, now
	return true
}

// forget drops what this check has found, and of keys that nobody waits for any more.
// A map that was once much larger is made anew.
func (l *Lookout) forget() {
	before := len(l.seen)
	for q, s := range l.seen {
		if s.check != l.checks {
			delete(l.seen, q)
		}
	}
	if len(l.seen) < before/4 {
		smaller := make(map[Queue]sighting, len(l.seen))
		for q, s := range l.seen {
			smaller[q] = s
		}
		l.seen = smaller
	}
	l.stuck, l.overdue = emptied(l.stuck), emptied(l.overdue)
}

// emptied returns list without its elements, and without its memory where a quarter would
// have done.
func emptied(list []Wait) []Wait {
	if len(list) < cap(list)/4 {
		return nil
	}
	clear(list)
	return list[:0]
}
