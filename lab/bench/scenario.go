package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/anteroom/anteroom/lab/bench/library"
)

// scenario is one kind of work, done by several libraries.
type scenario struct {
	name, title string // the name as in results.json: short, unique, without spaces
	group       string // the section of the page
	libraries   []string
	kind        library.Kind // selects the best configuration of each
	processes   int          // 0: in this process
	load        load
	placed      bool   // Redis has a processor of its own
	far         bool   // Redis is some milliseconds away
	removedBy   string // in removals
	rounds      int    // 0: 5
	measure     func(context.Context, round) (figures, error)
}

const ms = time.Millisecond

var (
	peers = library.Peers()
	// deployed are all on the clients that most programs have.
	deployed = append([]string{library.AnteroomDefaults}, peers...)
	shared   = append([]string{library.AnteroomFair, library.Anteroom}, peers...)
	// contenders are all that differ under contention.
	contenders = slices.DeleteFunc(library.All(), func(name string) bool {
		return name == library.AnteroomDefaults || name == library.AnteroomLinger || name == library.Nothing
	})
)

// scenarios returns all of them, in the order of runs and output.
func scenarios() []scenario {
	return slices.Concat(uncontended(), oneKey(), manyProcesses(), handovers(), readersAndWriters(), many(), removedKeys())
}

// uncontended is the price of a pair beside those of the peers: of one goroutine and one key, and of many goroutines that
// hardly ever want the same key.
func uncontended() []scenario {
	one := scenario{
		name: "alone", title: "One goroutine, lock and unlock", group: "Without contention",
		libraries: library.All(), kind: library.Alone, placed: true, measure: alone,
		// Many short rounds: a difference of a tenth has to show, and a machine's speed changes within seconds.
		load: load{Goroutines: 1, Keys: 1, Warm: 50 * ms, For: 120 * ms}, rounds: 21,
	}
	far := one.away(3, 300*ms)
	far.libraries = append(far.libraries, library.AnteroomLinger)
	all := []scenario{one, far}
	for _, n := range []int{1, 16, 64, 256} {
		own := scenario{
			name: fmt.Sprintf("own-keys-%d", n), title: fmt.Sprintf("%d × 1 goroutine with 1,000 keys, each acquisition another one", n),
			group: one.group, libraries: slices.Insert(slices.Clone(deployed), 1, library.Anteroom), kind: library.Alone, measure: alone,
			load: load{Goroutines: n, Keys: 1000 * n, Warm: 150 * ms, For: 400 * ms}, rounds: 7,
		}
		if all = append(all, own); n == 64 {
			all = append(all, own.away(5, 400*ms))
		}
	}
	return all
}

// away is the same with Redis far.
func (s scenario) away(rounds int, span time.Duration) scenario {
	s.name, s.title, s.far, s.placed = s.name+"-far", s.title+", Redis far away", true, false
	s.load.Warm, s.load.For, s.rounds = 200*ms, span, rounds
	s.libraries = slices.DeleteFunc(slices.Clone(shared), func(name string) bool { return !slices.Contains(s.libraries, name) })
	return s
}

// oneKey is many goroutines of one process that want one key, held for no time and for a millisecond.
func oneKey() (all []scenario) {
	for _, hold := range []time.Duration{0, ms} {
		for _, n := range []int{1, 8, 64, 1000} {
			if n == 1 && hold == 0 {
				continue // that is the scenario alone
			}
			s := scenario{
				name:  fmt.Sprintf("one-key-%d-hold-%s", n, hold),
				title: fmt.Sprintf("%d goroutines, one key, held %v", n, hold), group: "One process, one key",
				libraries: contenders, kind: library.Short, measure: alone,
				load: load{Goroutines: n, Keys: 1, Hold: hold, Warm: 150 * ms, For: 400 * ms},
			}
			switch {
			case n == 1:
				s.kind = library.Alone
			case n == 1000:
				// A peer takes seconds to give each of a thousand a turn.
				s.kind, s.load.For, s.rounds = library.Long, time.Second, 3
			case n == 64 && hold > 0:
				s.kind = library.Long
			case n == 64:
				all = append(all, s, s.away(3, 500*ms))
				continue
			}
			all = append(all, s)
		}
	}
	return all
}

// manyProcesses is one key that several processes want: with a single goroutine each, as pods do, and with crowds.
func manyProcesses() (all []scenario) {
	for _, hold := range []time.Duration{0, ms} {
		for _, n := range []int{4, 16, 40, 64} {
			s := scenario{
				name: fmt.Sprintf("one-each-%d-hold-%v", n, hold), title: fmt.Sprintf("%d processes × 1 goroutine, one key, held %v", n, hold),
				group: "Many processes, one goroutine each", libraries: slices.Insert(slices.Clone(deployed), 1, library.AnteroomLinger), kind: library.Short, processes: n,
				// Held for 1 ms, the lock goes round 64 processes about 20 times: one turn more or less is 5 %.
				load:   load{Goroutines: 1, Keys: 1, Hold: hold, Warm: 400 * ms, For: 2 * time.Second},
				rounds: 2, measure: together,
			}
			all = append(all, s)
		}
	}
	for _, n := range []int{4, 16} {
		all = append(all, scenario{
			name: fmt.Sprintf("processes-%d", n), title: fmt.Sprintf("%d processes × 16 goroutines, one key", n), group: "Many processes, a crowd in each",
			libraries: shared, kind: library.Short, processes: n, measure: together,
			// A turn of Anteroom is up to 20 ms, and a hundred are needed for the ratio of the processes.
			load: load{Goroutines: 16, Keys: 1, Warm: 400 * ms, For: 5500 * ms}, rounds: 1,
		})
	}
	two := scenario{
		name: "second-process", title: "2 processes × 64 goroutines, one key", group: "Many processes, a crowd in each",
		libraries: shared, kind: library.Short, processes: 2, measure: together,
		load: load{Goroutines: 64, Keys: 1, Warm: 400 * ms, For: 2200 * ms}, rounds: 2,
	}
	return append(all, two)
}

// handovers is a lock that goes to and fro between two processes.
func handovers() []scenario {
	s := scenario{
		name: "handover", title: "Hand-over between two processes", group: "Hand-over between processes",
		libraries: append([]string{library.Anteroom}, peers...), kind: library.Short, processes: 2, placed: true,
		load: load{Goroutines: 1, Keys: 1, For: time.Second}, rounds: 6, measure: handOver,
	}
	free := scenario{
		name: "idle-elsewhere", title: "A lock that another process has just unlocked", group: s.group,
		libraries: []string{library.AnteroomDefaults, library.AnteroomLinger, library.Rueidislock}, kind: library.Short, processes: 2, placed: true,
		load: load{Goroutines: 1, Keys: 1, For: time.Second}, rounds: 4, measure: idleElsewhere,
	}
	freeFar := free.away(2, time.Second)
	freeFar.libraries = free.libraries
	return []scenario{s, s.away(2, time.Second), free, freeFar}
}

// readersAndWriters is one RWMutex that most only read, in one process and in several, and a Semaphore.
func readersAndWriters() (all []scenario) {
	const group = "Readers and writers, permits"
	for _, reads := range []uint64{100, 95} {
		all = append(all, scenario{
			name: fmt.Sprintf("read-%d-of-100", reads), title: fmt.Sprintf("1 process × 64 goroutines, %d of 100 read", reads), group: group,
			libraries: []string{library.AnteroomRWMutex, library.RWMutex}, kind: library.Short, measure: alone,
			load: load{Goroutines: 64, Keys: 1, Reads: reads, Warm: 150 * ms, For: 500 * ms},
		})
	}
	for _, s := range []scenario{
		{processes: 4, load: load{Goroutines: 4, Reads: 95, Hold: ms}},
		{processes: 4, load: load{Goroutines: 4, Reads: 95}},
		{processes: 16, load: load{Goroutines: 1, Reads: 95}},
		{processes: 4, load: load{Goroutines: 4, Reads: 98, Hold: 5 * ms}},
		{processes: 16, load: load{Goroutines: 1, Together: library.Permits, Hold: ms}},
	} {
		s.libraries, s.title = []string{library.AnteroomRWMutex, library.RedissonScripts}, fmt.Sprintf("%d of 100 read", s.load.Reads)
		s.name = fmt.Sprintf("read-%d-of-100-%dx%d-hold-%v", s.load.Reads, s.processes, s.load.Goroutines, s.load.Hold)
		if s.load.Together > 0 {
			s.libraries, s.title = []string{library.AnteroomSemaphore, library.RedissonPermits}, fmt.Sprintf("%d permits", s.load.Together)
			s.name = fmt.Sprintf("permits-%d-%dx%d-hold-%v", s.load.Together, s.processes, s.load.Goroutines, s.load.Hold)
		}
		s.title = fmt.Sprintf("%d processes × %d goroutines, %s, held %v", s.processes, s.load.Goroutines, s.title, s.load.Hold)
		s.group, s.kind, s.rounds, s.measure = group, library.Short, 2, together
		s.load.Keys, s.load.Warm, s.load.For = 1, 400*ms, 3*time.Second
		all = append(all, s)
	}
	return all
}

// many is many locks held and renewed by one process.
func many() (all []scenario) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		s := scenario{
			name: fmt.Sprintf("held-%d", n), title: fmt.Sprintf("%d held locks, watchdog on", n), group: "Many held locks",
			libraries: []string{library.AnteroomFull}, kind: library.Alone, measure: holdMany,
			// Each lock is renewed every 8 to 10 s, and checked every 5 s. rueidislock, the only peer that renews by
			// itself, extends every 15 s.
			load: load{Keys: n, For: 15500 * ms}, rounds: 1,
		}
		if n == 10_000 {
			s.libraries, s.rounds = append(s.libraries, library.AnteroomUntracked, library.Rueidislock), 2
		}
		all = append(all, s)
	}
	return all
}

// removedKeys is how soon the holder of a removed key is notified, of 10,000 that one process holds.
func removedKeys() (all []scenario) {
	for _, by := range []string{"DEL", "HDEL", "RENAME", "SET", "DEL-after-KILL", "eviction", "FLUSHALL"} {
		s := scenario{
			name: "removed-by-" + by, title: "10,000 held locks, a key removed by " + by, group: "A removed key",
			libraries: []string{library.AnteroomFull, library.Rueidislock}, kind: library.Alone, measure: removeSome,
			load: load{Keys: 10_000}, removedBy: by, rounds: 2,
		}
		switch by {
		case "HDEL": // rueidislock's are no hashes
			s.libraries = s.libraries[:1]
		case "DEL-after-KILL":
			s.title = "10,000 held locks, a key removed by DEL after all connections were killed"
		case "FLUSHALL":
			s.title = "10,000 held locks, all removed by FLUSHALL"
		case "DEL":
			far := s.away(2, 0)
			far.libraries = s.libraries
			all = append(all, far)
		}
		all = append(all, s)
	}
	return all
}
