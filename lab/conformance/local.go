package conformance

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// Two Managers increment one counter in steps that lose updates if two are inside.
func exclusionBetweenManagers(s *stage) {
	const managers, goroutines, rounds = 2, 3, 20
	key := s.key("k")
	var inside, count atomic.Int64
	var wg sync.WaitGroup
	for range managers {
		m, _ := s.manager()
		mu := s.mutex(m, anteroom.LockConfig{Key: key, MaxHandoffs: 5})
		for range goroutines {
			wg.Go(func() {
				for range rounds {
					mu.Lock()
					if inside.Add(1) != 1 {
						s.Error("two are inside")
					}
					n := count.Load()
					runtime.Gosched()
					count.Store(n + 1)
					inside.Add(-1)
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	if n := count.Load(); n != managers*goroutines*rounds {
		s.Fatalf("counted %d, want %d", n, managers*goroutines*rounds)
	}
}

// Within a process the race detector checks it too: the counter is a plain one.
func exclusionBetweenGoroutines(s *stage) {
	m, _ := s.manager()
	for _, fair := range []bool{false, true} {
		mu := s.mutex(m, anteroom.LockConfig{Key: s.key(map[bool]string{true: "fair", false: "not fair"}[fair]), Fair: fair})
		count := 0
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 50 {
					mu.Lock()
					count++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if count != 400 {
			s.Fatalf("counted %d, want 400", count)
		}
	}
}

func triesAreRefusedWhileHeld(s *stage) {
	a, _ := s.manager()
	b, _ := s.manager()
	cfg := anteroom.LockConfig{Key: s.key("k")}
	mine, theirs := s.mutex(a, cfg), s.mutex(b, cfg)
	h := s.acquire(mine)
	for _, mu := range []*anteroom.Mutex{mine, theirs} {
		s.refused(mu)
		if mu.TryLock() {
			s.Fatal("TryLock of a held lock")
		}
		begin := time.Now()
		if mu.TryLockFor(50 * time.Millisecond) {
			s.Fatal("TryLockFor of a held lock")
		}
		s.atMost("TryLockFor(50 ms)", time.Since(begin), 60*time.Millisecond, 2*time.Second)
	}
	s.release(h)
	s.until("TryLock gets a free lock", theirs.TryLock) // at once, unless the machine is too busy to answer
	s.refused(mine)
	theirs.Unlock()
}

// Nesting is counted in the process; Redis knows one holder with the count 1, and sees only the last release.
func reentrancy(s *stage) {
	a, commands := s.manager()
	b, _ := s.manager()
	cfg := anteroom.LockConfig{Key: s.key("k"), Reentrant: true}
	mu, other := s.mutex(a, cfg), s.mutex(b, cfg)
	mu.Lock()
	mu.Lock()
	if !mu.TryLock() || mu.Holds() != 3 {
		s.Fatalf("%d holds", mu.Holds())
	}
	info, err := b.Inspect(s.Context(), cfg.Key)
	s.ok(err)
	if len(info.Holders) != 1 || info.Holders[0].Count != 1 {
		s.Fatalf("Redis has %+v", info.Holders)
	}
	mu.Unlock()
	mu.Unlock()
	s.refused(other)
	if n := commands.of("release"); n != 0 {
		s.Fatalf("%d releases before the last Unlock", n)
	}
	mu.Unlock()

	outer := s.acquire(mu)
	inner, err := mu.Acquire(outer.Context())
	s.ok(err)
	s.release(outer)
	s.refused(other)
	s.release(inner)
	s.release(s.acquire(other))
}

// With Fair the goroutines of a process are admitted in order of arrival.
func fairOrder(s *stage) {
	m, _ := s.manager()
	mu := s.mutex(m, anteroom.LockConfig{Key: s.key("k"), Fair: true})
	h := s.acquire(mu)
	const waiters = 8
	var order, want []int // order is guarded by the lock
	var wg sync.WaitGroup
	for i := range waiters {
		wg.Go(func() {
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
		})
		s.until("the waiter stands in the queue", func() bool { return len(m.Snapshot()[0].Waiters) == i+1 })
		want = append(want, i)
	}
	s.release(h)
	wg.Wait()
	if !slices.Equal(order, want) {
		s.Fatalf("came in as %v", order)
	}
}

// A hand-off within the process costs no command; the end of a turn costs one or two.
func handOffWithoutRedis(s *stage) {
	m, commands := s.manager()
	mu := s.mutex(m, anteroom.LockConfig{Key: s.key("k"), Fair: true})
	const goroutines, rounds = 8, 100
	passes := 0 // guarded by the lock
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range rounds {
				mu.Lock()
				passes++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	s.until("the release is answered", func() bool { return len(m.Snapshot()) == 0 })
	n := commands.of("acquire") + commands.of("release") + commands.of("turn")
	if passes != goroutines*rounds || n > passes/4 {
		s.Fatalf("%d commands for %d passes", n, passes)
	}
}
