package anteroom_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// world is what the goroutines of one history do with their locks, as they note it
// themselves. Everything happens at half seconds and the lookout checks at full ones, so no
// order within one moment matters.
type world struct {
	mu    sync.Mutex
	owner map[string]taken // by key
	waits map[int]wait     // by goroutine
	count int              // numbers waits and tenures
}

type taken struct {
	by, n int
	lock  bool
}

type wait struct {
	key   string
	n     int
	since time.Time
}

// edge is one wait in a cycle, with the tenure that it waits for.
type edge struct {
	wait  wait
	taken taken
}

// cycles returns the cycles of this moment, each as its edges ordered by key.
func (w *world) cycles() (all [][]edge) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for g := range w.waits {
		var c []edge
		for at, steps := g, 0; steps <= len(w.waits); steps++ {
			wt, waits := w.waits[at]
			t, owned := w.owner[wt.key]
			if !waits || !owned {
				break
			}
			c = append(c, edge{wt, t})
			if at = t.by; at == g {
				slices.SortFunc(c, func(a, b edge) int { return strings.Compare(a.wait.key, b.wait.key) })
				if !slices.ContainsFunc(all, func(o []edge) bool { return slices.Equal(o, c) }) {
					all = append(all, c)
				}
				break
			}
		}
	}
	return all
}

// enter notes the wait of goroutine g, makes it, and notes what came of it.
func (w *world) enter(g int, mu *anteroom.Mutex, lock bool, limit time.Duration) (leave func()) {
	w.mu.Lock()
	w.count++
	w.waits[g] = wait{mu.Key(), w.count, time.Now()}
	w.mu.Unlock()
	var free func()
	if lock {
		if mu.TryLockFor(limit) {
			free = mu.Unlock
		}
	} else if h, err := mu.Acquire(bg, anteroom.Wait(limit)); err == nil {
		free = func() { _ = h.Release(bg) }
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waits, g)
	if free == nil {
		return nil
	}
	w.count++
	w.owner[mu.Key()] = taken{g, w.count, lock}
	return func() {
		w.mu.Lock()
		delete(w.owner, mu.Key())
		w.mu.Unlock()
		free()
	}
}

// due returns the cycles of both checks that are to be reported at the second one.
func due(before, now [][]edge, limit time.Duration, reported map[string]bool) (names []string) {
	for _, c := range now {
		if !slices.ContainsFunc(before, func(o []edge) bool { return slices.Equal(o, c) }) {
			continue
		}
		var keys, tenures []string
		certain, old := true, true
		for _, e := range c {
			keys = append(keys, e.wait.key)
			tenures = append(tenures, fmt.Sprint(e.taken.n))
			certain = certain && e.taken.lock
			old = old && time.Since(e.wait.since) >= limit
		}
		id := strings.Join(tenures, " ")
		if (certain || old) && !reported[id] {
			reported[id] = true
			names = append(names, strings.Join(keys, " "))
		}
	}
	return names
}

// TestDeadlock_ReportedExactlyWhereThereIsOne_Lab: goroutines take random locks in random order,
// by Lock and Acquire, for random times and with random limits. What is reported at each check
// is what a model sees that reads what the goroutines say about themselves: the cycles that
// this check and the one before have in common.
func TestDeadlock_ReportedExactlyWhereThereIsOne_Lab(t *testing.T) {
	reported, dissolved := 0, 0
	for seed := range uint64(25) {
		bubble(t, func(t *testing.T, s *embedded) {
			r, d := history(t, s, rand.New(rand.NewPCG(seed, 5)))
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
			reported, dissolved = reported+r, dissolved+d
		})
	}
	t.Logf("%d deadlocks reported, %d cycles dissolved before", reported, dissolved)
	if reported < 10 || dissolved < 10 {
		t.Errorf("%d deadlocks reported, %d cycles dissolved before: these histories test too little", reported, dissolved)
	}
}

func history(t *testing.T, s *embedded, r *rand.Rand) (reported, dissolved int) {
	const limit = 20 * time.Second // a check every 5 s
	w := &world{owner: map[string]taken{}, waits: map[int]wait{}}
	m, rec := manager(t, s.client(), anteroom.Config{LongWait: limit, Defaults: byGoroutine})
	time.Sleep(500 * time.Millisecond)
	start := time.Now()
	locks := numberedLocks(m, 2+r.IntN(3))
	var ended sync.WaitGroup
	for g := range 2 + r.IntN(4) {
		r := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
		ended.Go(func() {
			for range 4 {
				w.round(g, locks, r, start)
			}
		})
	}
	all := make(chan struct{})
	go func() { ended.Wait(); close(all) }()
	named := map[string]bool{}
	var before [][]edge
	for check := 1; ; check++ {
		// Half of the half second before the check.
		time.Sleep(time.Until(start.Add(time.Duration(check)*5*time.Second - 750*time.Millisecond)))
		seen := len(rec.of(observe.EventDeadlock))
		now := w.cycles()
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		want := due(before, now, limit, named)
		var got []string
		for _, ev := range rec.of(observe.EventDeadlock)[seen:] {
			var keys []string
			for _, l := range ev.Waits {
				keys = append(keys, l.Key)
			}
			slices.Sort(keys)
			got = append(got, strings.Join(keys, " "))
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("check %d: reported %q, the model says %q", check, got, want)
		}
		reported += len(got)
		for _, c := range before {
			if !slices.ContainsFunc(now, func(o []edge) bool { return slices.Equal(o, c) }) {
				dissolved++
			}
		}
		before = now
		select {
		case <-all:
			return reported, dissolved
		default:
		}
	}
}

// round takes two or three locks in random order and gives them back.
func (w *world) round(g int, locks []*anteroom.Mutex, r *rand.Rand, start time.Time) {
	var leave []func()
	for _, i := range r.Perm(len(locks))[:min(2+r.IntN(2), len(locks))] {
		pauseUntilNextSecond(start, r.IntN(3))
		limit := []time.Duration{3, 9, 40, 70}[r.IntN(4)] * time.Second
		l := w.enter(g, locks[i], r.IntN(3) > 0, limit)
		if l == nil {
			break
		}
		leave = append(leave, l)
	}
	pauseUntilNextSecond(start, r.IntN(6))
	for _, l := range slices.Backward(leave) {
		l()
	}
}

// pauseUntilNextSecond sleeps until the next full second after start, and extra ones.
func pauseUntilNextSecond(start time.Time, extra int) {
	next := time.Since(start).Truncate(time.Second) + time.Duration(1+extra)*time.Second
	time.Sleep(next - time.Since(start))
}
