package anteroom

import (
	"sync"
	"time"
)

// lookout finds waits that are too long (longwait.go) and goroutines that wait for each
// other (deadlock.go), by looking from time to time at what the queues know anyway:
//
//	timer ──► look: copy the list of live keys
//	           │     each key with waiters: who owns it, who is first
//	           ├───► first waits for longer than LongWait, and was not reported ──► long_wait
//	           ├───► same owner as at the last look: who of its kind waits where? ──► deadlock
//	           └───► timer, again
//
// So nothing is added to acquiring and releasing: no clock, no allocation, no lock. A look
// runs on a goroutine that lives as long as the look, not on one that waits for users'
// callbacks, and takes at most a hundredth of one processor: it comes the later the longer
// the one before has taken.
type lookout struct {
	m     *Manager
	limit time.Duration // Config.LongWait

	mu      sync.Mutex     // guards every, timer and stopped
	every   time.Duration  // between two looks
	timer   *time.Timer    // nil while nobody is to look
	stopped bool           //
	planned sync.WaitGroup // the look that is planned or under way

	// The rest belongs to the look under way. There is one at a time.
	entries []*entry               // all live ones; empty between two looks
	seen    map[*entry]sighting    // those that had waiters at the last look
	looks   uint64                 // how many there were
	read    time.Time              // when the last one had read all keys
	stuck   []stuckKey             // those that may be part of a deadlock
	overdue []longWait             // those that are to be reported
	told    map[*entry]uint64      // tenures that are part of a reported deadlock
	scanned [purposes]time.Time    // when goroutines were last looked at
	scan    func([]int64) scanning // for tests
}

// sighting is what is kept of a key that has waiters.
type sighting struct {
	look    uint64    // when it was last seen
	number  uint64    // of its owner then; 0: none in this process
	covered time.Time // waits that began up to then have been reported
	told    time.Time // when that was
}

const (
	defaultLongWait = defaultLease
	minLongWait     = time.Second
	maxLongWait     = 24 * time.Hour
	// maxLookEvery and looksPerWait: a wait is reported at most so much later than it
	// might be, and a deadlock is found after at most two looks.
	maxLookEvery = 5 * time.Second
	looksPerWait = 4
	// idle is how many times as long as it took the lookout rests after a look.
	idle = 100
	// maxReports bounds the events of each kind that one look raises: an outage of Redis
	// may make 100,000 keys overdue at once, and one line says that as well.
	maxReports = 10
)

func newLookout(m *Manager) *lookout {
	return &lookout{
		m: m, limit: m.cfg.LongWait, every: min(m.cfg.LongWait/looksPerWait, maxLookEvery),
		seen: map[*entry]sighting{}, told: map[*entry]uint64{}, scan: scanGoroutines,
	}
}

// start begins to look, unless that is switched off.
func (l *lookout) start() {
	if l.limit > 0 {
		l.plan(l.every)
	}
}

// plan has the next look begin after d.
func (l *lookout) plan(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	l.planned.Add(1)
	l.timer = time.AfterFunc(d, func() {
		defer l.planned.Done()
		began := time.Now()
		l.look(began)
		l.mu.Lock()
		every := l.every
		l.mu.Unlock()
		l.plan(max(every, idle*time.Since(began)))
	})
}

// stop ends the looking and waits for a look under way. It may be called without start.
func (l *lookout) stop() {
	l.mu.Lock()
	l.stopped = true
	if l.timer != nil && l.timer.Stop() {
		l.planned.Done()
	}
	l.timer = nil
	l.mu.Unlock()
	l.planned.Wait()
}

// look looks once at all keys.
func (l *lookout) look(now time.Time) {
	l.looks++
	l.collect()
	// Steps over some keys at once, as source.LookupAll does: the processor waits for
	// several places in memory together. With 100,000 keys none of them is in a cache.
	const atOnce = 32
	for rest := l.entries; len(rest) > 0; {
		some := rest[:min(atOnce, len(rest))]
		rest = rest[len(some):]
		for _, e := range some {
			e.refs.Load()
		}
		for _, e := range some {
			e.q.Word()
		}
		for _, e := range some {
			if e.q.HasQueued() {
				l.visit(e, now)
			}
		}
	}
	waits := l.longWaits(now)
	cycles := l.deadlocks(now)
	l.read = time.Now()
	l.report(now, waits, cycles)
	l.forget()
}

// collect lists the live entries. Acquisitions of new keys wait meanwhile: a millisecond
// for 100,000 keys.
func (l *lookout) collect() {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	for _, e := range l.m.entries {
		l.entries = append(l.entries, e)
	}
}

// visit looks at a key that has waiters.
func (l *lookout) visit(e *entry, now time.Time) {
	f, waited := e.q.Front()
	if !waited {
		return
	}
	s := l.seen[e]
	if number := f.Current.Number; number != 0 && number == s.number && f.First.Since.Before(l.read) {
		l.stuck = append(l.stuck, stuckKey{e, f})
	}
	if limit := l.limitOf(e); limit > 0 && isNews(limit, &s, f.First.Since, now) {
		l.overdue = append(l.overdue, longWait{e, f})
	}
	s.look, s.number = l.looks, f.Current.Number
	l.seen[e] = s
}

// forget lets go of what this look has found, and of keys that nobody waits for any more.
// Maps and lists that were once much larger are made anew.
func (l *lookout) forget() {
	before := len(l.seen)
	for e, s := range l.seen {
		if s.look != l.looks {
			delete(l.seen, e)
		}
	}
	if len(l.seen) < before/4 {
		smaller := make(map[*entry]sighting, len(l.seen))
		for e, s := range l.seen {
			smaller[e] = s
		}
		l.seen = smaller
	}
	l.entries, l.stuck, l.overdue = emptied(l.entries), emptied(l.stuck), emptied(l.overdue)
}

// emptied returns list without its elements, and without its memory where a quarter would
// have done.
func emptied[T any](list []T) []T {
	if len(list) < cap(list)/4 {
		return nil
	}
	clear(list)
	return list[:0]
}
